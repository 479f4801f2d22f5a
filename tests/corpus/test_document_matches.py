"""Which documents were edited, and where the words of others stand."""

import random

import pytest

from ragforge.corpus.document_matches import match_documents
from ragforge.records import Chunk


def prose(seed, count=60):
    """Return words of a language of four thousand, some of which are in every text."""
    chance = random.Random(seed)
    rare = [f"word{chance.randrange(4000)}" for _ in range(count)]
    return " ".join(
        word if number % 2 else chance.choice(["the", "of", "and", "is"])
        for number, word in enumerate(rare)
    )


def written(path, texts):
    chunks = [
        Chunk(chunk_id=f"{name}#0", doc_id=name, text=text, start=0, end=len(text))
        for name, text in sorted(texts.items())
    ]
    lines = [f"{chunk.model_dump_json()}\n" for chunk in chunks]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def match(tmp_path):
    def run(before, now):
        changed = {name for name in before if before[name] != now.get(name)}
        places = {name for name in now if now[name] not in before.values()}
        old, new = written(tmp_path / "old", before), written(tmp_path / "new", now)
        found = match_documents(changed, places, old, new)
        return {*found.edited}, {**found.homes}

    return run


def page(number, seed):
    return f"# Chapter {number}. {prose(seed)}"


def test_chapters_that_hold_their_numbers_move_up(match):
    """A new first one: the title of each is another."""
    before = {f"{n:02}": page(n, n) for n in range(1, 9)}
    now = {f"{n + 1:02}": page(n + 1, n) for n in range(1, 9)} | {"01": page(1, 99)}

    assert match(before, now) == (set(), {f"{n:02}": f"{n + 1:02}" for n in range(1, 9)})


def test_long_texts_share_their_small_words(match):
    """More than half of the words of each stand in each."""
    texts = [" ".join([prose(seed, 40), "so it is said that " * 20]) for seed in range(4)]
    before = {f"{n}": f"{n}: {texts[n]}" for n in range(4)}
    now = {f"{n}": f"{n}: {texts[(n + 1) % 4]}" for n in range(4)}

    edited, homes = match(before, now)

    assert homes == {"0": "3", "1": "0", "2": "1", "3": "2"}
    assert not edited


def test_an_edited_page_is_where_it_was(match):
    """One that grew and one of other words here and there."""
    one, two = prose(1), prose(2)
    now = {"one": f"{one} {prose(3, 400)}", "two": two.replace(" is ", " was "), "new": prose(4)}

    assert match({"one": one, "two": two}, now) == ({"one", "two"}, {})


def test_what_was_rewritten_is_nowhere(match):
    """No word of it is left."""
    assert match({"a": "Wax keeps oak from drying."}, {"a": "Ships sail."}) == (set(), {})


def test_one_is_removed_and_another_goes_by_its_name(match):
    """With an edit: the text of the first is nowhere."""
    before = {"x": prose(1), "y": prose(2)}

    assert match(before, {"x": f"{prose(2)} And more."}) == (set(), {"y": "x"})


def template(seed):
    chance = random.Random(seed)
    values = [chance.randrange(10**6) for _ in range(4)]
    return f"{prose(0)} load {values[0]} memory {values[1]} {prose(9)} disk {values[2]}"


def test_pages_of_a_template_are_not_taken_for_each_other(match):
    """All are alike, and their names tell them apart."""
    before = {f"{n}": template(n) for n in range(6)}
    now = {f"{n}": template(n + 50) for n in range(1, 6)} | {"new": template(99)}

    assert match(before, now) == (set("12345"), {})


def test_one_of_two_alike_is_removed(match):
    """The other one, which is edited, has most of its words: it had them before."""
    before = {"a": template(1), "b": template(2)}

    assert match(before, {"b": template(3)}) == ({"b"}, {})


def test_two_places_are_as_near(match):
    """Which of them it is nobody can tell; in its own folder it is the one there."""
    text = prose(1)
    two = {"b": f"{text} One.", "c": f"{text} Two."}
    there = {"v1/b": f"{text} One.", "v2/b": f"{text} Two."}

    assert match({"a": text}, two) == (set(), {})
    assert match({"v1/a": text}, there) == (set(), {"v1/a": "v1/b"})


def test_a_script_without_blanks(match):
    """Each character is a word."""
    before = {"a": "蜂蜜を塗ると木が乾きません。", "b": "船は朝に港を出ます。"}
    now = {"a": "船は朝に港を出ました。", "b": "蜂蜜を塗ると木は乾きません。"}

    assert match(before, now)[1] == {"a": "b", "b": "a"}
