"""Sweeping: what is tried, kept, told apart and refused."""

import json
import re

import pytest

import ragforge as rf
from ragforge.errors import DataError, UsageError
from ragforge.files.set.opening import open_dataset

DOCUMENTS = {
    f"{name}.md": f"# {name.title()}\n\n"
    + "\n\n".join(
        f"## Part {n}\n\nThe {name} of room {n} is a device that moves {n * 7} crates an hour. "
        f"It was built in {1900 + n} by the yard of pier {n}, and painted twice since then."
        for n in range(1, 7)
    )
    for name in ("crane", "lift", "winch", "ferry")
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a set of some queries with quotes."""
    return rf.generate(
        DOCUMENTS, out=tmp_path_factory.mktemp("made") / "set", n=8, allow_shortfall=True
    )


@pytest.fixture
def ds(made, tmp_path):
    """Return a copy of it."""
    import shutil

    shutil.copytree(made.path, tmp_path / "set")
    return rf.open(tmp_path / "set")


def words(text):
    """Cut at empty lines."""
    return text.split("\n\n")


def sized(text, chunk_size):
    """Cut every so many characters."""
    return [text[at : at + chunk_size] for at in range(0, len(text), chunk_size)]


def raising(text):
    """Cut nothing."""
    raise RuntimeError("out of ink")


def inventing(text):
    """Cut what is not there."""
    return ["Nobody wrote this sentence into any of the documents."]


MARKED = {
    name: "---\ntitle: Notes\n---\n\n"
    + re.sub(r"The (\w+) of room (\d)", r"The [\1](../yards/\2.md) of `room` <!--x-->\2", text)
    for name, text in DOCUMENTS.items()
}


@pytest.fixture
def marked(tmp_path):
    """Return a set of documents with markup, which readers do not see, and their folder."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in MARKED.items():
        (folder / name).write_text(text)
    return rf.generate(folder, out=tmp_path / "marked", n=12, max_chars=400, allow_shortfall=True)


LIKE_MARKED = {"sizes": 400, "splitters": "headings", "tokens": 200, "retrievers": "bm25"}


def test_a_system_gets_the_texts_of_chunks_where_markup_is_hidden(marked):
    """What stands for markup is no text of any prompt."""
    chunks = {chunk.text for chunk in marked.chunks()}
    given = []

    def read(query, contexts):
        given.extend(contexts)
        return "so"

    marked.sweep(**LIKE_MARKED, system=read)

    assert any(chunk.hidden for chunk in marked.chunks())
    assert {*given} <= chunks
    assert given


def test_the_documents_of_a_set_give_the_sweep_of_its_chunks(marked, tmp_path):
    """They are the same documents, so that no query loses its quotes."""
    own = marked.sweep(**LIKE_MARKED)
    read = marked.sweep(**LIKE_MARKED, documents=tmp_path / "docs")

    assert read.report.n_queries == own.report.n_queries == len(list(marked.queries()))
    assert read.report.warnings == ()
    assert read.best.value == own.best.value


@pytest.mark.parametrize("measure", ["EvidenceR", "TokenP", "TokenIoU"])
def test_a_sweep_measures_what_evaluate_does(marked, measure):
    """One thing has one value; hidden markup is not what was retrieved."""
    marked.retrieve("bm25", k=3, quiet=True)
    name = f"{measure}@3"
    found = marked.sweep(**LIKE_MARKED, decide_by=name)

    assert found.best.value.mean == pytest.approx(marked.evaluate("bm25", [name]).mean(name))


def test_queries_without_a_place_are_named_with_the_way_out(ds, tmp_path):
    """Who does not know which they are cannot mend them."""
    folder = tmp_path / "docs"
    folder.mkdir()
    gone = next(item for query in ds.queries() for item in query.evidence)
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text.replace(gone.quote, "Gone."))
    unplaced = [q.query_id for q in ds.queries() if any(e.quote == gone.quote for e in q.evidence)]
    [warning] = ds.sweep(sizes=200, documents=folder).report.warnings

    assert ", ".join(sorted(unplaced)) in warning
    assert "sweep those that the set was made from" in warning


def test_each_combination_is_measured(ds):
    """A table with a hole would hide the best."""
    found = ds.sweep(sizes=[100, 300], overlaps=["0", "20%"], retrievers=["bm25", "chargram"])

    assert len(found.report.results) == 2 * 2 * 2 * 2
    assert {item.configuration.overlap for item in found.report.results} == {0, 20, 60}


