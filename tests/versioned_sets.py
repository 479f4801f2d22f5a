"""Small datasets whose every record names one state, so that a mixture of two is seen."""

import hashlib

from ragforge.files.manifest import digest_file
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.files.set.versions import (
    next_version,
    publish,
    refresh_lock,
    stage_version,
)
from ragforge.records import Chunk, Hit, Judgment, Provenance, Query, Ranking

PERSON = Provenance(kind="human", model="a person")
N = 40


def make_set(path, tag="a"):
    """Make a dataset with a run, as generating does: its files are in the directory itself."""
    made = create_dataset(path, {"seed": "0"})
    write_state(made, tag)
    made.write_run("bm25", [Ranking(query_id="q00", ranking=(Hit(chunk_id="c00", score=1.0),))])
    made.write_card(f"# Card of {tag}\n")
    return made


def write_state(dataset, tag):
    """Write chunks, queries and judgments that all say `tag`."""
    ids = [f"{n:02}" for n in range(N)]
    dataset.write_chunks(Chunk(chunk_id=f"c{i}", doc_id="d", text=f"{tag} is {i}") for i in ids)
    dataset.write_queries(Query(query_id=f"q{i}", query=f"What is {tag} of {i}?") for i in ids)
    dataset.write_judgments(
        Judgment(
            query_id=f"q{i}",
            chunk_id=f"c{i}",
            grade=3,
            reasoning=tag,
            source="human",
            provenance=PERSON,
        )
        for i in ids
    )


def refreshed(path, tag):
    """Bring a set into a state, as a refresh does: nothing happens where it is in that already."""
    with refresh_lock(path):
        parent = open_dataset(path)
        if tag_of(parent) == tag:
            return parent
        with stage_version(parent, next_version(path)) as staged:
            write_state(staged, tag)
            staged.past.write_changelog(f"now {tag}\n")
            return publish(staged, path)


def tag_of(dataset):
    """Return the state that a set is in, by its first query."""
    return dataset.all_queries()[0].query.split()[2]


def mixture(path):
    """Read a set as a reader does, and return which files are not those of its manifest."""
    dataset = open_dataset(path)
    manifest = dataset.manifest
    read = {
        "chunks.jsonl": dataset.chunks(),
        "queries.jsonl": dataset.all_queries(),
        "judgments.jsonl": dataset.each_judgment(),
    }
    return [
        f"{name}: not that of version {manifest.version}"
        for name, records in read.items()
        if digest_of(records) != manifest.files[name].sha256
    ]


def digest_of(records):
    """Return the digest of a file with these records."""
    return hashlib.sha256("".join(f"{r.model_dump_json()}\n" for r in records).encode()).hexdigest()


def everything(path):
    """Return what is in a directory and below, by name: digests of files, targets of links."""
    found = {}
    for each in sorted(path.rglob("*")):
        name = each.relative_to(path).as_posix()
        if each.is_symlink():
            found[name] = f"-> {each.readlink()}"
        elif each.is_file() and name not in (".ragforge/refresh.lock", ".ragforge/.gitignore"):
            found[name] = digest_file(each)
    return found
