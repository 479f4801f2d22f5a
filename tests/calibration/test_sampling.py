"""Drawing pairs to label."""

import shlex
from dataclasses import replace

import pytest
from labelled_sets import AS_DRAWN, JUDGE, as_label, drawn, graded_set, label_all

import ragforge as rf
from ragforge.calibration.label_tasks import TakenLabels
from ragforge.calibration.population import Question
from ragforge.calibration.used_labels import use_labels
from ragforge.calibration.worded_labels import worded_labels
from ragforge.errors import DataError, UsageError
from ragforge.files.set.calibrations import calibration_files
from ragforge.pipeline.calibrating import sample_anew
from ragforge.pipeline.labelled_grades import put_into_judgments
from ragforge.records import Hit, Judgment, Ranking
from ragforge.report.calibration import sample_text


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A set of thirty queries, to be read only."""
    return graded_set(tmp_path_factory.mktemp("set"))


def test_a_larger_sample_goes_on_behind_the_smaller_one(tmp_path):
    """Labels that people gave must not be lost where some more are wanted."""
    made = graded_set(tmp_path)
    few = drawn(made, 60).sample

    many = drawn(made, 120)

    assert [p.chunk_id for p in many.sample.pairs[:60]] == [p.chunk_id for p in few.pairs]
    assert (many.n_before, len(many.sample.pairs)) == (60, 120)


def test_a_smaller_sample_takes_nothing_away(tmp_path):
    """The same command typed with the usual -n must not forget half of the work."""
    made = graded_set(tmp_path)
    drawn(made, 120)

    assert len(drawn(made, 60).sample.pairs) == 120


def test_a_pair_both_runs_have_at_one_weight_is_not_drawn_for_their_difference(tmp_path):
    """A label on it would say nothing of which is better."""
    made = graded_set(tmp_path)
    for name in ("a", "b"):
        made.write_run(name, _same_but_last(name))

    sample = drawn(made, 15, Question(("a", "b"), ("P@10",), "differences")).sample

    assert sample.n_pairs == 60


def test_what_no_run_retrieved_is_drawn_for_ndcg_alone(made):
    """Its ideal ranking is of all that is relevant."""
    n_of = {
        measure: drawn(made, 60, Question(("a", "b"), (measure,)), again=True).sample.n_pairs
        for measure in ("DCG@10", "nDCG@10")
    }

    assert n_of["DCG@10"] < n_of["nDCG@10"] == 30 * 16


def test_every_kind_of_pair_is_drawn(made):
    """A kind without a label would have to be guessed from another."""
    sample = drawn(made, 60, again=True).sample

    assert min(stratum.n_drawn for stratum in sample.strata) >= 2


def test_probabilities_are_shares_of_the_strata(made):
    """They are what an honest interval follows from."""
    sample = drawn(made, 60, again=True).sample
    shares = {stratum.stratum: stratum.n_drawn / stratum.n_pairs for stratum in sample.strata}

    assert all(pair.probability == shares[pair.stratum] for pair in sample.pairs)


def test_the_order_does_not_tell_the_judges_grade(made):
    """Whoever labels must not learn from the order what the judge said."""
    first = drawn(made, 60, again=True).sample.pairs[:12]

    strata = [pair.stratum for pair in first]
    assert strata != sorted(strata)


def test_runs_that_rank_alike_need_no_label(tmp_path):
    """All weights are 0: the difference is 0 whatever people say."""
    made = graded_set(tmp_path)
    made.write_run("b", made.run("a"))

    with pytest.raises(UsageError, match="no pair decides: the runs rank alike"):
        drawn(made, 60, Question(("a", "b"), ("P@10",), "differences"))


def test_chunks_of_one_text_are_one_pair(tmp_path):
    """Nobody should label the same words twice, nor count them twice."""
    made = graded_set(tmp_path, text=lambda q, c: f"Text {c // 2} on {q}.")

    sample = drawn(made, 60).sample

    assert sample.n_pairs <= 30 * 8
    assert any(pair.same_text for pair in sample.pairs)


def test_a_sample_for_another_question_is_not_written_over(tmp_path):
    """Its labels would be read as drawn with other probabilities."""
    made = graded_set(tmp_path)
    drawn(made, 60)

    with pytest.raises(DataError, match="for another question: its measures are P@10, DCG@10;"):
        drawn(made, 60, Question(("a", "b"), ("P@5",)))


def test_labels_on_pairs_drawn_again_count(tmp_path):
    """A run that was made again shares most of its pairs with the one before."""
    made = graded_set(tmp_path)
    drawn(made, 100)
    label_all(made)
    made.write_run("b", [_shortened(ranking) for ranking in made.run("b")])

    found = drawn(made, 100, again=True)

    assert found.n_labels_kept > 50
    assert found.n_labels_kept + found.n_labels_left == 100


def test_labels_from_before_count_in_front_of_new_ones(tmp_path):
    """How far they alone reach hangs on which pairs they are on: no sample that anybody drew."""
    made = graded_set(tmp_path)
    drawn(made, 100)
    files = label_all(made)
    made.write_run("b", [_shortened(ranking) for ranking in made.run("b")])
    pairs = drawn(made, 100, again=True).sample.pairs
    n_used = [_used(made)]
    for pair in [pair for pair in pairs if not pair.labelled_before]:
        files.add_labels([as_label(pair, 1)])
        n_used.append(_used(made))

    new = [n for n, pair in enumerate(pairs, 1) if not pair.labelled_before]
    assert 5 < len(new) < 50
    assert n_used == [0, *new[:-1], 100]


def _used(made):
    files = calibration_files(made)
    found = use_labels(files.sample(), worded_labels(made, files), made.judgments(), made)
    return found.counts.n_used


def test_more_of_a_sample_keeps_what_was_labelled_before(tmp_path):
    """Labels on its own pairs are no older ones, however many pairs are added."""
    made = graded_set(tmp_path)
    drawn(made, 60)
    label_all(made)

    grown = drawn(made, 100).sample

    assert not any(pair.labelled_before for pair in grown.pairs)
    assert _used(made) == 60


def test_grades_that_people_gave_before_a_sample_are_no_sample(tmp_path):
    """People choose what they grade; who labels the drawn pairs in their order does not."""
    made = graded_set(tmp_path)
    first = drawn(made, 60).sample.pairs[:20]
    of_judge = {(one.query_id, one.chunk_id): one for one in made.judgments()}
    by_hand = {(pair.query_id, pair.chunk_id): _by_hand(pair) for pair in first}
    made.write_judgments({**of_judge, **by_hand}.values())

    pairs = drawn(made, 60, Question(("a", "b"), ("P@5",)), again=True).sample.pairs

    keys = {(pair.query_id, pair.chunk_id) for pair in first}
    assert [p.labelled_before for p in pairs] == [(p.query_id, p.chunk_id) in keys for p in pairs]


def _by_hand(pair):
    return Judgment(query_id=pair.query_id, chunk_id=pair.chunk_id, grade=2, source="human")


def test_a_judge_that_did_not_grade_what_people_labelled_is_refused(tmp_path):
    """A new judge grades what has no grade of people: its labelled pairs would be a kind apart."""
    made = graded_set(tmp_path)
    drawn(made, 100)
    put_into_judgments(made, label_all(made), TakenLabels())
    other = JUDGE.model_copy(update={"model": "judge-2"})
    regraded = [
        one if one.source == "human" else one.model_copy(update={"provenance": other})
        for one in made.judgments()
    ]
    made.write_judgments(regraded)

    with pytest.raises(DataError, match=r"judge-2 .*graded 0 of the 100 pairs .*--on-labels"):
        drawn(made, 100, again=True)

    checks = [one.model_copy(update={"provenance": other}) for one in made.label_checks()]
    made.write_label_checks([*made.label_checks(), *checks])
    assert drawn(made, 100, again=True).sample.judge.model == "judge-2"


def _regraded(made, who, *, but_first=False):
    """Let another judge grade everything, what people labelled too, and the first judge nothing."""
    judgments = made.judgments()
    first = next(one for one in judgments if one.source != "human")
    made.write_judgments(
        one
        if one.source == "human" or (but_first and one is first)
        else one.model_copy(update={"provenance": who})
        for one in judgments
    )
    checks = made.label_checks()
    anew = [one.model_copy(update={"provenance": who}) for one in checks]
    made.write_label_checks([*checks, *anew])


def test_a_sample_is_drawn_again_for_the_judge_whose_grades_count(tmp_path):
    """It was drawn for the former judge, and all labels fell out of the count."""
    made = graded_set(tmp_path)
    drawn(made, 100)
    put_into_judgments(made, label_all(made), TakenLabels())
    other = JUDGE.model_copy(update={"model": "judge-2"})
    _regraded(made, other)

    found = sample_anew(made)

    assert (found.sample.judge.model, found.judge_before.model) == ("judge-2", "judge-1")
    assert (found.n_labels_kept, found.n_ungraded) == (100, 0)
    assert "drawn for judge-2 with judge_relevance abababab, whose grades count; the sample" in (
        sample_text(found, "sample.json")
    )
    assert sample_anew(made).judge_before is None


def test_a_sample_is_drawn_again_for_its_judge_while_any_of_its_grades_counts(tmp_path):
    """Beside those of another one they still are what is measured by."""
    made = graded_set(tmp_path)
    drawn(made, 100)
    _regraded(made, JUDGE.model_copy(update={"model": "judge-2"}), but_first=True)

    assert sample_anew(made).sample.judge == JUDGE


def test_a_sample_whose_pairs_people_graded_all_keeps_its_judge(tmp_path):
    """No grade of a judge counts, so that nothing tells of another one."""
    made = graded_set(tmp_path)
    drawn(made, 100)
    put_into_judgments(made, label_all(made), TakenLabels())
    made.write_judgments(one for one in made.judgments() if one.source == "human")

    assert sample_anew(made).sample.judge == JUDGE


def test_some_pairs_are_shown_twice(made):
    """Whoever says another thing the second time is no yardstick."""
    sample = drawn(made, 100, again=True, repeat_share=0.2).sample

    assert 8 <= sum(pair.twice for pair in sample.pairs) <= 35


def test_texts_that_cannot_be_shown_are_refused(tmp_path):
    """A pair that nobody can label would stop the sample at its place."""
    made = graded_set(tmp_path)
    made.write_chunks(chunk for chunk in made.chunks() if not chunk.chunk_id.endswith("-03"))

    with pytest.raises(DataError, match="cannot be shown to anybody"):
        drawn(made, 60)


def test_a_measure_that_labels_cannot_correct_is_refused():
    """Reciprocal rank is not linear in the labels."""
    with pytest.raises(UsageError, match="corrects P@k, DCG@k and nDCG@k"):
        Question(("a",), ("RR",))


def test_a_run_of_a_weighted_sample_is_refused_with_the_way_out(tmp_path):
    """Labels correct sums in which all queries count alike."""
    made = graded_set(tmp_path)
    made.write_queries(
        query.model_copy(update={"difficulty": "easy" if k % 5 else "hard"})
        for k, query in enumerate(list(made.all_queries()))
    )
    part = rf.open(made.path).part(10, by="difficulty")
    part.retrieve("bm25", name="sampled", k=10, quiet=True)

    with pytest.raises(UsageError, match="counts all queries alike; retrieve for all of them"):
        drawn(made, question=Question(("sampled",), ("P@10",)))


def test_labels_that_name_documents_are_refused_with_the_way_out(tmp_path):
    """A person who sees a chunk cannot say what its document is worth."""
    made = graded_set(tmp_path)
    first, *rest = made.judgments()
    by_document = first.model_copy(update={"level": "document", "chunk_id": "d0"})
    made.write_judgments([by_document, *rest])

    with pytest.raises(UsageError, match="make a set whose chunks are whole documents"):
        drawn(made)


def test_too_few_labels_for_all_kinds_are_refused(tmp_path):
    """Two of each kind is the least."""
    made = graded_set(tmp_path)
    with pytest.raises(UsageError, match="expected at least"):
        drawn(made, 5, AS_DRAWN, again=True)


def test_nothing_is_written_where_sampling_is_refused(tmp_path):
    """Half a calibration would be taken for one."""
    made = graded_set(tmp_path)

    with pytest.raises(UsageError):
        drawn(made, 3)

    assert not calibration_files(made).exists


def _judged_in_two_ways(path, protocol, prompt_sha256="cd" * 32):
    """Make a set whose model graded the last query otherwise than all before it."""
    made = graded_set(path)
    ways = [
        JUDGE.model_copy(update={"protocol": "batch 10 x 1"}),
        JUDGE.model_copy(update={"protocol": protocol, "prompt_sha256": prompt_sha256}),
    ]
    made.write_judgments(
        [
            item.model_copy(update={"provenance": ways[item.query_id == "q00029"]})
            for item in made.judgments()
        ]
    )
    return made


def test_what_a_batch_left_to_be_asked_for_alone_is_of_its_judge(tmp_path):
    """Every set whose pools were judged in batches has such grades, and comparisons count them."""
    found = drawn(_judged_in_two_ways(tmp_path, "batch 10 x 1, alone"))

    assert found.sample.judge.protocol == "batch 10 x 1"
    assert found.n_ungraded == 0


def test_two_ways_of_asking_one_model_are_two_judges_that_can_be_named(tmp_path):
    """Another protocol errs otherwise; the name that is advised must name one of the two."""
    made = _judged_in_two_ways(tmp_path, "")

    with pytest.raises(UsageError, match="several judges graded") as refused:
        drawn(made)
    advised = shlex.split(str(refused.value).partition("`--judge ")[2].partition("`")[0])[0]

    assert advised == "judge-1 with judge_relevance abababab (batch 10 x 1)"
    found = drawn(made, question=replace(AS_DRAWN, judge=advised))
    assert found.sample.judge.protocol == "batch 10 x 1"
    other = "judge-1 with judge_relevance cdcdcdcd"
    found = drawn(made, question=replace(AS_DRAWN, judge=other), again=True)
    assert found.sample.judge.prompt_sha256 == "cd" * 32


def test_the_model_names_two_judges_where_it_graded_in_two_ways(tmp_path):
    """One of them taken by chance would correct the grades of half of the set."""
    made = _judged_in_two_ways(tmp_path, "")

    with pytest.raises(UsageError, match="several judges graded"):
        drawn(made, question=replace(AS_DRAWN, judge="judge-1"))


def _same_but_last(name):
    last = "14" if name == "a" else "15"
    return [
        _ranking(q, [*(f"c{q:05}-{c:02}" for c in range(9)), f"c{q:05}-{last}"]) for q in range(30)
    ]


def _ranking(query, chunk_ids):
    hits = tuple(Hit(chunk_id=c, score=20.0 - rank) for rank, c in enumerate(chunk_ids))
    return Ranking(query_id=f"q{query:05}", ranking=hits)


def _shortened(ranking):
    return ranking.model_copy(update={"ranking": ranking.ranking[:9]})
