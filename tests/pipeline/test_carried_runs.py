"""Runs whose set is cut otherwise: what they found stays measured, under the ids of now."""

import asyncio

import pytest

from ragforge.api.outcomes import Rederived
from ragforge.config import ChunkSettings, EvaluateSettings, Settings
from ragforge.evaluating.answers.records import answer_digest, read_systems
from ragforge.evaluating.evaluation_data import load_evaluation_data
from ragforge.evaluating.history.changes import changes
from ragforge.evaluating.runs import rank_order
from ragforge.files.manifest import RunOrigin
from ragforge.files.record_files import write_records
from ragforge.files.set.integrity import chunks_digest, corpus_digest
from ragforge.files.set.opening import create_dataset
from ragforge.files.set.stale_runs import usable_runs
from ragforge.observe import silent
from ragforge.pipeline.carried_runs import carry_runs
from ragforge.pipeline.comparing.runs import compare_runs
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.generation.source import ChunkSource, take_corpus
from ragforge.pipeline.history import keep_evaluations
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judging import judge_dataset
from ragforge.pipeline.rederiving import NewDocumentIds, chunk_change, rederive_dataset
from ragforge.pipeline.retrieving import make_runs
from ragforge.pipeline.text_grades import grade_retrieved
from ragforge.pipeline.validating import validate
from ragforge.records import (
    Answer,
    AnswerGrade,
    Chunk,
    Evidence,
    Failure,
    Hit,
    Judgment,
    Query,
    Ranking,
    is_text_id,
    text_id,
)

SHARED = "Every order over fifty euros is shipped for free, on any day of the week."
QUOTE = "over fifty euros is shipped for free"
END = "The shop at the harbour is closed on Sundays and open on all other days."
PARTS = {
    "a.md": ("What this shop tells of its prices and offers.", SHARED, END),
    "b.md": ("What this shop tells of its parcels and letters.", SHARED, "Letters take two days."),
}
MODULE = f"""
def search(query, k):
    return [
        {{"text": {SHARED!r}, "source": "b.md"}},
        {{"text": {END!r}, "source": "a.md"}},
        {{"text": "This stands nowhere in any of the documents."}},
        "a",
        "no-chunk",
    ]

def nameless(query, k):
    return [{{"text": {SHARED!r}}}] * 2 + [{{"text": {END!r}}}]
"""


def whole():
    """Each document as a chunk."""
    for doc_id, parts in PARTS.items():
        text = "\n\n".join(parts)
        yield Chunk(chunk_id=doc_id[0], doc_id=doc_id, text=text, end=len(text))


