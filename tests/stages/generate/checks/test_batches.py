"""Several questions in one call: no verdict goes to another question than its own."""

import json

import pytest
from checker import Checker, anchored, clear, pair, reading, shown, verdict, verdicts

from ragforge.errors import CallError
from ragforge.llm.chat import ChatReply
from ragforge.stages.generate.checks.batches import MOST, Entry, batches

N = 8
UNCLEAR = {1, 4, 6}
"""Numbers of the questions that are not clear in truth."""
REFUSAL = ChatReply("", refusal="I will not.")


def number_of(entry):
    return int(entry["question"].rpartition(" ")[2].rstrip("?"))


def honest(entry, **changes):
    if number_of(entry) in UNCLEAR:
        return verdict(entry, clear="no", missing="which client", **changes)
    return verdict(entry, **changes)


def swapped(said, field):
    values = [each[field] for each in said]
    return [
        {**each, field: value} for each, value in zip(said, [*values[1:], values[0]], strict=True)
    ]


MISCHIEF = {
    "nothing": lambda said: said,
    "another order": lambda said: said[::-1],
    "sorted by id": lambda said: sorted(said, key=lambda each: each["id"]),
    "the first left out": lambda said: said[1:],
    "the last left out": lambda said: said[:-1],
    "all but one left out": lambda said: said[:1],
    "an entry twice": lambda said: [*said, said[0]],
    "all entries twice": lambda said: [*said, *said],
    "an entry twice, with two verdicts": lambda said: [
        *said,
        {**said[0], "clear": "no", "missing": "all"},
    ],
    "two under one id": lambda said: [{**said[0], "id": said[1]["id"]}, *said[1:]],
    "an id made up": lambda said: [{**said[0], "id": "00000"}, *said[1:]],
    "an entry made up": lambda said: [*said, verdict({"id": "00000", "question": "What?"})],
    "ids as numbers": lambda said: [{**each, "id": str(at)} for at, each in enumerate(said)],
    "ids in capitals": lambda said: [{**each, "id": f"{each['id'].upper()} "} for each in said],
    "no ids": lambda said: [{**each, "id": ""} for each in said],
    "ids moved by one": lambda said: swapped(said, "id"),
    "questions moved by one": lambda said: swapped(said, "question"),
    "the first two ids exchanged": lambda said: [*swapped(said[:2], "id"), *said[2:]],
    "one question for all": lambda said: [
        {**each, "question": said[0]["question"]} for each in said
    ],
    "no questions": lambda said: [{**each, "question": ""} for each in said],
    "a question in other words": lambda said: [{**said[0], "question": "The first?"}, *said[1:]],
    "a verdict against itself": lambda said: [{**said[0], "missing": "so much"}, *said[1:]],
    "no entries": lambda said: [],
    "one left out and the rest moved": lambda said: [
        {**each, "id": other["id"]} for each, other in zip(said[1:], said[:-1], strict=True)
    ],
}


def mischievous(change, alone):
    def say(request):
        entries = shown(request, "questions")
        said = [honest(each) for each in entries]
        return {"questions": change(said)} if len(entries) > 1 else alone(said)

    return say


def check(say):
    checker = Checker({"questions_check": say})
    found = checker(*(anchored(number) for number in range(N)))
    return checker, [verdicts(each)["self_contained"] for each in found]


@pytest.mark.parametrize("name", MISCHIEF)
def test_no_verdict_goes_to_another_question(name):
    """What a batch mixes up is unknown, never somebody else's pass."""
    _, found = check(mischievous(MISCHIEF[name], lambda said: REFUSAL))

    truth = ["fail" if number in UNCLEAR else "pass" for number in range(N)]
    assert all(one in (true, "unknown") for one, true in zip(found, truth, strict=True))


@pytest.mark.parametrize("name", MISCHIEF)
def test_what_a_batch_leaves_open_is_asked_for_alone(name):
    """One entry that spoils its batch must not cost the others their verdict."""
    _, found = check(mischievous(MISCHIEF[name], lambda said: {"questions": said}))

    assert found == ["fail" if number in UNCLEAR else "pass" for number in range(N)]


@pytest.mark.parametrize(
    ("name", "alone"),
    [
        ("nothing", 0),
        ("another order", 0),
        ("the first left out", 1),
        ("an entry twice", 1),
        ("a question in other words", 1),
        ("a verdict against itself", 1),
        ("ids moved by one", 8),
    ],
)
def test_only_what_is_open_is_asked_again(name, alone):
    """The others are paid for."""
    checker, _ = check(mischievous(MISCHIEF[name], lambda said: {"questions": said}))

    sizes = [
        len(shown(request, "questions"))
        for request in checker.model.asked
        if request.schema_name == "questions_check"
    ]
    assert sizes.count(1) == alone


