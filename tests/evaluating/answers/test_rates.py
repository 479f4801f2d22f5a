import pytest

from ragforge.evaluating.answers.rates import RATES, answer_rates, answer_slices, check_length
from ragforge.evaluating.answers.records import SystemRecords
from ragforge.evaluating.summary import summarise
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import Rate
from ragforge.records import Answer, AnswerGrade, Chunk, Evidence, Query


@pytest.fixture
def records(make_grade):
    """Take the records of a system given as query -> verdict; "" is an answer without a grade."""

    def take(verdicts, *, queries=(), gradable=None, documents=None, **changes):
        grades = {q: make_grade(q, verdict) for q, verdict in verdicts.items() if verdict != ""}
        for query_id, change in changes.items():
            grades[query_id] = AnswerGrade.model_validate(
                {**grades[query_id].model_dump(), **change}
            )
        return SystemRecords(
            "sys",
            {q: Answer(query_id=q, answer="a") for q in verdicts},
            grades,
            frozenset(),
            frozenset(verdicts if gradable is None else gradable),
            {query.query_id: query for query in queries},
            documents or {},
        )

    return take


def test_rates_of_a_set_counted_by_hand(records):
    """Two correct, one partial, one incorrect, one silent, one failed, one never answered."""
    verdicts = dict(
        zip("abcdef", ["correct", "correct", "partial", "incorrect", "not_attempted", None],
            strict=True)
    )  # fmt: skip

    found = answer_rates(records(verdicts, gradable="abcdefg"))

    assert {name: rate.mean for name, rate in found.items()} == {
        "correct": 0.4,
        "partial": 0.2,
        "incorrect": 0.2,
        "not_attempted": 0.2,
        "correct_given_attempted": 0.5,
        "correct_harmonic_mean": 4 / 9,
        "score": 0.5,
        "strict_score": 0.4,
        "hallucination": 0.2,
        "decided_by_rule": 0.0,
    }
    assert {name: rate.bounds for name, rate in found.items()} == {
        "correct": Ends(2 / 7, 4 / 7),
        "partial": Ends(1 / 7, 3 / 7),
        "incorrect": Ends(1 / 7, 3 / 7),
        "not_attempted": Ends(1 / 7, 3 / 7),
        "correct_given_attempted": Ends(2 / 6, 4 / 6),
        "correct_harmonic_mean": Ends(4 / 13, 8 / 13),
        "score": Ends(2.5 / 7, 4.5 / 7),
        "strict_score": Ends(2 / 7, 4 / 7),
        "hallucination": Ends(1 / 6, 2 / 6),
        "decided_by_rule": Ends(0.0, 2 / 7),
    }
    assert {(rate.n_failed, rate.n_absent) for name, rate in found.items()} == {(1, 1), (1, 0)}


def test_no_answers_have_no_rates(records):
    """Neither 0 nor 1 nor NaN is what is known of a system that was never asked."""
    assert set(answer_rates(records({})).values()) == {Rate(None, None, None, 0)}


@pytest.mark.parametrize("name", sorted(RATES.keys() - {"hallucination"}))
def test_failures_alone_say_nothing(records, name):
    """A judge that is down must make no system look bad or good."""
    found = RATES[name](records({"a": None, "b": None}))

    assert found == Rate(None, None, Ends(0.0, 1.0), 0, 2)


def test_answers_that_were_not_checked_are_in_the_bounds_of_hallucination(records):
    """A rate over the half that was checked is not known of the whole."""
    found = answer_rates(records({"a": "correct", "b": "correct"}, b={"has_hallucination": None}))

    assert found["hallucination"] == Rate(0.0, None, Ends(0.0, 0.5), 1, 0, 1)


def test_a_query_without_an_answer_claims_nothing(records):
    """There is no text that could be made up."""
    found = answer_rates(records({"a": "correct"}, gradable="ab"))

    assert found["hallucination"].bounds == Ends(0.0, 0.0)


def test_strict_score_is_that_of_the_facts_where_there_is_one(records):
    """Half of the facts, one of them in part: 0.5 counts and 0.75 does not."""
    found = answer_rates(records({"a": "partial"}, a={"score": 0.75, "strict_score": 0.5}))

    assert (found["score"].mean, found["strict_score"].mean) == (0.75, 0.5)


def test_share_decided_by_rule(records):
    """Whoever pays for a judge wants to know how often it was asked."""
    found = answer_rates(records({"a": "correct", "b": "correct"}, a={"rule": "exact match"}))

    assert found["decided_by_rule"].mean == 0.5