def cut():
    """Each paragraph as a chunk."""
    for doc_id, parts in PARTS.items():
        at = 0
        for number, part in enumerate(parts):
            end = at + len(part)
            chunk_id = f"{doc_id[0]}{number}"
            yield Chunk(chunk_id=chunk_id, doc_id=doc_id, text=part, start=at, end=end)
            at = end + 2


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """A set of whole documents, with a judged run of a splitter of paragraphs."""
    (tmp_path / "shop.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "shop", raising=False)
    made = create_dataset(tmp_path / "set", made_from={})
    with prepared(made, whole()) as chunks:
        take_corpus(made, chunks)
    start = len(PARTS["a.md"][0]) + 2 + SHARED.index(QUOTE)
    evidence = Evidence(
        doc_id="a.md", chunk_id="a", quote=QUOTE, start=start, end=start + len(QUOTE)
    )
    made.write_queries([Query(query_id="q", query="What is free?", evidence=(evidence,))])
    asyncio.run(make_runs(made, {"mine": "shop:search"}, Job(Settings(), silent)))
    asyncio.run(judge_dataset(made, (), Job(Settings(), silent)))
    return made


def prepared(dataset, chunks):
    path = dataset.path.parent / "given.jsonl"
    write_records(path, chunks, key=lambda chunk: chunk.chunk_id)
    return ChunkSource([], path, ChunkSettings(), silent).prepared(dataset.store_path.parent)


def rederive(dataset, chunks):
    with prepared(dataset, chunks) as these:
        return rederive_dataset(dataset, these)


def ids(dataset):
    return [hit.chunk_id for hit in dataset.run("mine")[0].ranking]


def grades(dataset):
    return {item.chunk_id: item.grade for item in dataset.judgments()}


def test_a_run_of_chunks_before_stays_usable(dataset):
    """Another size of chunks is the most common change; what was found is still text."""
    [run] = rederive(dataset, cut()).runs.runs

    assert usable_runs(dataset).names == ("mine",)
    assert not any("retrieved.jsonl" in problem for problem in validate(dataset).problems)
    assert (run.n_chunks, run.n_texts, run.n_gone, run.n_unknown) == (2, 1, 1, 1)
    assert run.sentence == (
        "run mine: of 5 hits 2 are chunks of now, 1 texts that the documents have cut otherwise, 1 "
        "texts that are gone, 1 ids that the set knows nothing of; `ragforge retrieve --dataset "
        f"{dataset.path} --retriever shop:search --name mine` makes it again"
    )


def evaluated(dataset):
    settings = EvaluateSettings(measures=("RR", "nDCG@10"))
    [kept] = keep_evaluations(dataset, evaluate_runs(dataset, ["mine"], settings))
    return kept


def test_a_run_that_was_brought_along_is_told_from_one_of_another_retriever(dataset):
    """The rankings name other chunks, as the documents are cut otherwise: nobody searched anew."""
    before = evaluated(dataset)
    rederive(dataset, cut())
    now = evaluated(dataset)
    told = changes(before, now)

    assert now.digests.corpus == before.digests.corpus
    assert now.digests.mapped_to == corpus_digest(dataset)
    assert "corpus" in [item.what for item in told]
    assert "retriever" not in [item.what for item in told]
    assert [item.text for item in told if "no retriever was asked" in item.text]


def test_what_a_query_cost_stays_known(dataset):
    """The questions are those that were paid for."""
    settings = Settings.model_validate({"retrievers": {"mine": {"usd_per_query": 0.002}}})
    asyncio.run(make_runs(dataset, {"mine": "shop:search"}, Job(settings, silent)))

    rederive(dataset, cut())

    assert usable_runs(dataset).usd_per_query == {"mine": 0.002}


def test_a_text_of_a_place_becomes_the_chunk_of_that_place(dataset):
    """Two documents hold it; the hit was of one."""
    assert ids(dataset)[0] == text_id(SHARED, "b.md")
    rederive(dataset, cut())

    assert ids(dataset)[:2] == ["b1", "a2"]
    assert is_text_id(ids(dataset)[3])


def test_grades_go_along_without_a_call(dataset):
    """What was judged is the text."""
    before = grades(dataset)
    rederive(dataset, cut())
    after = grades(dataset)
    [whole_document] = [one for one in ids(dataset) if is_text_id(one) and one not in before]

    assert after["a2"] == before[text_id(END)]
    assert after[whole_document] == before["a"]
    result = asyncio.run(judge_dataset(dataset, ("mine",), Job(Settings(), silent)))
    assert result.n_judged == 0


def test_cut_as_before_the_run_is_what_it_was(dataset):
    """Nothing is lost on the way."""
    rankings, graded = dataset.run("mine"), grades(dataset)
    texts = list(dataset.retrieved_texts())
    rederive(dataset, cut())
    [run] = rederive(dataset, whole()).runs.runs

    assert dataset.run("mine") == rankings
    assert grades(dataset).items() >= graded.items()
    assert list(dataset.retrieved_texts()) == texts
    assert run.sentence.endswith("; it was made on these")


def test_measures_of_evidence_are_as_before(dataset):
    """They are of text, which is the same."""
    names = ["EvidenceR@5", "TokenP@2"]
    before = values(dataset, names)
    rederive(dataset, cut())

    assert values(dataset, names) == before


def values(dataset, names):
    [run] = load_evaluation_data(dataset, measures=names).runs
    return [list(run.scores.values(name)) for name in names]


def test_a_run_that_was_written_before_a_kill_is_not_mapped_again(dataset):
    """Runs go first; the chunks are replaced at the end."""
    with prepared(dataset, cut()) as chunks:
        carry_runs(dataset, dataset, chunk_change(dataset, chunks, NewDocumentIds()))
    rankings = dataset.run("mine")
    rederive(dataset, cut())

    assert dataset.run("mine") == rankings
    assert usable_runs(dataset).names == ("mine",)


def test_grades_of_chunks_without_a_run_wait_as_texts(dataset):
    """They come back with their words, whatever was retrieved meanwhile."""
    grade = Judgment(query_id="q", chunk_id="b", grade=1, source="human")
    dataset.write_judgments([*(one for one in dataset.judgments() if one.chunk_id != "b"), grade])
    rederive(dataset, cut())
    rederive(dataset, whole())

    assert [one for one in dataset.judgments() if one.chunk_id == "b"] == [grade]


@pytest.fixture
def failed(dataset):
    """The set with a run of its chunks, of which judging one failed; no run holds another one."""
    rederive(dataset, cut())
    hits = (Hit(chunk_id="b2", score=2), Hit(chunk_id="a1", score=1))
    dataset.write_run("parts", [Ranking(query_id="q", ranking=hits)])
    add_failed(dataset, "q", "b2")
    return dataset


def add_failed(dataset, query_id, chunk_id):
    judgment = Judgment(query_id=query_id, chunk_id=chunk_id, grade=None, failure="invalid")
    others = [one for one in dataset.judgments() if one.chunk_id != chunk_id]
    dataset.write_judgments([*others, judgment])
    key = f"{query_id}/{chunk_id}"
    failure = Failure(what="judge", key=key, kind="invalid", message="no grade", call_keys=("k",))
    dataset.replace_failures("judge", [failure], lambda _: False)


def bounds(dataset, name):
    [run] = load_evaluation_data(dataset, measures=["nDCG@5"], run_names=[name]).runs
    return run.summary.estimates["nDCG@5"]


def failed_ids(dataset):
    return [one.chunk_id for one in dataset.judgments() if one.is_failed]


def test_bounds_are_as_wide_as_before(failed):
    """Other chunks judge nothing: what failed is as unknown as it was."""
    before = bounds(failed, "parts")
    rederive(failed, whole())

    assert before.n_failed == 1
    assert bounds(failed, "parts") == before


def test_what_failed_is_told_under_its_id_of_now(failed):
    """The judge asks for a failed pair again by what is known of it."""
    found = rederive(failed, whole())
    [text] = failed_ids(failed)

    assert text == text_id(PARTS["b.md"][2])
    assert [one.key for one in failed.failures()] == [f"q/{text}"]
    assert (found.n_failed_kept, found.n_failed_as_texts, found.n_failed_dropped) == (0, 1, 0)
    assert Rederived(found).table().split("\n")[1] == (
        "judgments that failed: 0 carried, 1 of such texts, kept as failed, 0 dropped"
    )


def test_what_failed_comes_back_with_its_chunk(failed):
    """Also where no run holds it: a way there and back makes nothing known."""
    failed.remove_run("parts")
    before = failed.failures()
    rederive(failed, whole())
    rederive(failed, cut())

    assert failed_ids(failed) == ["b2"]
    assert failed.failures() == before


def test_what_failed_of_no_known_text_goes(failed):
    """Nothing can be measured on it: no text goes by its id."""
    add_failed(failed, "q", "no-such-chunk")
    found = rederive(failed, whole())

    assert (found.n_failed_as_texts, found.n_failed_dropped) == (1, 1)
    assert len(failed_ids(failed)) == len(failed.failures()) == 1


def test_a_text_of_a_place_is_failed_as_its_words_are(failed):
    """A run that comes later holds the text under another id."""
    rederive(failed, whole())
    [text] = failed_ids(failed)
    [known] = [one for one in failed.retrieved_texts() if one.chunk_id == text]
    twin = known.model_copy(update={"chunk_id": text_id(known.text, "hit 2")})
    failed.add_retrieved_texts([twin], "later")
    hit = Hit(chunk_id=twin.chunk_id, score=1)
    failed.write_run("later", [Ranking(query_id="q", ranking=(hit,))])

    assert grade_retrieved(failed) == 0
    assert failed_ids(failed) == [text, twin.chunk_id]
    assert [one.key for one in failed.failures()] == [f"q/{text}", f"q/{twin.chunk_id}"]
    assert grade_retrieved(failed) == 0


def rewritten():
    """Each document as a chunk, without the paragraph that both had, but for the quote in it."""
    for doc_id, parts in PARTS.items():
        kept = "\n\n".join(part if part != SHARED else f"Now {QUOTE}." for part in parts)
        yield Chunk(chunk_id=doc_id[0], doc_id=doc_id, text=kept, end=len(kept))


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        (cut, ["a1", "b1", "a2"]),
        (rewritten, [text_id(SHARED), text_id(SHARED, "hit 2"), text_id(END)]),
    ],
    ids=["chunks now", "gone now"],
)
def test_hits_of_one_text_keep_their_ranks(dataset, chunks, expected):
    """A run must not gain by the documents being cut, or changed, behind its back."""
    asyncio.run(make_runs(dataset, {"mine": "shop:nameless"}, Job(Settings(), silent)))
    rederive(dataset, chunks())

    assert ids(dataset) == expected
    assert {text.chunk_id for text in dataset.retrieved_texts()} == {
        one for one in expected if is_text_id(one)
    }


