import pytest

from ragforge.evaluating.causes.catalogue import CAUSES, Causes, grouped
from ragforge.evaluating.causes.finder import CauseFinder
from ragforge.evaluating.runs import Task, measure_run
from ragforge.records import Chunk, Evidence, Hit, Query, Ranking

QUOTE = "the first half of what is asked and the second half of the answer"
FULL = {"other": {"full": 3}}
"""Another query's judgments, by which the scale goes to 3."""


def found(ranked, grades, *, chunks=(), evidence=(), measure="nDCG@10", failed=(), absent=()):
    """Return the causes of the query q; None where it did as well as could be.

    What is graded is in the corpus, but for what is absent.
    """
    query = Query(query_id="q", query="What?", evidence=evidence)
    other = Query(query_id="other", query="What else?")
    task = Task([query, other], {"q": grades, **FULL}, (measure,), 2)
    rankings = [ranking("other", ["full"])]
    if ranked is not None:
        rankings.append(ranking("q", ranked))
    finder = CauseFinder([measure_run("run", rankings, failed, task)], task, measure)
    given = {item.chunk_id for item in chunks}
    rest = grades.keys() - given - set(absent)
    for item in (*chunks, *(chunk(name, f"All about {name}.") for name in sorted(rest))):
        finder.take(item)
    return finder.causes()["run"].get("q")


def ranking(query_id, chunk_ids):
    hits = tuple(Hit(chunk_id=c, score=-rank) for rank, c in enumerate(chunk_ids))
    return Ranking(query_id=query_id, ranking=hits)


def chunk(chunk_id, text, *, start=0, end=0, doc_id="d"):
    return Chunk(chunk_id=chunk_id, doc_id=doc_id, text=text, start=start, end=end)


def evidence(quote):
    return (Evidence(doc_id="d", chunk_id="a", quote=quote),)


def not_relevant(count):
    return {f"n{number}": 0 for number in range(count)}


def test_a_perfect_query_has_no_cause():
    """What went well needs no repair."""
    assert found(["a", "n0"], {"a": 3, "n0": 0}) is None


def test_the_best_possible_value_is_no_fault():
    """One relevant chunk gives P@5 at most 0.2, which no retriever can better."""
    assert found(["a", "n0"], {"a": 3, "n0": 0}, measure="P@5") is None


def test_a_failed_retriever_is_told_and_has_no_value():
    """A failure is no bad ranking, and has another remedy."""
    causes = found(None, {"a": 3}, failed=["q"])

    assert (causes.code, causes.value) == ("retriever_failed", None)


def test_a_query_without_judgments_is_not_judged():
    """Nothing can be said of its ranking."""
    causes = found(["a"], {})

    assert (causes.code, causes.value) == ("not_judged", None)


def test_a_query_of_which_every_judgment_failed_is_told():
    """It has no value, and judging again gives one."""
    causes = found(["a"], {"a": None})

    assert (causes.code, causes.value) == ("judging_failed", None)


def test_failed_judgments_explain_that_nothing_relevant_is_known():
    """The relevant chunk may be the one whose judgment failed."""
    assert found(["a", "b"], {"a": None, "b": 0}).code == "judging_failed"


def test_a_query_without_a_relevant_chunk_is_no_fault_of_the_run():
    """No ranking can do well on it."""
    assert found(["a"], {"a": 1, "b": 1, "c": 0}).code == "no_relevant_known"


def test_a_query_that_the_run_lacks_is_told():
    """It counts 0 and looks like a bad ranking."""
    assert found(None, {"a": 3}).code == "nothing_retrieved"


def test_unjudged_chunks_above_the_first_relevant_cast_doubt_on_the_value():
    """They may be relevant, and the run better than it looks."""
    causes = found(["x", "y", "n0", "a"], {"a": 3, "n0": 0})

    assert causes.code == "unjudged_on_top"
    assert causes.detail == "2 of the 3 chunks above have no grade"


def test_few_unjudged_chunks_explain_nothing():
    """The judged ones above are bad enough."""
    causes = found(["n0", "n1", "x", "a"], {"a": 3, "n0": 0, "n1": 0})

    assert causes.code == "ranked_low"


def test_a_top_that_is_mostly_unjudged_casts_doubt_below_the_first_relevant_too():
    """What is missing may stand there, without a grade."""
    causes = found(["a", "x", "y"], {"a": 3, "b": 3})

    assert causes.codes[:2] == ("unjudged_on_top", "some_missed")