def query(query_id, **fields):
    return Query(query_id=query_id, query="?", expected_answer="!", **fields)


def test_slices_have_their_own_failures_and_bounds(records):
    """A failure that is spread over all slices would hide where the judge fails."""
    queries = [
        query("a", difficulty="easy"),
        query("b", difficulty="hard"),
        query("c", difficulty="hard"),
        query("d"),
    ]

    found = answer_slices(records({"a": "correct", "b": None, "c": "partial", "d": "correct"},
                                  queries=queries))  # fmt: skip

    hard = next(part for part in found if part.value == "hard")
    assert hard.n_queries == 2
    assert hard.rates["score"] == Rate(0.5, None, Ends(0.25, 0.75), 1, 1)
    assert hard.rates["correct"].bounds == Ends(0.0, 0.5)
    values = [part.value for part in found if part.dimension == "difficulty"]
    assert values == ["easy", "hard", "not set"]


def test_queries_without_any_answer_are_in_their_slice(records):
    """A system that leaves out a language has a gap there, and not a smaller slice."""
    queries = [query("a", language="de"), query("b", language="de")]

    found = answer_slices(records({"a": "correct"}, queries=queries, gradable="ab"))

    german = next(part for part in found if part.dimension == "language")
    assert (german.n_queries, german.rates["score"].n_absent) == (2, 1)


@pytest.mark.parametrize(("n", "is_small"), [(4, True), (5, False)])
def test_slices_of_fewer_than_five_answers_are_too_small_to_read(records, n, is_small):
    """Four answers say next to nothing, whatever their mean is."""
    ids = "abcde"[:n]

    found = answer_slices(records(dict.fromkeys(ids, "correct"), queries=map(query, ids)))

    assert {part.is_small for part in found} == {is_small}


def test_documents_are_those_of_the_evidence_or_of_the_source_chunks(records):
    """A query whose answer is in two documents counts in both."""
    quotes = tuple(
        Evidence(doc_id=doc_id, chunk_id="c", quote="x") for doc_id in ("one.md", "two.md")
    )
    queries = [
        query("a", evidence=quotes),
        query("b", source_chunk_ids=("c7", "gone")),
        query("c"),
    ]

    found = answer_slices(
        records(dict.fromkeys("abc", "correct"), queries=queries, documents={"c7": "one.md"})
    )

    sizes = {part.value: part.n_queries for part in found if part.dimension == "document"}
    assert sizes == {"one.md": 2, "two.md": 1, "not set": 1}


def test_source_chunks_are_looked_up_in_the_dataset(new_dataset, make_grade):
    """The documents of a set without quotes are known by its chunks only."""
    made = new_dataset()
    made.write_chunks([Chunk(chunk_id="c1", doc_id="guide.md", text="x")])
    made.write_queries([query("q", source_chunk_ids=("c1",))])
    made.write_answers("own", [Answer(query_id="q", answer="!")])
    made.write_answer_grades("own", [make_grade("q", "correct")])

    [item] = summarise(made).answers

    assert [part.value for part in item.slices if part.dimension == "document"] == ["guide.md"]


def lengthy(records, pairs):
    made = records(
        {f"q{n}": verdict for n, (_, verdict, _) in enumerate(pairs)},
        **{f"q{n}": {"score": score} for n, (_, _, score) in enumerate(pairs)},
    )
    for n, (length, _, _) in enumerate(pairs):
        made.answers[f"q{n}"] = Answer(query_id=f"q{n}", answer="x" * length)
    return made


def test_a_judge_that_likes_length_is_flagged(records):
    """Scores that rise by 0.1 with every doubling: 0.1 / ln 2 per unit of the logarithm."""
    noise = [0.001, -0.001] * 4
    pairs = [(2**n, "partial", 0.1 * n + noise[n]) for n in range(1, 8)]

    found = check_length(lengthy(records, pairs))

    assert found.slope.slope == pytest.approx(0.1443, abs=2e-3)
    assert found.is_suspicious


def test_refusals_are_no_sign_of_a_taste_for_length(records):
    """They are short and score 0 by right."""
    pairs = [(5, "not_attempted", 0.0)] * 20 + [(100 + n, "correct", 1.0) for n in range(20)]

    found = check_length(lengthy(records, pairs))

    assert (found.slope.n, found.is_suspicious) == (20, False)


def test_empty_answers_have_no_logarithm(records):
    """They are passed over and stop nothing."""
    pairs = [(0, "incorrect", 0.0), (9, "correct", 1.0)]

    found = check_length(lengthy(records, pairs))

    assert (found.slope.n, found.slope.slope, found.is_suspicious) == (1, None, False)
