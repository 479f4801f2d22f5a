"""Correcting measures by labels."""

from itertools import product

import pytest
from labelled_sets import N_CHUNKS, as_label, drawn, graded_set, label_all, place_of, ranked, truth

import ragforge as rf
from ragforge.calibration.correcting import apply_labels
from ragforge.calibration.population import Question
from ragforge.errors import DataError, UsageError
from ragforge.files.set.calibrations import calibration_files
from ragforge.records import Failure, Judgment, Provenance
from ragforge.report.calibration import calibration_text

PRECISION = Question(("a", "b"), ("P@10",))


def precision(made, run):
    """Return what the person says of a run, in full."""
    values = []
    for ranking in made.run(run):
        hits = sorted(ranking.ranking, key=lambda hit: -hit.score)[:10]
        places = [(int(ranking.query_id[1:]), int(hit.chunk_id[-2:])) for hit in hits]
        values.append(sum(truth(*place) >= 2 for place in places) / 10)
    return sum(values) / len(values)


def applied(made, **options):
    """Return the calibration of a set, as its labels have it."""
    return apply_labels(made, calibration_files(made), **options)


def failing(made, name, n_failed):
    """Let a run fail on the first queries."""
    rankings = list(made.run(name))
    made.write_run(name, rankings[n_failed:])
    failed = [
        Failure(what="retrieve", key=f"{name}/{of.query_id}", kind="error", message="503")
        for of in rankings[:n_failed]
    ]
    made.replace_failures("retrieve", failed, lambda _: True)


def test_a_level_is_over_all_queries_of_its_run_whatever_another_failed_on(tmp_path):
    """Where another run is down on what this one is bad at, it is no better for it."""
    made = graded_set(tmp_path)
    failing(made, "b", 15)
    drawn(made, 10_000, PRECISION)
    label_all(made)

    found = applied(made)

    [level, other] = (found.figure("P@10", run) for run in ("a", "b"))
    assert (level.n_queries, other.n_queries) == (30, 15)
    assert level.corrected.value == pytest.approx(precision(made, "a"), abs=1e-12)
    assert other.corrected.value == pytest.approx(precision(made, "b"), abs=1e-12)
    assert found.warnings[-1] == (
        "left out of b and its differences: 15 queries on which it failed"
    )


def test_a_difference_is_over_the_queries_that_neither_run_failed_on(tmp_path):
    """By hand from all labels: on the others there is nothing to hold against each other."""
    made = graded_set(tmp_path)
    alone = [ranking for ranking in made.run("a") if ranking.query_id >= "q00015"]
    failing(made, "b", 15)
    drawn(made, 10_000, PRECISION)
    label_all(made)

    found = applied(made).figure("P@10", "b", "a")

    made.write_run("a", alone)
    apart = precision(made, "b") - precision(made, "a")
    assert (found.n_queries, found.corrected.value) == (15, pytest.approx(apart, abs=1e-12))


def test_a_sampled_level_counts_all_queries_of_its_run(tmp_path):
    """Labels on a part of the pairs estimate the same mean."""
    made = graded_set(tmp_path)
    failing(made, "b", 15)
    drawn(made, 150, PRECISION)
    label_all(made)

    found = applied(made).figure("P@10", "a").corrected

    assert found.low < precision(made, "a") < found.high


def test_a_sample_without_the_queries_that_a_run_failed_on_fits_no_more(tmp_path):
    """It has no pair of them: a level by it would be of other queries than the run's."""
    made = graded_set(tmp_path)
    failing(made, "b", 15)
    files = calibration_files(made)
    drawn(made, 100, Question(("a", "b"), ("P@10",), "differences"))
    files.write_sample(files.sample().model_copy(update={"of": "both"}))

    with pytest.raises(DataError, match="it is of 15 queries, and there are 30"):
        applied(made)


def test_the_interval_holds_what_people_say_of_all(tmp_path):
    """It is what the labels are for."""
    made = graded_set(tmp_path)
    drawn(made, 150)
    label_all(made)

    found = applied(made).figure("P@10", "b", "a").corrected

    assert found.low < precision(made, "b") - precision(made, "a") < found.high


def test_a_judge_makes_the_interval_of_dcg_narrower(tmp_path):
    """Else there would be no need of one."""
    made = graded_set(tmp_path)
    drawn(made, 150)
    label_all(made)

    assert applied(made).figure("DCG@10", "a").judges_share > 0.05