@pytest.mark.parametrize("measure", ["RR", "Success@1"])
def test_below_the_first_relevant_nothing_casts_doubt_on_where_that_is(measure):
    """Six ranks without a grade were blamed for a reciprocal rank that they cannot move."""
    ranked = ["n0", "n1", "n2", "a", *(f"x{rank}" for rank in range(5, 11))]

    causes = found(ranked, {"a": 3, **not_relevant(3)}, measure=measure)

    assert "unjudged_on_top" not in causes.codes


def test_a_quote_that_runs_over_two_chunks_is_cut():
    """No chunk can answer, however good the retriever is."""
    chunks = [chunk("a", "Here is " + QUOTE[:40]), chunk("b", QUOTE[30:] + " and so on.")]
    causes = found(["n0", "a"], {"a": 2, "b": 2, "n0": 0}, chunks=chunks, evidence=evidence(QUOTE))

    assert causes.codes[:2] == ("evidence_cut", "ranked_low")


def test_a_quote_that_another_chunk_has_whole_is_not_cut():
    """Overlap keeps it whole."""
    chunks = [chunk("a", "Here is " + QUOTE[:40]), chunk("b", f"Again:  {QUOTE}.")]
    causes = found(["n0", "a"], {"a": 2, "b": 2, "n0": 0}, chunks=chunks, evidence=evidence(QUOTE))

    assert "evidence_cut" not in causes.codes


def test_neighbouring_chunks_that_answer_in_part_are_one_that_was_cut():
    """Grades alone show it where the quote does not."""
    chunks = [chunk("a", "One.", start=0, end=90), chunk("b", "Two.", start=92, end=150)]

    assert found(["n0", "a", "b"], {"a": 2, "b": 2, "n0": 0}, chunks=chunks).code == "evidence_cut"


@pytest.mark.parametrize(
    ("second", "grade"),
    [
        (chunk("b", "Two.", start=92, end=150, doc_id="e"), 2),
        (chunk("b", "Two.", start=900, end=950), 2),
        (chunk("b", "Two."), 2),
        (chunk("b", "Two.", start=92, end=150), 3),
    ],
)
def test_parts_that_are_no_neighbours_or_one_that_is_whole_are_not_cut(second, grade):
    """An answer may need two passages that nobody cut apart."""
    chunks = [chunk("a", "One.", start=0, end=90), second]
    causes = found(["n0", "a", "b"], {"a": 2, "b": grade, "n0": 0}, chunks=chunks)

    assert causes.code == "ranked_low"


def test_repeats_above_the_first_relevant_chunk_crowd():
    """Dropping them would raise it."""
    text = "Parcels are brought to the door on any working day of the week but Friday."
    chunks = [chunk("n0", text), chunk("n1", text.upper()), chunk("n2", f"{text}\n")]
    causes = found(["n0", "n1", "n2", "a"], {"a": 3, **not_relevant(3)}, chunks=chunks)

    assert causes.codes == ("duplicates_crowd", "ranked_low")
    assert causes.detail == "2 of 3 above repeat others"


def test_repeats_crowd_where_a_relevant_chunk_stands_just_below_the_cutoff():
    """Without them it would be in."""
    chunks = [chunk("n0", "Some text."), chunk("n1", "Some text.")]
    ranked = ["a", "n0", "n1", "b"]
    causes = found(ranked, {"a": 3, "b": 3, **not_relevant(2)}, chunks=chunks, measure="R@3")

    assert causes.code == "duplicates_crowd"


def test_a_relevant_repeat_crowds_nothing():
    """It counts as a hit."""
    chunks = [chunk("a", "Some text."), chunk("b", "Some text.")]
    causes = found(["a", "b", "n0"], {"a": 3, "b": 3, "c": 3, "n0": 0}, chunks=chunks)

    assert causes.code == "some_missed"


def test_a_relevant_chunk_that_is_nowhere_in_the_run_was_not_retrieved():
    """Reranking cannot help."""
    causes = found(["n0", "n1"], {"a": 3, **not_relevant(2)})

    assert causes.codes == ("not_retrieved",)
    assert causes.detail == "1 relevant chunk known, none in 2 ranks"


def test_a_relevant_chunk_below_the_cutoff_is_there_to_be_reranked():
    """It was retrieved, which is the harder half."""
    ranked = [*not_relevant(12), "a"]
    causes = found(ranked, {"a": 3, **not_relevant(12)})

    assert (causes.code, causes.detail) == ("beyond_cutoff", "the first is at rank 13")