def test_the_best_comes_first(ds):
    """What is read first must be what was asked for."""
    found = ds.sweep(sizes=[100, 300], tokens=[50, 100])

    means = [item.value.mean for item in found.report.results]
    assert means == sorted(means, reverse=True)
    assert found.report.decided_by == "EvidenceR(tokens=100)"


def test_what_is_not_told_apart_is_named_beside_the_best(ds):
    """Few queries show large differences only."""
    by = "TokenIoU(tokens=60)"
    found = ds.sweep(sizes=[80, 100], splitters="recursive", tokens=60, decide_by=by)

    assert "Not told apart from the best (1 of 1 others)" in found.verdict


def test_a_follow_up_is_retrieved_as_it_stands_on_its_own(ds):
    """Retrieval is given the question that does without the turns before it."""
    given = {"sizes": [100], "splitters": "recursive", "tokens": [50]}
    before = ds.sweep(**given).best.value.mean
    dataset = open_dataset(ds.path)
    follow_ups = [
        query.model_copy(update={"query": "And that one?", "standalone": query.query})
        for query in dataset.all_queries()
    ]
    dataset.write_queries(follow_ups)

    assert ds.sweep(**given).best.value.mean == before > 0


def test_a_second_sweep_ranks_only_what_is_new(ds):
    """Another size must not cost the old ones again."""
    ds.sweep(sizes=[100], splitters="recursive")

    found = ds.sweep(sizes=[100, 300], splitters="recursive")

    kept = {item.configuration.size: item.ranked.was_kept for item in found.report.results}
    assert kept == {100: True, 300: False}