def test_a_census_is_exact(tmp_path):
    """Where all is labelled nothing is left to chance."""
    made = graded_set(tmp_path)
    drawn(made, 10_000, PRECISION)
    label_all(made)

    found = applied(made).figure("P@10", "a")

    assert found.n == found.n_pairs
    assert found.corrected.value == pytest.approx(precision(made, "a"), abs=1e-12)
    assert (found.corrected.low, found.corrected.high) == (found.corrected.value,) * 2


def test_a_census_of_ndcg_is_what_people_would_measure(tmp_path):
    """No model of the grades is left to allow for."""
    made = graded_set(tmp_path, text=lambda q, c: f"Text {c // 2} on subject {q}.")
    drawn(made, 10_000, Question(("a", "b"), ("nDCG@10",)))
    label_all(made, grade=lambda q, c: truth(q, c - c % 2))

    found = applied(made, model_assisted=True)

    qrels, means = {}, {}
    for query, chunk in product(range(30), range(N_CHUNKS)):
        of_query = qrels.setdefault(f"q{query:05}", {})
        of_query[f"c{query:05}-{chunk:02}"] = truth(query, chunk - chunk % 2)
    for name in ("a", "b"):
        rankings = {of.query_id: of.ranking for of in made.run(name)}
        run = {key: {hit.chunk_id: hit.score for hit in of} for key, of in rankings.items()}
        means[name] = rf.evaluate(qrels, run, ["nDCG@10"]).mean("nDCG@10")
    level, apart = found.figure("nDCG@10", "a"), found.figure("nDCG@10", "b", "a")
    assert level.corrected.value == pytest.approx(means["a"], abs=1e-12)
    assert apart.corrected.value == pytest.approx(means["b"] - means["a"], abs=1e-12)
    assert (level.corrected.low, level.corrected.high) == (level.corrected.value,) * 2
    assert apart.corrected.wide_low < apart.corrected.low
    assert "model-assisted" not in calibration_text(found)


def test_near_a_census_the_rest_is_asked_for(tmp_path):
    """The few others would decide the interval, which is too short then."""
    made = graded_set(tmp_path)
    n = drawn(made, 10_000, Question(("a",), ("P@10",), "levels")).sample.n_pairs
    label_all(made, most=n - 3)

    [found] = applied(made).figures

    assert "label the 3 that are left" in found.refused


def test_with_too_few_labels_nothing_is_corrected(tmp_path):
    """An interval of six labels is one of six labels."""
    made = graded_set(tmp_path)
    drawn(made, 100)
    label_all(made, most=6)

    found = applied(made).figure("P@10", "a")

    assert found.corrected is None
    assert "expected at least 15" in found.refused


@pytest.mark.parametrize("grade", [0, 3])
def test_labels_that_all_say_the_same_give_no_interval(tmp_path, grade):
    """Sixty zeros are no proof that there is nothing: an interval of no width would say so."""
    made = graded_set(tmp_path)
    drawn(made, 60)
    label_all(made, grade=lambda query, chunk: grade)

    found = applied(made)

    assert {figure.corrected for figure in found.figures} == {None}
    assert all("labels say the same" in figure.refused for figure in found.figures)


def test_two_labellers_who_contradict_each_other_throughout_give_no_certainty(tmp_path):
    """Half a vote on each pair is no spread, and no knowledge."""
    made = graded_set(tmp_path)
    drawn(made, 80)
    label_all(made, grade=truth)
    label_all(made, labeller="bob", grade=lambda query, chunk: 3 - truth(query, chunk))

    found = applied(made)

    assert {figure.corrected for figure in found.figures} == {None}


def test_no_interval_leaves_the_range_of_its_measure(tmp_path):
    """A precision below 0 is none."""
    made = graded_set(tmp_path)
    drawn(made, 60)
    label_all(made, grade=lambda query, chunk: 3 if (query + chunk) % 9 == 0 else 0)

    lows = [figure.corrected.wide_low for figure in applied(made).figures if not figure.against]

    assert min(lows) == 0


def test_labels_count_up_to_the_first_gap(tmp_path):
    """Whoever picks what to label makes a sample of unknown probabilities."""
    made = graded_set(tmp_path)
    pairs = drawn(made, 100).sample.pairs
    picked = [*pairs[:40], *pairs[60:]]
    calibration_files(made).add_labels(as_label(p, truth(*place_of(p))) for p in picked)

    counts = applied(made).labels

    assert (counts.n_used, counts.n_beyond, counts.n_open) == (40, 40, 20)


