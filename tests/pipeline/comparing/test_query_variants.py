"""Ten questions in five wordings each are no fifty questions."""

import random

import pytest

from ragforge.config import EvaluateSettings
from ragforge.evaluating.evaluation_data import load_evaluation_data
from ragforge.evaluating.gate import Rules, Threshold
from ragforge.evaluating.query_variants import query_variants
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.comparing.answers import compare_answers
from ragforge.pipeline.comparing.runs import compare_runs
from ragforge.pipeline.gating.verdict import check_run, evaluate_for
from ragforge.records import (
    Answer,
    AnswerGrade,
    Chunk,
    Evidence,
    Hit,
    Judgment,
    Provenance,
    Query,
    Ranking,
)

N_QUESTIONS, N_WORDINGS = 10, 5
ANN = Provenance(kind="human", model="ann")
RULES = Rules(least=(Threshold("RR", 0.5),))
RR = EvaluateSettings(measures=("RR",))
IDS = [f"q{n}-{w}" for n in range(N_QUESTIONS) for w in range(N_WORDINGS)]


def question_of(query_id):
    return int(query_id[1:].partition("-")[0])


def asked(query_id, **fields):
    """Return a wording of a question; all of one have the answer and the chunk of that."""
    answer = f"It is answer number {question_of(query_id)}."
    said = {"query": f"{query_id}?", "expected_answer": answer, "origin": "human"}
    return Query(query_id=query_id, **{**said, **fields})


def label(query_id, chunk_id, level="chunk"):
    return Judgment(
        query_id=query_id,
        chunk_id=chunk_id,
        grade=3,
        source="human",
        level=level,
        provenance=ANN,
    )


def a_set(folder, queries):
    made = create_dataset(folder / "set", {})
    texts = [Chunk(chunk_id=f"c{n}", doc_id=f"{n}.md", text=f"Text {n}.") for n in range(20)]
    made.write_chunks(texts)
    made.write_queries(queries)
    made.add_judgments(label(query_id, f"c{question_of(query_id)}") for query_id in IDS)
    return made


def ranking(query_id, rank):
    """Return a ranking with the relevant chunk at a rank from 1."""
    names = [f"c{n}" for n in range(10, 20)]
    names.insert(rank - 1, f"c{question_of(query_id)}")
    hits = tuple(Hit(chunk_id=name, score=-float(at)) for at, name in enumerate(names))
    return Ranking(query_id=query_id, ranking=hits)


def by_chance(seed):
    """Return ranks by question: what a retriever finds for one wording, it finds for all."""
    draw = random.Random(seed)
    return [draw.randint(1, 4) for _ in range(N_QUESTIONS)]


def with_runs(dataset, ranks_a, ranks_b):
    for name, ranks in (("a", ranks_a), ("b", ranks_b)):
        dataset.write_run(name, [ranking(one, ranks[question_of(one)]) for one in IDS])
    return dataset


def outcomes(dataset, n_draws):
    """Return what comparisons of runs that are equally good say."""
    found = []
    for seed in range(n_draws):
        with_runs(dataset, by_chance(2 * seed), by_chance(2 * seed + 1))
        [item] = compare_runs(dataset, ["a", "b"], RR).items
        found.append(item)
    return found


def test_wordings_of_a_few_questions_name_no_winner_by_chance(tmp_path):
    """By all of them four draws of ten had one."""
    items = outcomes(a_set(tmp_path, map(asked, IDS)), 40)

    assert sum(item.comparison.winner in ("A", "B") for item in items) >= 10
    assert sum(item.better is not None for item in items) <= 4
    reason = "40 of 50 queries ask for what another one asks for, and with each question counted"
    assert any(item.withheld.startswith(reason) for item in items)


def test_what_each_question_shows_has_a_winner(tmp_path):
    """Wordings take nothing from it."""
    dataset = with_runs(a_set(tmp_path, map(asked, IDS)), [3] * 10, [1] * 9 + [2])

    [item] = compare_runs(dataset, ["a", "b"], RR).items

    assert item.better == "b"


def test_it_is_told_where_intervals_take_wordings_for_queries(tmp_path):
    """Of a mean there is nothing to hold them against."""
    dataset = with_runs(a_set(tmp_path, map(asked, IDS)), [1] * 10, [2] * 10)
    told = "40 of 50 queries ask for what another one asks for (the same answer and evidence)"

    compared = compare_runs(dataset, ["a", "b"], RR)
    verdict = check_run(dataset, evaluate_for(RULES, dataset, "a", RR), RULES)

    for notes in (compared.warnings, load_evaluation_data(dataset).run_warnings, verdict.notes):
        assert sum(note.startswith(told) for note in notes) == 1


