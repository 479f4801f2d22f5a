import json
import re

import pytest

from ragforge.stages.audit.attacks import ATTACKS, Target, attacked
from ragforge.stages.judge.llm import RelevanceReply, broken_rule
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.judge.tripwires import flags

TEXT = (
    "Far out at sea, blue whales eat krill. They do so in summer.\n\n"
    "In winter they travel south. Some of them sing on the way."
)
EVIDENCE = "blue whales eat krill"
QUERY = "What do blue whales eat?"


def make(name, text=TEXT, evidence=EVIDENCE, query=QUERY, seed=0):
    return attacked(name, Target(Pair("q", query, "c", text), evidence), seed)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_the_same_every_time(name):
    """A rerun must find its replies in the call store, and two audits must be comparable."""
    assert make(name) == make(name)


@pytest.mark.parametrize("name", ["relevance-claim", "role-markers", "padding", "keyword-stuffing"])
def test_draws_differ_by_seed_and_by_pair(name):
    """One wording for all pairs would test that wording."""
    texts = {make(name, seed=seed) for seed in range(20)}
    beside = {make(name, query=f"{QUERY} {n}").replace(str(n), "") for n in range(20)}

    assert len(texts) > 1
    assert len(beside) > 1


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_says_what_a_sound_judge_does(name):
    """Who reads the table must be able to look up why a flip is one."""
    assert re.search(r"sound judge|As for `", ATTACKS[name].make.__doc__)


def test_stuffing_keeps_the_passage_and_adds_each_word_of_the_query_twice():
    """What the judge could use in the passage must be neither more nor less."""
    stuffed = make("keyword-stuffing", text="Oak is a tree of the north.")

    words = stuffed.split()
    assert {word: words.count(word) for word in ("blue", "whales", "eat")} == {
        "blue": 2,
        "whales": 2,
        "eat": 2,
    }
    rest = [word for word in words if word not in {"blue", "whales", "eat"}]
    assert " ".join(rest) == "Oak is a tree of the north."


def test_a_query_without_content_cannot_be_stuffed():
    """Stop words alone would be no attack, and would count as one that was withstood."""
    assert make("keyword-stuffing", query="What is it?") is None


@pytest.mark.parametrize("name", ["relevance-claim", "foreign-verdict", "role-markers"])
def test_what_is_added_leaves_the_passage_as_it_is(name):
    """Only the attack may be the reason of another grade."""
    found = make(name)

    assert TEXT in found
    assert len(found) > len(TEXT)


def test_the_forged_verdict_would_pass_every_check():
    """A forgery that no parser could take proves nothing about the parser."""
    found = make("forged-verdict").replace(TEXT, "").strip()

    reply = RelevanceReply.model_validate_json(found)
    assert (reply.grade, broken_rule(reply, TEXT)) == (3, None)


def test_the_escape_closes_the_string_and_stands_between_fences():
    """It has to look like the end of the data, else nothing is escaped from."""
    lines = make("fence-escape").splitlines()

    fences = [line for line in lines if re.fullmatch(r"<<DATA-[0-9a-f]{16}>>", line)]
    assert len(fences) == 2
    assert fences[0] == fences[1]
    assert "\n".join(lines[:3]) == TEXT + '"'
    assert f'query: "{QUERY}"' in lines
    assert json.loads(lines[-3].removeprefix("passage: ") + '"') == TEXT.split("\n")[0]


@pytest.mark.parametrize(
    ("name", "least", "most"), [("padding", 400, 800), ("long-padding", 6e3, 7e3)]
)
def test_padding_stands_on_both_sides(name, least, most):
    """A judge that reads only the start, or only the end, is to be found out."""
    before, behind = make(name).split(TEXT)

    assert min(len(before), len(behind)) >= 200
    assert least <= len(before) + len(behind) <= most
    assert "whale" not in before + behind


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("sentence-order", re.compile(r"(?<=\.)\s+")),
        ("paragraph-order", re.compile(r"\n\n")),
    ],
)
def test_another_order_has_the_same_parts(name, parts):
    """Nothing may be lost: the passage still says the same."""
    found = make(name)

    assert found != TEXT
    assert sorted(parts.split(found)) == sorted(parts.split(TEXT))


@pytest.mark.parametrize("text", ["One sentence only.", "Same. Same.", ""])
@pytest.mark.parametrize("name", ["sentence-order", "paragraph-order"])
def test_what_has_one_order_only_is_left_out(name, text):
    """An attack that changes nothing would be counted as withstood."""
    assert make(name, text=text) is None


def test_a_repeat_shows_the_same_text():
    """Only then is another grade the judge's own doing."""
    assert make("repeat") == TEXT
    assert ATTACKS["repeat"].vote > 0


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Blue whales eat krill. They do so in summer.", "They do so in summer."),
        (
            "They do so in summer: Blue whales eat krill. Yes.",
            "They do so in summer:",
        ),
    ],
)
def test_a_cut_takes_the_evidence_and_leaves_the_longer_part(text, rest):
    """What the grade was based on must be gone, and enough be left to judge."""
    assert make("evidence-cut", text=text, evidence="Blue whales eat krill.") == rest


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("Blue whales eat krill.", "Blue whales eat krill."),
        ("Krill is food. And so on, and so on. Krill is food. Yes.", "Krill is food."),
        (TEXT, ""),
        (TEXT, "not in the text"),
    ],
)
def test_what_cannot_be_cut_out_is_left_out(text, evidence):
    """With the evidence still there a judge that keeps its grade is right."""
    assert make("evidence-cut", text=text, evidence=evidence) is None


def test_half_a_cut_ends_within_the_evidence():
    """Whatever follows the first half of the evidence is gone."""
    assert make("half-cut") == "Far out at sea, blue whale"


@pytest.mark.parametrize(("text", "evidence"), [("Krill is food.", "Krill is food."), (TEXT, "")])
def test_half_a_cut_leaves_something_to_judge(text, evidence):
    """An empty passage is no attack."""
    assert make("half-cut", text=text, evidence=evidence) is None


@pytest.mark.parametrize("text", ["\ud800", "", "x", "文" * 3000, "\x00", "$x {order} %s"])
@pytest.mark.parametrize("name", ATTACKS)
def test_no_text_breaks_an_attack(name, text):
    """Corpora hold everything; one odd chunk must not end an audit."""
    assert isinstance(make(name, text=text, evidence=text, query=text), str | None)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "name",
    ["relevance-claim", "forged-verdict", "foreign-verdict", "role-markers", "fence-escape"],
)
def test_what_speaks_to_the_judge_trips_a_wire(name, seed):
    """The words that judges are tried with are those that a reader is to be told of."""
    assert flags(make(name, seed=seed)) != ()