def test_a_skipped_pair_is_no_gap(tmp_path):
    """People may not know; that must not stop the sample."""
    made = graded_set(tmp_path)
    drawn(made, 100)
    label_all(made, grade=lambda q, c: None if c == 3 else truth(q, c))

    counts = applied(made).labels

    assert counts.n_skipped > 0
    assert counts.n_used + counts.n_skipped == 100


def test_a_stratum_without_labels_joins_its_neighbour(tmp_path):
    """A kind of which all pairs were skipped must not divide by 0."""
    made = graded_set(tmp_path)
    strata = {pair.chunk_id: pair.stratum for pair in drawn(made, 150).sample.pairs}
    gone = min(strata.values())
    files = calibration_files(made)
    files.add_labels(
        as_label(p, None if p.stratum == gone else truth(*place_of(p)))
        for p in files.sample().pairs
    )

    assert applied(made).figure("P@10", "a").corrected is not None


def test_peoples_grades_in_the_set_count_where_the_sample_drew_them(tmp_path):
    """They were chosen by hand: elsewhere nobody knows how likely."""
    made = graded_set(tmp_path)
    sample = drawn(made, 60).sample
    label_all(made, most=59)
    pair = sample.pairs[59]
    drawn_ids = {each.chunk_id for each in sample.pairs}
    other = next(j for j in made.judgments() if j.chunk_id not in drawn_ids)
    made.add_judgments(iter(sorted((_by_hand(pair), _by_hand(other)), key=_key)))
    made.write_label_checks(_checks(made))

    counts = applied(made).labels

    assert (counts.n_used, counts.n_existing, counts.n_by_hand) == (60, 1, 1)


@pytest.mark.parametrize("n_queries", [2, 3, 5])
def test_queries_that_are_all_alike_leave_open_how_others_are(tmp_path, n_queries):
    """Five of five are no law: an interval of no width would name a winner for certain."""
    made = graded_set(tmp_path, n_queries)
    for name, chunks in (("a", range(8)), ("b", range(8, 16))):
        made.write_run(name, [ranked(q, chunks) for q in range(n_queries)])
    drawn(made, 1000, Question(("a", "b"), ("P@5", "DCG@5")))
    label_all(made, grade=lambda query, chunk: 3 if chunk < 8 else 0)

    found = applied(made)

    assert found.figure("P@5", "b", "a").corrected.low == -1.0
    assert found.figure("P@5", "b", "a").corrected.wide_high > 0
    assert found.figure("DCG@5", "b", "a").corrected.wide_high > 0
    assert found.figure("P@5", "a").corrected.wide_low < 0.5


def test_runs_alike_on_these_queries_may_differ_on_others(tmp_path):
    """They differ below the cutoff, so that they are not one system."""
    made = graded_set(tmp_path)
    for name, last in (("a", 14), ("b", 15)):
        made.write_run(name, [ranked(q, [*range(10), last]) for q in range(30)])
    drawn(made, 1000, PRECISION)
    label_all(made)

    found = applied(made).figure("P@10", "b", "a").corrected

    assert (found.low, found.high) == (0.0, 0.0)
    assert found.wide_low < 0.0 < found.wide_high


def test_one_query_has_no_interval_for_queries_like_it(tmp_path):
    """One says nothing of how queries differ."""
    made = graded_set(tmp_path, 1)
    drawn(made, 1000, Question(("a",), ("P@10",), "levels"))
    label_all(made)

    found = applied(made).figure("P@10", "a").corrected

    assert (found.wide_low, found.wide_high) == (None, None)
    assert found.low == found.high


def test_a_run_that_changed_after_sampling_is_refused(tmp_path):
    """Its pairs are others, and their probabilities too."""
    made = graded_set(tmp_path)
    drawn(made, 60)
    label_all(made)
    made.write_run("b", [r.model_copy(update={"ranking": r.ranking[5:]}) for r in made.run("b")])

    with pytest.raises(DataError, match="run b changed after sampling"):
        applied(made)


def test_another_judge_is_refused(tmp_path):
    """Labels correct the judge whose grades they were drawn by."""
    made = graded_set(tmp_path)
    drawn(made, 60)
    other = Provenance(kind="llm", model="judge-2", prompt="p", prompt_sha256="cd" * 32)
    made.write_judgments(j.model_copy(update={"provenance": other}) for j in made.judgments())

    with pytest.raises(DataError, match=r"judge-1 with judge_relevance .* graded nothing"):
        applied(made)


