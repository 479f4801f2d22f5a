from contextlib import contextmanager

import pytest

from ragforge.config import Settings
from ragforge.files.manifest import FileEntry, Manifest
from ragforge.files.set.dataset import Dataset
from ragforge.observe import silent
from ragforge.pipeline.surveying import open_survey
from ragforge.records import Chunk, DocumentsDiff, Evidence, Query, SourceDocument
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery
from ragforge.refresh.splits import connections, split_changes, with_splits


def query(query_id, doc_id, split=None, status="accepted"):
    quote = Evidence(doc_id=doc_id, chunk_id=f"c_{doc_id}", quote="a quote")
    return Query(
        query_id=query_id,
        query=f"What is {query_id}?",
        evidence=(quote,),
        source_chunk_ids=(f"c_{doc_id}",),
        split=split,
        status=status,
    )


def kept(query_id, doc_id, split):
    found = query(query_id, doc_id, split)
    return found, found


def no_change(place):
    nothing, entry = place / "nothing.jsonl", FileEntry(sha256="0", records=0)
    nothing.write_text("")
    files = (nothing, entry, nothing, entry, nothing, nothing, "")
    return CorpusDiff(DocumentsDiff(), {}, *files)


class Corpus:
    """Documents of one chunk each, some of which had other ids."""

    def __init__(self, place):
        self.place, self.n = place, 0

    def splits(self, documents, queries):
        """Return the splits of the queries; documents: id to the ids before."""
        staged = self._staged(documents)
        updated = UpdatedQueries([UpdatedQuery(one if one.split else None, one) for one in queries])
        with self._survey(staged) as survey:
            updated.replace(with_splits(staged, updated, survey, Settings()))
        return {one.query_id: one.split for one in updated.queries}

    def split_changes(self, documents, pairs):
        """Return what keeps the splits apart; pairs: each query as it was and as it is."""
        staged = self._staged(documents)
        updated = UpdatedQueries([UpdatedQuery(old, new) for old, new in pairs])
        with self._survey(staged) as survey:
            found = connections(staged, updated, survey, no_change(self.place))
        return split_changes(updated, found, 2)

    def _staged(self, documents):
        self.n += 1
        staged = Dataset(self.place / f"v{self.n}")
        staged.path.mkdir()
        staged.write_manifest(Manifest(name="set"))
        staged.write_chunks(
            Chunk(chunk_id=f"c_{doc_id}", doc_id=doc_id, text=f"a text on {doc_id} alone")
            for doc_id in documents
        )
        self._write_documents(staged, documents)
        return staged

    def _write_documents(self, staged, documents):
        rows = [
            SourceDocument(doc_id=doc_id, sha256="0", n_chars=1, n_chunks=1, aliases=aliases)
            for doc_id, aliases in sorted(documents.items())
        ]
        lines = "".join(f"{row.model_dump_json()}\n" for row in rows)
        (staged.path / "documents.jsonl").write_text(lines)

    @contextmanager
    def _survey(self, staged):
        with open_survey(staged.chunks_path, staged.own_place, silent) as survey:
            yield survey


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path)


def test_a_new_query_goes_where_those_of_its_document_went(corpus):
    """What tunes a system on dev must not give away the answers in test."""
    found = corpus.splits({"a.md": ()}, [query("q_1", "a.md", "dev"), query("q_2", "a.md")])

    assert found == {"q_1": "dev", "q_2": "dev"}


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_renamed_document_is_the_one_it_was(corpus, split):
    """Its retired queries keep the old id, and were in a split."""
    retired = query("q_1", "old.md", split, "retired")

    found = corpus.splits({"new.md": ("old.md",)}, [retired, query("q_2", "new.md")])

    assert found == {"q_1": split, "q_2": split}


def test_a_merge_of_documents_moves_nobody(corpus):
    """A figure on dev before and after must be one of the same queries."""
    queries = [query("q_1", "a.md", "dev"), query("q_2", "a.md", "test"), query("q_3", "a.md")]

    assert corpus.splits({"a.md": ()}, queries) == {"q_1": "dev", "q_2": "test", "q_3": "test"}


