"""Runs of functions, objects, names and addresses."""

import json
import re

import pytest
from api_searchers import Searcher

import ragforge as rf
from ragforge.cli import main
from ragforge.retrieval.local_models import is_installed

FOUND = ["a", "b"]


def test_a_function_makes_a_run(found):
    """Rank 2 of the one and rank 1 of the other query, as the function says."""
    held = {
        item.query_id: [hit.chunk_id for hit in item.ranking] for item in found.rankings("mine")
    }

    assert held == {"q1": ["b", "a"], "q2": ["c", "d"]}


def test_an_async_function_makes_a_run(by_hand):
    """Clients of vector stores are async more often than not."""

    async def search(query, k):
        return FOUND[:k]

    assert by_hand.retrieve(search, quiet=True).run == "search"
    assert by_hand.runs == ("search",)


def test_an_object_makes_a_run(by_hand):
    """Frameworks have objects; its class gives the name."""
    made = by_hand.retrieve(Searcher(), k=1, quiet=True)

    assert [row["chunk_id"] for row in made.rows()] == ["a", "a"]
    assert made.run == "Searcher"


def test_a_class_is_made_with_the_chunks(by_hand):
    """A class says how, and gets the corpus."""

    class Last:
        def __init__(self, chunks):
            self.last = chunks[-1].chunk_id

        def retrieve(self, query, k):
            return [self.last]

    assert {row["chunk_id"] for row in by_hand.retrieve(Last, quiet=True).rows()} == {"d"}


def test_an_address_makes_a_run(by_hand, server):
    """What is asked over HTTP is asked as by the command."""
    server.body = json.dumps(FOUND).encode()

    made = by_hand.retrieve(server.url, name="live", quiet=True)

    assert (made.run, made.n_queries) == ("live", 2)


def test_a_run_keeps_what_made_it(by_hand):
    """So that it can be made again; a function of a module by the name that a shell takes."""
    by_hand.retrieve(Searcher.find, name="found", quiet=True)

    [listed] = by_hand.list_runs()
    assert listed.retriever == "api_searchers:Searcher.find"


def test_a_query_that_fails_has_no_value(by_hand):
    """A failure is never a 0."""

    def broken(query, k):
        if "children" in query:
            raise ValueError("the index is gone")
        return FOUND

    made = by_hand.retrieve(broken, max_failures=0.5, quiet=True)

    assert [item.message.partition(" (")[0] for item in made.failures] == [
        "ValueError: the index is gone"
    ]
    assert by_hand.evaluate("broken", "RR", quiet=True).summary("RR")[:3] == (1.0, 1, 1)


def test_many_failures_are_an_error_behind_the_run(by_hand):
    """A broken retriever must not pass for a bad one; what was found is kept."""

    def broken(query, k):
        if "children" in query:
            raise ValueError("the index is gone")
        return FOUND

    with pytest.raises(rf.EndpointError, match=r"failed on 1 of 2 queries \(50.0%\)"):
        by_hand.retrieve(broken, quiet=True)

    assert by_hand.runs == ("broken",)


def test_many_failures_are_an_error_behind_the_answers(by_hand):
    """The same of a system that is asked for answers."""

    def broken(query):
        if "children" in query:
            raise ValueError("the index is gone")
        return "at nine"

    with pytest.raises(rf.EndpointError, match=r"system failed on 1 of 2 queries \(50.0%\)"):
        by_hand.answer(broken, name="live", answers_only=True, quiet=True)
    answered = by_hand.answer(
        broken, name="live", answers_only=True, again=True, max_failures=0.5, quiet=True
    )

    assert [item.message.partition(" (")[0] for item in answered.failures] == [
        "ValueError: the index is gone"
    ]
    assert by_hand.systems == ("live",)
    [warning] = answered.warnings
    assert warning.startswith("answers live: the system failed on 1 of 2 queries (50.0%)")


def test_what_cannot_retrieve_is_refused(by_hand):
    """A mistake is told before anything is asked."""
    with pytest.raises(rf.UsageError, match=r"f\(query, k\)"):
        by_hand.retrieve(object(), name="x", quiet=True)


def test_runs_are_renamed_and_removed(found):
    """What a set has is for its owner to order."""
    found.rename_run("mine", "old")
    found.retrieve("bm25", quiet=True)
    found.remove_run("old")

    assert found.runs == ("bm25",)


def test_several_retrievers_make_a_run_each(by_hand):
    """A comparison needs more than one."""

    def mine(query, k):
        return FOUND[:k]

    made = by_hand.retrieve_several({"mine": mine, "words": "bm25"}, k=2, quiet=True)

    assert [run.run for run in made] == ["mine", "words"]
    assert by_hand.runs == ("mine", "words")
    assert [row["chunk_id"] for row in made[0].rows()][:2] == FOUND


def test_several_retrievers_go_by_their_names(by_hand):
    """A list is enough for those that come along."""
    made = by_hand.retrieve_several(["bm25", "chargram"], quiet=True)

    assert [run.run for run in made] == ["bm25", "chargram"]