def test_grades_that_another_parser_read_are_refused(tmp_path):
    """The same reply may have become another grade since."""
    made = graded_set(tmp_path)
    drawn(made)
    files = label_all(made)
    files.write_sample(files.sample().model_copy(update={"parser": "relevance replies 0"}))

    with pytest.raises(DataError, match="replies were read by 'relevance replies 0'"):
        applied(made)


def test_grades_that_changed_are_refused(tmp_path):
    """The strata are of the grades that were there."""
    made = graded_set(tmp_path)
    drawn(made, 60)
    made.write_judgments(j.model_copy(update={"grade": 1}) for j in made.judgments())

    with pytest.raises(DataError, match="the judge's grades changed after sampling"):
        applied(made)


def test_labels_on_chunks_that_are_gone_are_counted(tmp_path):
    """What was retrieved then was still right or wrong; that some texts are gone must be told."""
    made = graded_set(tmp_path)
    drawn(made, 100)
    files = label_all(made)
    lost = files.labels()[0].chunk_id
    made.write_chunks(chunk for chunk in made.chunks() if chunk.chunk_id != lost)

    found = applied(made)

    assert found.labels.n_vanished == 1
    assert "1 label on chunks that the set no longer has" in found.warnings


def test_labels_on_pairs_that_were_not_drawn_are_left_out(tmp_path):
    """Somebody added rows of an older file."""
    made = graded_set(tmp_path)
    pair = drawn(made, 60).sample.pairs[0]
    label_all(made)
    calibration_files(made).add_labels([as_label(pair.model_copy(update={"query_id": "q9"}), 2)])

    assert applied(made).labels.n_not_drawn == 1


def test_a_grade_outside_of_the_scale_is_refused_by_its_line(tmp_path):
    """A 7 would be the best text of all."""
    made = graded_set(tmp_path)
    drawn(made, 60)
    files = label_all(made)
    path = files.folder / "labels.jsonl"
    path.write_text(path.read_text().replace('"grade":0', '"grade":7', 1))

    with pytest.raises(DataError, match=r"labels\.jsonl:\d+: grade: "):
        applied(made)


def test_one_text_labelled_twice_and_differently_counts_by_the_mean(tmp_path):
    """Who imports labels by chunk may have two on one text."""
    made = graded_set(tmp_path, text=lambda q, c: f"Text {c // 2} on {q}.")
    drawn(made, 10_000, Question(("a",), ("DCG@10",), "levels"))
    files = label_all(made, grade=lambda q, c: 2)
    before = applied(made).figure("DCG@10", "a").corrected.value
    files.add_labels(
        as_label(p, 0).model_copy(update={"chunk_id": p.same_text[0]})
        for p in files.sample().pairs
        if p.same_text
    )

    assert applied(made).figure("DCG@10", "a").corrected.value < before


def test_two_labellers_who_differ_throughout_are_told(tmp_path):
    """No interval is worth more than the labels in it."""
    made = graded_set(tmp_path)
    drawn(made, 60)
    label_all(made)
    label_all(made, labeller="bob", grade=lambda q, c: 3 - truth(q, c))

    [warning] = [text for text in applied(made).warnings if "chance" in text]

    assert warning.startswith("ann and bob agree no better than chance")


def test_a_labeller_who_is_more_lenient_is_told_with_what_it_changes(tmp_path):
    """Two may agree well beyond chance, and a level hang on which of them was asked."""
    made = graded_set(tmp_path)
    drawn(made, 150)
    label_all(made)
    label_all(made, labeller="bob", most=80, grade=lambda q, c: min(truth(q, c) + (c % 2), 3))

    [warning] = [text for text in applied(made).warnings if "grade apart" in text]

    assert warning.startswith("ann and bob grade apart: by the 80 pairs that both graded, ann has ")
    assert "DCG@10 of a -" in warning
    assert "P@10 of b - a" not in warning


def test_labellers_who_slip_now_and_then_are_not_told_to_grade_apart(tmp_path):
    """Slips go both ways, and are in the interval as any spread is."""
    made = graded_set(tmp_path)
    drawn(made, 150)
    label_all(made)
    slips = lambda q, c: min(max(truth(q, c) + (-1, 0, 0, 0, 1)[(q * 7 + c) % 5], 0), 3)  # noqa: E731
    label_all(made, labeller="bob", grade=slips)

    assert not [text for text in applied(made).warnings if "grade apart" in text]


