"""Judges beside people, by labels alone."""

from zlib import crc32

import numpy as np
import pytest

from ragforge.calibration.judge_table import report_agreement
from ragforge.calibration.label_files import Labels, PairKey
from ragforge.errors import DataError
from ragforge.pipeline.judge_table import compare_judge_files
from ragforge.report.judge_table import judge_table_text


def labels(name: str, grades: dict[tuple[str, str], int], **others) -> Labels:
    """Return labels of one labeller."""
    return Labels(
        name,
        {"": {PairKey(*pair): grade for pair, grade in grades.items()}, **others},
        frozenset(),
        {},
        {},
    )


def pool(seed: int = 1, n_queries: int = 12) -> dict[tuple[str, str], int]:
    """Return grades of 20 texts a query."""
    generator = np.random.default_rng(seed)
    return {
        (f"q{query}", f"d{text}"): int(generator.choice(4, p=(0.5, 0.2, 0.2, 0.1)))
        for query in range(n_queries)
        for text in range(20)
    }


def test_judges_stand_in_the_order_of_their_quadratic_kappa():
    """With thirty judges the best one is looked for first."""
    people = pool()
    rough = {pair: min(grade + int(pair[1][1:]) % 2, 3) for pair, grade in people.items()}
    same = labels("same", people)

    report = report_agreement(labels("people", people), [labels("rough", rough), same])

    assert [judge.name for judge in report.judges] == ["same", "rough"]
    assert report.judges[0].agreement.graders[0].figures["kappa"].value == 1.0


def test_only_pairs_that_both_graded_count():
    """Pairs of one file alone are counted, and are no disagreement."""
    people = pool()
    judge = dict(list(people.items())[:100]) | {("q99", "d1"): 2}

    [found] = report_agreement(labels("people", people), [labels("judge", judge)]).judges

    assert found.agreement.n_pairs == 100
    assert found.n_ungraded == len(people) - 100
    assert found.n_unlabelled == 1


def test_queries_come_with_the_largest_bias_first():
    """There the judge reads the query otherwise than people do."""
    people = pool()
    judge = {pair: 3 if pair[0] == "q7" else grade for pair, grade in people.items()}

    [found] = report_agreement(labels("people", people), [labels("judge", judge)]).judges

    assert found.by_query[0].query_id == "q7"
    assert found.by_query[0].bias > 1
    assert found.by_query[1].bias == 0


def test_the_order_of_runs_by_a_judge_who_reverses_grades_is_reversed():
    """What a judge is for is ordering systems."""
    people = pool()
    ranked = {
        f"skill{skill}": {
            f"q{query}": sorted(
                (f"d{text}" for text in range(20)),
                key=lambda text, query=query, skill=skill: (
                    -(
                        people[f"q{query}", text] * skill
                        + crc32(f"{query} {text}".encode()) % 7 / 7 * (4 - skill)
                    )
                ),
            )
            for query in range(12)
        }
        for skill in (1, 2, 3, 4)
    }
    reverse = {pair: 3 - grade for pair, grade in people.items()}

    report = report_agreement(
        labels("people", people),
        [labels("same", people), labels("reverse", reverse)],
        runs=ranked,
    )

    orders = {judge.name: judge.order.tau for judge in report.judges}
    assert orders["same"] == 1.0
    assert orders["reverse"] < 0


def test_two_labellers_tell_what_a_judge_could_reach():
    """People do not agree with each other either."""
    people = pool()
    second = {PairKey(*pair): min(grade + 1, 3) for pair, grade in people.items()}
    human = Labels(
        "people",
        {"ann": {PairKey(*pair): grade for pair, grade in people.items()}, "bob": second},
        frozenset(),
        {},
        {},
    )

    report = report_agreement(human, [labels("judge", people)])

    assert report.labellers == ("ann", "bob")
    assert report.people is not None
    assert report.people.agreement.graders[0].figures["kappa"].value < 1