def test_a_splitter_is_ranked_again_where_its_pieces_change(ds, tmp_path, monkeypatch):
    """What it imports and reads tells how it cuts, as much as its own file."""
    size = tmp_path / "size.txt"
    (tmp_path / "reading_splitter.py").write_text(
        "from pathlib import Path\n\n\ndef split(text):\n"
        f"    n = int(Path({str(size)!r}).read_text())\n"
        "    return [text[at : at + n] for at in range(0, len(text), n)]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def swept():
        [result] = ds.sweep(splitters="reading_splitter:split", retrievers="bm25").report.results
        return result.ranked.n_chunks, result.ranked.was_kept

    size.write_text("900")
    few = swept()
    kept = swept()
    size.write_text("90")
    many = swept()

    assert (few[1], kept, many[1]) == (False, (few[0], True), False)
    assert many[0] > few[0]


def test_configurations_of_equal_values_have_no_first(ds):
    """Which of them stands above the others says nothing."""
    found = ds.sweep(sizes=[5000, 6000], splitters="headings", retrievers="bm25").to_dict()

    assert found["verdict"].startswith("All 2 configurations are equal by EvidenceR(tokens=")
    assert found["verdict"].endswith("None is first.")


def test_a_damaged_file_is_ranked_again(ds):
    """A disk that was full must not decide about chunk sizes."""
    ds.sweep(sizes=[100], splitters="recursive")
    [path] = [p for p in (ds.path / ".ragforge" / "sweep").iterdir() if p.name != "sweep.json"]
    path.write_text(path.read_text()[:-40])

    found = ds.sweep(sizes=[100], splitters="recursive")

    assert [item.ranked.was_kept for item in found.report.results] == [False]


def test_more_tokens_than_kept_are_ranked_again(ds):
    """A ranking that ends too early would make a large budget look small."""
    ds.sweep(sizes=[100], splitters="recursive")

    found = ds.sweep(sizes=[100], splitters="recursive", tokens=[9000])

    assert [item.ranked.was_kept for item in found.report.results] == [False]


def test_processes_rank_what_one_does(ds, tmp_path):
    """How many cores there are must change no number."""
    one = ds.sweep(sizes=[100, 300], processes=1).to_dict()
    for path in (ds.path / ".ragforge" / "sweep").iterdir():
        path.unlink()

    two = ds.sweep(sizes=[100, 300], processes=2).to_dict()

    for each in (*one["configurations"], *two["configurations"]):
        each.pop("seconds")
    assert one == two


def test_the_documents_themselves_give_what_the_chunks_give(ds):
    """Whoever has the documents at hand may name them."""
    from_chunks = ds.sweep(sizes=[200], splitters="recursive")

    again = ds.sweep(sizes=[200], splitters="recursive", documents=DOCUMENTS)

    assert again.best.value.mean == from_chunks.best.value.mean


def test_other_documents_are_refused(ds):
    """Evidence that stands nowhere would make every configuration look useless."""
    with pytest.raises(DataError, match="no query has evidence that stands in the documents"):
        ds.sweep(documents={"other.md": "# Other\n\nNothing of it is here, not a word.\n"})


def test_a_function_is_told_the_size(ds):
    """Splitters of frameworks take one."""
    found = ds.sweep(sizes=[100, 300], splitters=[sized])

    assert sorted(item.configuration.size for item in found.report.results) == [100, 300]


def test_a_function_without_a_size_is_tried_once(ds):
    """It cuts the same whatever the size."""
    found = ds.sweep(sizes=[100, 300], splitters=[words])

    assert [item.configuration.size for item in found.report.results] == [None]


@pytest.mark.parametrize(
    ("splitter", "reason"),
    [(raising, "raised RuntimeError: out of ink"), (inventing, "is not in the document")],
)
def test_a_splitter_that_fails_is_named_beside_the_others(ds, splitter, reason):
    """One broken candidate must not cost the sweep."""
    found = ds.sweep(sizes=[200], splitters=["recursive", splitter])

    [told] = found.failed.values()
    assert reason in told
    assert len(found.report.results) == 1


def beginning(text):
    """Leave out what comes later."""
    return [piece for piece in text.split("\n\n") if piece.strip()][:6]


def test_objects_of_one_name_are_all_tried(ds):
    """Splitters of a framework are objects of one class; one alone was ranked, in silence."""

    class Splitter:
        def __init__(self, size):
            self.size = size

        def split_text(self, text):
            return sized(text, self.size)

    small, large = Splitter(100), Splitter(300)

    rows = ds.sweep(splitters=[small, large, small], tokens=[60]).rows()

    chunks = {row["splitter"].rpartition(".")[2]: row["chunks"] for row in rows}
    pieces = {size: sum(len(sized(t, size)) for t in DOCUMENTS.values()) for size in (100, 300)}
    assert chunks == {"Splitter": pieces[100], "Splitter-2": pieces[300]}


def test_a_splitter_that_leaves_out_text_is_told(ds):
    """Its low recall would pass for that of a size."""
    found = ds.sweep(splitters=[beginning])

    assert any("of the text at most" in warning for warning in found.report.warnings)


def test_a_size_that_no_document_reaches_is_told(ds):
    """Two such sizes are one and the same."""
    found = ds.sweep(sizes=[100, 50_000, 90_000], splitters="recursive")

    [warning] = found.report.warnings
    assert warning.startswith("recursive 50,000; recursive 90,000: no document is longer")


def test_nothing_that_works_is_an_error(ds):
    """An empty table is no result."""
    with pytest.raises(UsageError, match="no configuration of 1 could be ranked"):
        ds.sweep(splitters=[raising])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sizes": [100], "overlaps": [200]}, "more than the overlap"),
        ({"sizes": ["many"]}, "expected a whole number"),
        ({"overlaps": ["-3"]}, "expected characters, or a share"),
        ({"splitters": "headlines"}, "did you mean headings"),
        ({"retrievers": "http://127.0.0.1:1/search"}, "has an index of its own"),
        ({"tokens": []}, "expected at least one of them"),
        ({"decide_by": "nDCG@10"}, "counts chunks"),
        ({"decide_by": "EvidenceR"}, "how much is taken of a ranking"),
        ({"out": "sweep.pdf"}, "expected a name that ends in"),
        ({"processes": 0}, "expected a number from 1"),
        ({"sizes": list(range(30, 1100))}, "expected at most 1,000"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_tried_is_refused(ds, given, message):
    """A slip must show before anything is ranked."""
    with pytest.raises(UsageError, match=message):
        ds.sweep(**given)


def test_a_dry_run_counts_chunks_and_ranks_nothing(ds):
    """Embeddings cost money, and chunks say how much."""
    found = ds.sweep(sizes=[100, 300], splitters="recursive", dry_run=True)

    assert [row["size"] for row in found.rows()] == [100, 300]
    assert found.rows()[0]["chunks"] > found.rows()[1]["chunks"]
    assert not (ds.path / ".ragforge" / "sweep").exists()


@pytest.mark.parametrize(("name", "start"), [("s.html", "<!DOCTYPE"), ("s.svg", "<svg xmlns=")])
def test_the_picture_is_written(ds, tmp_path, name, start):
    """A table of two dozen rows is read by its picture."""
    ds.sweep(sizes=[100, 300], overlaps=["0", "20%"], out=tmp_path / name)

    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def picture(ds, tmp_path, **given):
    """Return the page and the picture of a sweep."""
    for name in ("s.html", "s.svg"):
        ds.sweep(sizes=[100, 300], out=tmp_path / name, **given)
    return [(tmp_path / name).read_text(encoding="utf-8") for name in ("s.html", "s.svg")]


def test_both_axes_have_a_name(ds, tmp_path):
    """A picture is passed on without the page around it."""
    for drawn in picture(ds, tmp_path):
        assert "tokens in the prompt, mean</tspan>" in drawn
        assert ">EvidenceR</tspan>" in drawn


def test_lines_with_overlap_have_rings(ds, tmp_path):
    """Dashes tell sizes apart; what tells overlap must be something else."""
    for drawn in picture(ds, tmp_path, overlaps=["0", "20%"]):
        assert 'class="spot ring' in drawn
        assert "dotted" not in drawn.partition("</style>")[2]


def test_a_page_without_overlap_does_not_speak_of_it(ds, tmp_path):
    """A reader would look for lines that are not there."""
    page, _ = picture(ds, tmp_path)

    assert "have overlap" not in page
    assert 'class="spot ring' not in page


def test_panels_of_a_splitter_stand_in_a_row(ds, tmp_path):
    """What is compared at a glance stands side by side."""
    given = {"splitters": ["headings", "recursive"], "retrievers": ["bm25", "chargram"]}
    _, drawn = picture(ds, tmp_path, **given)

    tops = re.findall(r'y="(\d+)">(\w+), \w+</text>', drawn)
    assert len({top for top, splitter in tops if splitter == "headings"}) == 1
    assert len({top for top, _ in tops}) == 2


def test_the_values_are_written(ds, tmp_path):
    """Programs read the result."""
    found = ds.sweep(sizes=[100, 300], out=tmp_path / "s.json")

    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8")) == found.to_dict()
    kept = ds.path / ".ragforge" / "sweep" / "sweep.json"
    assert json.loads(kept.read_text(encoding="utf-8")) == found.to_dict()


def test_a_part_of_the_queries_is_measured(ds):
    """A sweep over thousands of queries may begin with some."""
    found = ds.part(4).sweep(sizes=[200], splitters="recursive")

    assert found.report.n_queries == 4


def test_one_query_tells_nothing_apart(ds):
    """A single query has no spread."""
    found = ds.part(1, by="none").sweep(sizes=[100, 300], splitters="recursive")

    assert "Nothing can be told apart by one query" in found.verdict


def test_values_are_those_of_evaluate(ds):
    """One measure must not have two values."""
    ds.retrieve("bm25", k=50)
    expected = ds.evaluate("bm25", ["EvidenceR@3"])["bm25"].mean("EvidenceR@3")

    found = ds.sweep(sizes=[2000], splitters="headings", k=[3], decide_by="EvidenceR@3")

    assert found.best.value.mean == expected


def test_a_retriever_that_fails_on_the_hard_queries_is_not_the_best(ds):
    """Its mean is that of the easy ones; what it failed on could be anything."""
    quotes = {item.query: item.evidence[0].quote for item in ds.queries()}
    found_by_half = sorted(quotes)[: len(quotes) // 2 + 1]
    easy = found_by_half[:-1]

    class Half:
        def __init__(self, chunks):
            self.chunks = chunks

        def retrieve(self, query, k):
            wanted = [c for c in self.chunks if quotes[query] in c.text]
            others = [c for c in self.chunks if c not in wanted]
            first = wanted if query in found_by_half else []
            return [c.chunk_id for c in (*first, *others)][:k]

    class Failing(Half):
        def retrieve(self, query, k):
            if query not in easy:
                raise OSError("out of memory")
            return super().retrieve(query, k)

    found = ds.sweep(sizes=200, splitters="headings", tokens=60, retrievers=[Half, Failing])
    [failing] = [item for item in found.report.results if item.ranked.failed]

    assert failing.value.mean == 1.0
    assert not failing.is_worse
    assert not any(item.is_worse for item in found.report.results)
    assert found.best is not failing
    assert failing.bounds.low <= 0 <= failing.bounds.high
    assert "failed" in str(found)