def renamed():
    """The same chunks under ids that sort the other way round."""
    for chunk in whole():
        yield chunk.model_copy(update={"chunk_id": {"a": "z", "b": "c"}[chunk.chunk_id]})


def test_hits_of_equal_scores_keep_their_ranks(dataset):
    """Ids order them, and a night that renames files gives other ids to the same texts."""
    hits = tuple(Hit(chunk_id=chunk_id, score=1) for chunk_id in ("a", "b", "no-chunk"))
    dataset.write_run("mine", [Ranking(query_id="q", ranking=hits)])

    rederive(dataset, renamed())

    [ranking] = dataset.run("mine")
    assert rank_order(hits) == ("no-chunk", "b", "a")
    assert rank_order(ranking.ranking) == ("no-chunk", "c", "z")


def origin_now(dataset):
    return RunOrigin(chunks_sha256=chunks_digest(dataset), retriever="bm25")


def changed_a():
    """One document says something else, the other is as it was."""
    for chunk in whole():
        text = chunk.text.replace("at the harbour", "at the old harbour")
        yield chunk.model_copy(update={"text": text, "end": len(text)})


def test_beside_a_run_of_now_changed_texts_have_no_value(dataset):
    """A retriever that found all before a night lost to one that finds a third of it since."""
    [query] = dataset.queries()
    other = query.model_copy(update={"query_id": "r", "evidence": ()})
    dataset.write_queries([query, other])
    rankings = [
        Ranking(query_id=one.query_id, ranking=(Hit(chunk_id=chunk_id, score=1),)).for_question(
            one.asked
        )
        for one, chunk_id in ((query, "a"), (other, "b"))
    ]
    dataset.write_run("before", rankings, origin_now(dataset))
    rederive(dataset, changed_a())
    dataset.write_run("now", rankings, origin_now(dataset))
    asyncio.run(judge_dataset(dataset, (), Job(Settings(), silent)))

    found = compare_runs(dataset, ["before", "now"], EvaluateSettings(measures=("RR",)))

    assert "before: in 1 query it found texts that stand otherwise" in " ".join(found.warnings)
    assert found.n_values == {"RR": {"before": 1, "now": 2}}


def test_grades_of_answers_go_along_with_their_contexts(dataset):
    """The texts before the system are the same, under the ids of now."""
    answer = Answer(query_id="q", answer="Shipping.", chunk_ids=("a", "b"))
    dataset.write_answers("rag", [answer])
    grade = AnswerGrade(
        query_id="q",
        verdict="correct",
        score=1.0,
        has_hallucination=False,
        answered_sha256=answer_digest(answer),
    )
    dataset.write_answer_grades("rag", [grade])

    rederive(dataset, cut())

    queries = {query.query_id: query for query in dataset.queries()}
    [records] = read_systems(dataset, [], queries)
    assert records.answers["q"].chunk_ids != answer.chunk_ids
    assert (len(records.graded), records.outdated_text) == (1, "")