def test_one_of_several_that_fails_is_told(by_hand):
    """The others are written all the same."""

    def broken(query, k):
        raise RuntimeError("no index")

    with pytest.raises(rf.EndpointError, match="no index"):
        by_hand.retrieve_several({"broken": broken, "bm25": "bm25"}, quiet=True)

    assert "bm25" in by_hand.runs


def test_no_retriever_is_no_call(by_hand):
    """An empty list is a mistake of the caller."""
    with pytest.raises(rf.UsageError, match="expected at least one"):
        by_hand.retrieve_several([], quiet=True)


def test_a_run_is_written_for_trec_eval(by_hand, place):
    """The one that the command writes with `--trec`."""
    words = ["retrieve", "--dataset", "by-hand", "--retriever", "bm25", "--trec", "one.trec", "-q"]
    main(words)

    by_hand.retrieve("bm25", quiet=True).write_trec("two.trec")

    assert (place / "two.trec").read_bytes() == (place / "one.trec").read_bytes()


@pytest.mark.skipif(not is_installed("static"), reason="no weights")
def test_the_top_of_a_function_is_ranked_anew(by_hand):
    """As --rerank does for retrievers with a name."""

    def search(query, k):
        return FOUND

    made = by_hand.retrieve(search, rerank="static", quiet=True)

    assert made.run == "search"
    assert {row["chunk_id"] for row in made.rows()} == {*FOUND}


@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_cut_text_counts_as_the_copy_whose_document_is_labelled(place, is_mixed):
    """Nothing tells which of two copies it was; as the set's own chunk it counts as that one.

    Whether a label names the document or a chunk of it, and with or without a source, it is one.
    """
    said = "Valve {} opens at {} degrees under load. It closes again by itself after a minute."
    chunks = [
        {"chunk_id": f"{doc}-{i}", "doc_id": f"{doc}-{i}.md", "text": said.format(i, 100 + 7 * i)}
        for i in range(6)
        for doc in (("page", "copy") if i < 4 else ("page",))
    ]
    (place / "chunks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in chunks))
    rows = [
        {
            "id": f"q{i}",
            "question": f"When does valve {i} open?",
            "relevant_ids": [f"page-{i}" if is_mixed else f"page-{i}.md", f"page-{5 - i}.md"],
        }
        for i in range(6)
    ]
    made = rf.from_queries(rows, chunks="chunks.jsonl", out="set", quiet=True)

    def numbers(query):
        first = int(re.findall(r"\d+", query)[0])
        return first, (first + 1) % 4, (first + 2) % 4

    def cut(number):
        return f"Valve {number} opens at {100 + 7 * number} degrees under load."

    def plain(query, k):
        return [{"text": cut(number)} for number in numbers(query)]

    def named(query, k):
        return [{"text": cut(n), "document": f"page-{n}.md"} for n in numbers(query)]

    def whole(query, k):
        return [{"text": said.format(n, 100 + 7 * n)} for n in numbers(query)]

    for retriever in (plain, named, whole):
        made.retrieve(retriever, name=retriever.__name__, quiet=True)

    measured = made.evaluate(["plain", "named", "whole"], ["RR", "nDCG@10"], quiet=True)
    means = [[measured.mean(name, run) for name in ("RR", "nDCG@10")] for run in measured.runs]
    assert means[0] == means[1] == means[2]
    assert [record.evaluation.n_holes for record in measured.found.records] == [0, 0, 0]


def test_hits_of_a_document_that_the_set_lacks_are_one_document(place):
    """Of a page that the set has they are, too: "each at its best rank"."""
    chunks = [
        {"chunk_id": f"{doc}#0", "doc_id": doc, "text": f"The {doc} is about {doc[:-3]}. Read it."}
        for doc in ("bread.md", "news.md")
    ]
    row = {"id": "q", "question": "How is bread made?", "relevant_doc_ids": ["bread.md"]}
    made = rf.from_queries([row], chunks=chunks, out=place / "set", quiet=True)
    said = ("We move to Bergen in May.", "Ida has the keys.", "The choir sings on Thursday.")
    found = {
        "known": [{"id": f"n{i}", "document": "news.md", "text": said[i]} for i in range(3)],
        "new": [{"id": f"n{i}", "document": "new.md", "text": said[i]} for i in range(3)],
        "without_text": [{"id": f"n{i}", "document": "new.md"} for i in range(3)],
        "without_id": [{"document": "new.md"}],
    }
    for name, hits in found.items():
        ranked = [*hits, {"document": "bread.md"}]
        made.retrieve(lambda query, k, ranked=ranked: ranked, name=name, quiet=True)

    measured = made.evaluate([*found], ["RR"], quiet=True)
    assert {name: measured.mean("RR", name) for name in found} == dict.fromkeys(found, 0.5)
    # Nobody labelled a document that the set lacks.
    assert [one.evaluation.n_holes for one in measured.found.records[:2]] == [0, 1]