def test_few_wordings_are_not_told(tmp_path):
    """They hardly move an interval."""
    kept = [one for one in IDS if one.endswith("-0")] + ["q1-1"]
    dataset = with_runs(a_set(tmp_path, map(asked, kept)), [1] * 10, [2] * 10)

    assert not any("asks for" in note for note in load_evaluation_data(dataset).run_warnings)


def test_systems_answers_to_wordings_count_once_too(tmp_path):
    """One that knows seven of ten questions is not shown to be better than one that knows five."""
    dataset = a_set(tmp_path, map(asked, IDS))
    for name, known in (("old", {0, 1, 2, 3}), ("new", {1, 2, 3, 4, 5, 6, 7})):
        dataset.write_answers(name, [Answer(query_id=one, answer="So.") for one in IDS])
        dataset.write_answer_grades(
            name,
            [
                AnswerGrade(
                    query_id=one,
                    verdict="correct" if question_of(one) in known else "incorrect",
                    score=float(question_of(one) in known),
                    has_hallucination=False,
                    provenance=Provenance(kind="llm", model="m", prompt="p"),
                )
                for one in IDS
            ],
        )

    report = compare_answers(dataset, ["old", "new"], EvaluateSettings())

    [item] = [one for one in report.items if one.comparison.measure == "correct"]
    assert any(text.startswith("40 of 50 queries ask for") for text in report.warnings)
    assert item.comparison.winner == "B"
    assert item.outcome == "UNKNOWN"


def quoted(query_id, quote, answer="Yes."):
    evidence = (Evidence(doc_id="a.md", chunk_id="c1", quote=quote),)
    return asked(query_id, expected_answer=answer, evidence=evidence)


@pytest.mark.parametrize(
    ("one", "other", "are_variants"),
    [
        (asked("q1-0"), asked("q1-1"), True),
        (asked("q1-0"), asked("q1-1", expected_answer="IT IS answer  number 1"), True),
        (asked("q1-0"), asked("q1-1", expected_answer="Another answer."), False),
        (asked("q1-0", expected_answer=None), asked("q1-1", expected_answer=None), False),
        (
            asked("q1-0", expected_answer="Enterprise"),
            asked("q2-0", expected_answer="Enterprise"),
            False,
        ),
        (asked("q1-0", expected_answer="Yes."), asked("q1-1", expected_answer="Yes."), False),
        (asked("q1-0", expected_answer="False."), asked("q1-1", expected_answer="False."), False),
        (asked("q1-0", answerable=False), asked("q1-1", answerable=False), False),
        (asked("d1-0"), asked("d1-1"), False),
        (
            asked("d1-0", expected_answer="A charge of ten percent of all."),
            asked("d1-1", expected_answer="A charge of ten percent of all."),
            True,
        ),
        (quoted("q1-0", "-5 to 5", "-5"), quoted("q1-1", "-5 to 5", "5"), False),
        (quoted("q1-0", "-5 to 5", "5"), quoted("q1-1", "-5 to 5", "5."), True),
        (quoted("q1-0", "Fees are due."), quoted("q1-1", "fees are due"), True),
        (quoted("q1-0", "Fees are due."), quoted("q1-1", "Parcels are free."), False),
        (
            asked("x1-0", expected_answer="A charge of ten percent of all."),
            asked("x2-0", expected_answer="A charge of ten percent of all."),
            True,
        ),
        (
            asked("x1-0", expected_answer="Ten percent."),
            asked("x2-0", expected_answer="Ten percent."),
            False,
        ),
    ],
)
def test_variants_share_their_answer_and_where_it_stands(tmp_path, one, other, are_variants):
    """Questions with the answer "Yes." about one page may be any."""
    dataset = a_set(tmp_path, [one, other])
    dataset.add_judgments(label(f"d1-{n}", "1.md", level="document") for n in range(2))

    expected = {other.query_id: one.query_id} if are_variants else {}

    assert query_variants(dataset, [one, other]) == expected


def test_questions_that_are_all_to_be_refused_are_not_one(tmp_path):
    """Their expected answers read alike, as there is nothing to tell."""
    told = "The documents do not contain this information."
    queries = [
        asked(one, expected_answer=told, answerable=False, expected_behaviour="abstain")
        for one in ("q1-0", "q2-0")
    ]

    assert query_variants(create_dataset(tmp_path / "set", {}), queries) == {}