def two_people() -> Labels:
    """Return labels of two, of whom the second grades every other pair one higher."""
    first = {PairKey(*pair): min(grade, 2) for pair, grade in pool().items()}
    second = {pair: grade + int(pair.chunk_id[1:]) % 2 for pair, grade in first.items()}
    return Labels("people", {"ann": first, "bob": second}, frozenset(), {}, {})


def test_a_judge_is_held_against_the_mean_of_those_who_label():
    """Halves that are rounded one way look like a bias of the judge."""
    human = two_people()
    coin = {pair: index % 2 for index, pair in enumerate(sorted(human.by_labeller["ann"]))}
    between = {
        pair: (human.by_labeller["ann"], human.by_labeller["bob"])[coin[pair]][pair]
        for pair in coin
    }
    mean = {
        pair: (human.by_labeller["ann"][pair] + human.by_labeller["bob"][pair]) / 2 for pair in coin
    }
    expected = sum(between[pair] - mean[pair] for pair in coin) / len(coin)

    [found] = report_agreement(human, [labels("judge", between)]).judges

    assert found.agreement.graders[0].figures["bias"].value == pytest.approx(expected)
    assert found.agreement.n_pairs == len(coin)


def test_kappa_with_several_people_is_that_with_one_of_them_at_random():
    """Counts of both together are those of each, halved."""
    human = two_people()
    judge = labels("judge", pool(2))

    [found] = report_agreement(human, [judge]).judges

    alone = [
        report_agreement(Labels("one", {name: of}, frozenset(), {}, {}), [judge]).judges[0]
        for name, of in human.by_labeller.items()
    ]
    both = np.mean([each.agreement.graders[0].counts for each in alone], axis=0)
    assert np.array(found.agreement.graders[0].counts) == pytest.approx(both)
    assert found.by_query[0].bias == pytest.approx(
        np.mean(
            [q.bias for a in alone for q in a.by_query if q.query_id == found.by_query[0].query_id]
        )
    )


def test_judges_of_other_pairs_are_refused():
    """Ids that go by other names would give a table of nothing."""
    with pytest.raises(DataError, match="judge: graded none of the 240 pairs"):
        report_agreement(labels("people", pool()), [labels("judge", {("x", "y"): 1})])


def test_a_judge_of_other_pairs_does_not_take_the_table_of_the_others():
    """Of thirty files one may be another set's; it is named below."""
    other = labels("stray", {("x", "y"): 1})

    found = report_agreement(labels("people", pool()), [other, labels("judge", pool())])

    assert [judge.name for judge in found.judges] == ["judge"]
    assert "stray: left out, as it graded no pair" in judge_table_text(found)


def test_a_judge_goes_by_the_whole_name_of_its_file(tmp_path):
    """Models have dots in their names: `gpt-4` would be another one."""
    for name in ("people.trec", "gpt-4.1.trec", "gpt-4.5.qrels"):
        (tmp_path / name).write_text("q1 0 d1 2\nq2 0 d1 0\n")

    judges = [tmp_path / "gpt-4.1.trec", tmp_path / "gpt-4.5.qrels"]
    found = compare_judge_files(tmp_path / "people.trec", judges)

    assert [judge.name for judge in found.report.judges] == ["gpt-4.1", "gpt-4.5"]


def test_the_judge_of_labelled_pairs_is_looked_for_where_it_went(tmp_path):
    """A set's judgments hold people's grades in the place of the judge's."""
    (tmp_path / "people.trec").write_text("q1 0 d1 3\n")
    (tmp_path / "judgments.jsonl").write_text(
        '{"query_id": "q1", "chunk_id": "d1", "grade": 3, "source": "human"}\n'
        '{"query_id": "q1", "chunk_id": "d2", "grade": 1, "source": "judge"}\n'
    )

    with pytest.raises(DataError, match="is in its label_checks"):
        compare_judge_files(tmp_path / "people.trec", [tmp_path / "judgments.jsonl"])