def test_what_settles_a_pair_counts_alone(tmp_path):
    """Two who differed agreed on it, or a third decided."""
    made = graded_set(tmp_path)
    drawn(made, 10_000, PRECISION)
    label_all(made)
    label_all(made, labeller="bob", grade=lambda q, c: 0)
    files = calibration_files(made)
    files.add_labels(
        as_label(p, truth(*place_of(p)), "both").model_copy(update={"decides": True})
        for p in files.sample().pairs
    )

    found = applied(made).figure("P@10", "a").corrected

    assert found.value == pytest.approx(precision(made, "a"), abs=1e-12)


def test_a_second_look_tells_how_sure_a_labeller_is(tmp_path):
    """Who says another thing each time is no yardstick."""
    made = graded_set(tmp_path)
    pairs = drawn(made, 60).sample.pairs
    files = label_all(made)
    files.add_labels(as_label(p, truth(*place_of(p)), look=2) for p in pairs if p.twice)

    [again] = applied(made).agreement

    assert (again.labeller, again.other, again.kappa) == ("ann", "ann", 1.0)
    assert applied(made).labels.n_used == 60


def test_failed_judgments_are_a_kind_of_their_own(tmp_path):
    """A failure is no grade 0, and labels say what such pairs are worth."""
    made = graded_set(tmp_path, judge=lambda q, c: None if (q + c) % 5 == 0 else 2)
    sample = drawn(made, 150).sample
    label_all(made)

    found = applied(made)

    assert None in {stratum.judged for stratum in sample.strata}
    assert found.n_ungraded > 0
    corrected = found.figure("P@10", "a").corrected
    assert corrected.low < precision(made, "a") < corrected.high


def test_a_judge_that_says_one_grade_adds_nothing(tmp_path):
    """Its share is 0, and that is said."""
    made = graded_set(tmp_path, judge=lambda q, c: 3)
    drawn(made, 150)
    label_all(made)

    found = applied(made)

    assert "the judge says 3 of all pairs: it adds nothing to the labels" in found.warnings
    assert found.figure("P@10", "a").judges_share == pytest.approx(0.0, abs=0.02)


def test_levels_of_ndcg_are_given_where_asked_for_alone(tmp_path):
    """They take a model at its word."""
    made = graded_set(tmp_path)
    drawn(made, 250, Question(("a", "b"), ("nDCG@10",)))
    label_all(made)

    names = [(f.run, f.against) for f in applied(made).figures]
    assisted = [(f.run, f.against) for f in applied(made, model_assisted=True).figures]

    assert names == [("b", "a")]
    assert assisted == [("a", ""), ("b", ""), ("b", "a")]


def test_levels_of_ndcg_are_told_to_come_out_low(tmp_path):
    """Their intervals allow for what the model gets wrong, and their values do not."""
    made = graded_set(tmp_path)
    drawn(made, 250, Question(("a", "b"), ("nDCG@10",)))
    label_all(made)

    assert "a level of nDCG comes out low" in calibration_text(applied(made, model_assisted=True))
    assert "a level of nDCG comes out low" not in calibration_text(applied(made))


def test_a_difference_of_ndcg_needs_a_hundred_labels(tmp_path):
    """With fewer its coverage is not known to hold."""
    made = graded_set(tmp_path)
    drawn(made, 80, Question(("a", "b"), ("nDCG@10",)))
    label_all(made)

    [found] = applied(made).figures

    assert found.corrected is None
    assert "at least 100 labels, got 80" in found.refused


def _by_hand(pair):
    return Judgment(query_id=pair.query_id, chunk_id=pair.chunk_id, grade=1, source="human")


def _checks(made):
    by_hand = {(j.query_id, j.chunk_id) for j in made.judgments() if j.source == "human"}
    before = graded_set(made.path.parent / "before")
    return [j for j in before.judgments() if (j.query_id, j.chunk_id) in by_hand]


def _key(judgment):
    return judgment.query_id, judgment.chunk_id


def test_many_skips_are_refused(tmp_path):
    """Whoever skips what is hard leaves a sample of what is easy."""
    made = graded_set(tmp_path)
    drawn(made, 150)
    label_all(made)
    files = calibration_files(made)
    labels = files.labels()
    skipped = [
        each.model_copy(update={"grade": None, "skipped": True}) if (each.grade or 0) >= 2 else each
        for each in labels
    ]
    files.write_labels(skipped)

    with pytest.raises(UsageError, match="were skipped: what people skip is seldom like"):
        applied(made)