def test_the_cutoff_is_that_of_the_measure():
    """What is too low for Success@1 is not for Success@5."""
    ranked, grades = ["n0", "n1", "a"], {"a": 3, **not_relevant(2)}
    codes = [found(ranked, grades, measure=name).code for name in ("Success@1", "RR")]

    assert codes == ["beyond_cutoff", "ranked_low"]


def test_relevant_chunks_that_others_stand_between_are_in_a_bad_order():
    """All was found, and nothing but the order is left."""
    assert found(["a", "n0", "b"], {"a": 3, "b": 3, "n0": 0}).codes == ("order",)


@pytest.mark.parametrize(
    ("ranked", "grades", "detail"),
    [
        (["a", "b"], {"a": 3, "b": 1, "c": 1, "d": 1}, "2 of 4 with a grade above 0"),
        (["a", "n0"], {"a": 3, "b": 1, "n0": 0}, "1 of 2 with a grade above 0"),
    ],
)
def test_lesser_chunks_that_a_well_ordered_top_lacks_are_missed(ranked, grades, detail):
    """No reranking brings in what was not retrieved."""
    causes = found(ranked, grades)

    assert (causes.codes, causes.detail) == (("some_missed",), detail)


def test_a_bad_order_counts_before_lesser_chunks_that_are_missed():
    """It can be mended with what is there."""
    assert found(["a", "n0", "b"], {"a": 3, "b": 1, "c": 1, "n0": 0}).code == "order"


@pytest.mark.parametrize(
    ("measure", "codes"),
    [
        ("RR", ("duplicates_crowd", "ranked_low", "some_missed")),
        ("R@3", ("ranked_low", "some_missed")),
    ],
)
def test_repeats_crowd_only_where_the_value_is_better_without_them(measure, codes):
    """R@3 is the same at rank 2 and at rank 3."""
    chunks = [chunk("n0", "Some text."), chunk("n1", "Some text.")]
    grades = {"a": 3, "b": 3, **not_relevant(2)}

    assert found(["n0", "n1", "a"], grades, chunks=chunks, measure=measure).codes == codes


def test_the_lowest_relevant_grade_is_that_of_the_measure():
    """P(rel=3) takes grade 2 for not relevant."""
    assert found(["a", "b"], {"a": 2, "b": 3}, measure="RR(rel=3)").code == "ranked_low"


def test_judged_asks_for_grades_alone():
    """The measure is about holes, whatever stands on top."""
    causes = found(["a", "n0", "n1", "x"], {"a": 3, **not_relevant(3)}, measure="Judged@4")

    assert causes.code == "unjudged_on_top"


def test_causes_are_grouped_with_counts_shares_and_means():
    """The commonest is what to repair first."""
    causes = [
        Causes("q1", 0.5, 1.0, ("order",), ""),
        Causes("q2", 0.2, 1.0, ("not_retrieved", "order"), ""),
        Causes("q3", 0.0, 1.0, ("not_retrieved",), ""),
        Causes("q4", None, None, ("retriever_failed",), ""),
    ]
    told = [(group.code, group.query_ids, group.share, group.mean) for group in grouped(causes)]

    assert told == [
        ("not_retrieved", ("q2", "q3"), 0.5, 0.1),
        ("retriever_failed", ("q4",), 0.25, None),
        ("order", ("q1",), 0.25, 0.5),
    ]


def test_every_cause_has_its_words_as_sentences():
    """They are printed one behind the other."""
    sentences = [text for said in CAUSES.values() for text in (said.meaning, said.remedy)]

    assert [text for text in sentences if not text.endswith(".")] == []


def test_a_relevant_chunk_that_the_corpus_lacks_is_no_fault_of_the_retriever():
    """To retrieve more finds nothing that is not there."""
    causes = found(["a", "n0"], {"a": 3, "gone": 2, "n0": 0}, absent=["gone"])

    assert (causes.codes, causes.detail) == (("not_in_corpus",), "1 of 2 relevant chunks")


def test_a_query_whose_only_relevant_chunk_the_corpus_lacks_is_no_fault_either():
    """Its value is 0 whatever is retrieved."""
    assert found(["n0"], {"gone": 2, "n0": 0}, absent=["gone"]).codes == ("not_in_corpus",)


def test_a_missed_chunk_beside_one_that_the_corpus_lacks_is_missed():
    """What is there can be found."""
    causes = found(["a"], {"a": 3, "b": 2, "gone": 2}, absent=["gone"])

    assert causes.codes == ("some_missed",)
