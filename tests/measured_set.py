"""A small dataset with a good and a bad run, for tests of what comes after measuring."""

from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, Failure, Hit, Judgment, Provenance, Query, Ranking

PERSON = Provenance(kind="human", model="a person")


def make_measured_set(path, n_queries=4):
    """Make a dataset of answerable queries q00, q01 … and an unanswerable one, never.

    The run `good` has the relevant chunk of each query first, but fails on the last query; the run
    `bad` has it second. Each ranking ends with a chunk that nobody judged.
    """
    made = create_dataset(path, made_from={"seed": "0"})
    made.write_manifest(made.manifest.model_copy(update={"labels": "pooled"}))
    ids = [f"q{n:02}" for n in range(n_queries)]
    chunks = [Chunk(chunk_id=f"c{q}", doc_id="d", text=f"Fact {q} is here.") for q in ids]
    others = [Chunk(chunk_id=c, doc_id="d", text=f"Of no use, {c}.") for c in ("cx", "cy")]
    made.write_chunks([*chunks, *others])
    asked = [Query(query_id=q, query=f"Where is fact {q}?", expected_answer="here") for q in ids]
    made.write_queries([*asked, Query(query_id="never", query="What?", answerable=False)])
    made.write_judgments(
        Judgment(query_id=q, chunk_id=c, grade=grade, source="human", provenance=PERSON)
        for q in ids
        for c, grade in ((f"c{q}", 3), ("cx", 0))
    )
    made.write_run("good", [ranking(q, f"c{q}", "cx", "cy") for q in ids[:-1]])
    made.write_run("bad", [ranking(q, "cx", f"c{q}", "cy") for q in ids])
    failure = Failure(what="retrieve", key=f"good/{ids[-1]}", kind="error", message="no route")
    made.replace_failures("retrieve", [failure], lambda key: True)
    return made


def ranking(query_id, *chunk_ids):
    """Return a ranking of chunks, retrieved in 20 ms."""
    hits = tuple(Hit(chunk_id=c, score=9.0 - rank) for rank, c in enumerate(chunk_ids))
    return Ranking(query_id=query_id, ranking=hits, latency_s=0.02)