def test_what_is_asked_alone_is_asked_once():
    """A question on which the model breaks down would else cost calls without end."""
    checker, found = check(mischievous(MISCHIEF["no entries"], lambda said: "no"))

    assert set(found) == {"unknown"}
    assert len(checker.model.asked) == 2 + 2 * N


def test_a_batch_that_gets_no_reply_is_not_taken_apart():
    """Eight calls would go the same way as the one."""

    def fail(request):
        raise CallError("error", "gone")

    checker, found = check(fail)

    assert set(found) == {"unknown"}
    assert len(checker.model.asked) == 1


@pytest.mark.parametrize("kind", ["refused", "filtered", "truncated", "invalid"])
def test_a_batch_that_is_refused_is_taken_apart(kind):
    """One question that offends must not cost seven others."""

    def say(request):
        entries = shown(request, "questions")
        if any(number_of(each) == 2 for each in entries):
            raise CallError(kind, "gone")
        return {"questions": [honest(each) for each in entries]}

    _, found = check(say)

    assert [at for at, one in enumerate(found) if one == "unknown"] == [2]


def test_ids_cannot_be_foreseen():
    """A question that knew its id could forge the verdict on itself."""
    first, _ = check(clear)
    other = Checker()
    other(*(anchored(number) for number in range(N - 1)))

    ids = [each["id"] for each in shown(first.model.asked[0], "questions")]
    others = [each["id"] for each in shown(other.model.asked[0], "questions")]
    assert len(set(ids)) == N
    assert not set(ids) & set(others)
    assert all(len(each) == 5 and int(each, 16) >= 0 for each in ids)


def test_the_keys_of_the_candidates_are_not_shown():
    """Ids that count tell a model which came first."""
    checker, _ = check(clear)

    assert "000001-0" not in checker.model.asked[0].messages[1].content


def test_batches_hold_eight_in_order():
    """The same candidates must be the same calls."""
    entries = [Entry(f"What is number {number}?", {}) for number in range(20)]

    found = batches(entries)

    assert [len(batch) for batch in found] == [MOST, MOST, 4]
    assert [entry for batch in found for entry in batch] == entries


def test_equal_questions_never_share_a_batch():
    """Nothing would tell their verdicts apart."""
    entries = [Entry("What is it?", {}), Entry("what is IT", {}), Entry("Which?", {})]

    assert batches(entries) == [[entries[0]], [entries[1], entries[2]]]


def test_a_batch_has_room_for_all_its_verdicts():
    """A reply that is cut off is paid and worth nothing."""
    checker, _ = check(clear)

    assert checker.model.asked[0].max_output_tokens == 1024 + (N - 1) * 220


@pytest.mark.parametrize("name", MISCHIEF)
def test_no_comparison_goes_to_another_pair(name):
    """An answer that differs must not pass by its neighbour's verdict."""

    def compare(request):
        entries = shown(request, "pairs")
        said = [
            {**pair(each), "verdict": "differs", "difference": "7"}
            if number_of(each) in UNCLEAR
            else pair(each)
            for each in entries
        ]
        for each in said:
            each |= {"clear": "yes", "missing": ""}
        changed = MISCHIEF[name](said) if len(said) > 1 else [{**said[0], "id": "gone"}]
        return {
            "pairs": [
                {key: each[key] for key in ("id", "question", "difference", "verdict")}
                for each in changed
            ]
        }

    checker = Checker({"answers_comparison": compare})
    found = checker(*(anchored(number) for number in range(N)))

    for number, each in enumerate(found):
        assert each.measured.agreement in ("unknown", "differs" if number in UNCLEAR else "agrees")


def test_two_answers_to_one_question_are_compared_apart():
    """Nothing would tell whether the reader's answer agrees or the well-read one's."""

    def knowing(request):
        entries = shown(request, "questions")
        return {"questions": [verdict(each, answer="about five") for each in entries]}

    checker = Checker({"questions_check": knowing})
    checker(*(anchored(number) for number in range(4)))

    compared = [
        [each["other answer"] for each in shown(request, "pairs")]
        for request in checker.model.asked
        if request.schema_name == "answers_comparison"
    ]
    assert [set(each) for each in compared] == [
        {json.loads(json.dumps(reading(checker.model.asked[1])["answer"]))},
        {"about five"},
    ]