def test_the_parts_of_a_divided_document_keep_what_they_have(corpus):
    """Queries that were in dev together stay there, wherever their text went."""
    documents = {"a.md": (), "b.md": ()}
    before = [query("q_1", "a.md", "dev"), query("q_2", "b.md", "dev")]
    found = corpus.splits(documents, [*before, query("q_3", "b.md")])

    assert found == {"q_1": "dev", "q_2": "dev", "q_3": "dev"}


def test_a_split_does_not_depend_on_what_else_is_new(corpus):
    """Two sets of one corpus would else be split in two ways."""
    documents = {f"{name}.md": () for name in "abcdef"}
    alone = corpus.splits(documents, [query("q_3", "c.md")])
    among = corpus.splits(
        documents,
        [query(f"q_{n}", f"{d}.md") for n, d in enumerate("abdef")] + [query("q_c", "c.md")],
    )

    assert alone["q_3"] == among["q_c"]


def test_a_query_on_a_document_of_the_other_split_is_in_none(corpus):
    """A model tuned on dev would else have seen the text that test asks about."""
    moved = query("q_2", "b.md", "test"), query("q_2", "a.md", "test")

    parting = corpus.split_changes({"a.md": (), "b.md": ()}, [kept("q_1", "a.md", "dev"), moved])

    [item], [change] = parting.items, parting.changes
    assert (item.query.split, item.query.split_before) == (None, "test")
    assert (change.query_id, change.action) == ("q_2", "out_of_split")
    assert change.causes[0].detail == "its documents connect it with q_1 of the other split"


def test_a_query_on_a_document_that_was_renamed_is_parted_from_those_of_its_old_name(corpus):
    """The text is the same under either name."""
    renamed = query("q_1", "a.md", "dev"), query("q_1", "new.md", "dev")
    moved = query("q_2", "b.md", "test"), query("q_2", "new.md", "test")

    parting = corpus.split_changes({"new.md": ("a.md",)}, [renamed, moved])

    assert [item.query.query_id for item in parting.items] == ["q_2"]


def test_a_query_that_stands_apart_again_is_back_in_its_split(corpus):
    """It would else be lost to both for good, though its document went its own way."""
    left = query("q_2", "a.md").model_copy(update={"split_before": "test"})
    apart = query("q_2", "b.md").model_copy(update={"split_before": "test"})

    parting = corpus.split_changes(
        {"a.md": (), "b.md": ()}, [kept("q_1", "a.md", "dev"), (left, apart)]
    )

    [item], [change] = parting.items, parting.changes
    assert (item.query.split, item.query.split_before) == ("test", None)
    assert change.action == "back_in_split"


def test_a_query_that_still_stands_between_the_splits_is_told_once(corpus):
    """A line a night about nothing new would be read by nobody."""
    left = query("q_2", "a.md").model_copy(update={"split_before": "test"})

    parting = corpus.split_changes({"a.md": ()}, [kept("q_1", "a.md", "dev"), (left, left)])

    assert (parting.items, parting.changes) == ([], [])


def test_splits_that_met_before_are_left_alone(corpus):
    """An imported set may have been split by another rule."""
    queries = [kept("q_1", "a.md", "dev"), kept("q_2", "a.md", "test")]

    assert corpus.split_changes({"a.md": ()}, queries).items == []


def test_nothing_is_read_where_all_have_a_split(tmp_path):
    """Most nights bring no new query."""
    updated = UpdatedQueries([UpdatedQuery(None, query("q_1", "a.md", "dev"))])

    assert with_splits(Dataset(tmp_path / "none"), updated, None, Settings()) == []


def test_a_set_without_splits_stays_without(tmp_path):
    """A set made by hand would be read otherwise than its author means, from its second night."""
    by_hand = query("q_1", "a.md")
    items = [UpdatedQuery(by_hand, by_hand), UpdatedQuery(None, query("q_2", "a.md"))]

    assert with_splits(Dataset(tmp_path / "none"), UpdatedQueries(items), None, Settings()) == []
