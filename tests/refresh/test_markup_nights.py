"""Nights on which a site changes its markup, and nothing that a reader sees."""

import re
from pathlib import Path

import pytest
from nights import SIX, make_night
from refresh.two_versions import diff_of, id_of

from ragforge.cli import main
from ragforge.corpus.quote_locations import Page
from ragforge.corpus.rereading import as_read, seen_digests, seen_now_sha256
from ragforge.files.set.opening import open_dataset
from ragforge.mock.running import serving
from ragforge.records import Chunk
from ragforge.refresh.grades.moved_chunks import find_moved, new_to_readers
from ragforge.refresh.version_checks import chunks_lost

BEFORE = "## Fees { #fees }\n\nSee the [price list](https://x.org/a): the fee is **ten** percent."
NOW = "## Fees\n\nSee the price list: the fee is ten percent."
ESCAPED = {
    "forms.md": (
        "# Forms\n\nThe [field](x.md) for the amount takes numbers only, as &lt;input max=5&gt; "
        "says so. Users who buy cheese and milk type the amount of money here.\n"
    ),
    "cheese.md": (
        "# Cheese\n\nCheese is made from milk by **curdling** it. The milk for the cheese forms "
        "comes from the north, and users type no amount of money.\n"
    ),
}


def grades_of(folder):
    """Return the grades of a set, whatever the ids of its chunks."""
    found = open_dataset(Path(folder)).each_judgment()
    return sorted((judgment.query_id, judgment.grade) for judgment in found)


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """A set of a model, whose pools were judged."""
    with serving() as served:
        yield make_night(tmp_path_factory.mktemp("markup") / "night", served.url, *SIX)


def with_anchors(text):
    """Give each heading an anchor."""
    return re.sub(r"^(#+ .*)$", r"\1 { #anchor }", text, flags=re.MULTILINE)


def test_anchors_on_all_headings_cost_no_call(night):
    """A reader sees what was there: nothing is judged, checked or lost, and the night publishes."""
    before = {path.name: path.read_text("utf-8") for path in night.docs.iterdir()}
    asked = night.queries
    for name in before:
        night.edit(name, with_anchors)

    told = night.json()

    assert told["status"] == "published"
    assert set(told["calls"].values()) == {0}
    assert (told["judgments"]["judged"], told["judgments"]["dropped"]) == (0, 0)
    assert (told["documents"]["chunks_added"], told["documents"]["chunks_removed"]) == (0, 0)
    assert set(told["items"]) <= {"kept", "remapped"}
    for query_id, query in night.queries.items():
        for item, old in zip(query.evidence, asked[query_id].evidence, strict=True):
            text = (night.docs / item.doc_id).read_text("utf-8")
            assert text[item.start : item.end] == item.quote == old.quote


def formatted(text):
    """Write headings of the first level and items as another formatter does."""
    underlined = re.sub(r"^# (.*)$", r"\1\n=====", text, flags=re.MULTILINE)
    return re.sub(r"^- ", "* ", underlined, flags=re.MULTILINE)


def test_another_formatter_costs_no_call(night, tmp_path):
    """Grades go with their chunks, whose marks are drawn otherwise, and no query is checked."""
    night = night.copy(tmp_path / "night")
    for path in night.docs.iterdir():
        night.edit(path.name, formatted)

    told = night.json()

    assert told["status"] == "published"
    assert set(told["calls"].values()) == {0}
    assert (told["judgments"]["judged"], told["judgments"]["dropped"]) == (0, 0)
    assert told["judgments"]["carried"] > 0
    assert set(told["items"]) <= {"kept", "remapped"}


def test_chunk_that_was_cut_with_its_markup_is_the_same(tmp_path):
    """Sets made before markup was read keep their grades."""
    diff = diff_of({"a.md": (BEFORE, "Old.")}, {"a.md": (NOW, "New.")}, tmp_path)

    assert find_moved(diff, {id_of("a.md", BEFORE)}).now == {
        id_of("a.md", BEFORE): (id_of("a.md", NOW),)
    }
    assert new_to_readers(diff) == {id_of("a.md", "New.")}
    assert chunks_lost(diff) == 1


def test_chunk_in_which_an_earlier_release_left_markup_is_the_same():
    """A reader that learns more markup must not have a set judged anew."""
    place = {"chunk_id": "c", "doc_id": "a.md", "start": 0, "end": 60, "hidden": ((4, 2),)}
    before = Chunk(text="See [the list]({{ site.x }}/a): ten percent.", **place)
    now = Chunk(text="See the list: ten percent.", **place)

    assert seen_now_sha256(now) in seen_digests(before)


def test_number_within_what_looks_like_markup_is_seen(tmp_path):
    """`&lt;b max=5&gt;` is text, and a grade of it none of what says 6."""
    place = {"doc_id": "a.md", "start": 0, "end": 60, "hidden": ((4, 3),)}
    before, now = (
        Chunk(chunk_id=f"c{n}", text=f"The <input max={n}> bounds it.", **place) for n in (5, 6)
    )

    assert seen_now_sha256(now) not in seen_digests(before)


def test_grade_of_text_that_looks_like_markup_goes_with_its_document(tmp_path):
    """A page says under another name what it said, also where `&lt;b max=5&gt;` is in it."""
    docs, made = tmp_path / "docs", str(tmp_path / "set")
    docs.mkdir()
    for name, text in ESCAPED.items():
        (docs / name).write_text(text, encoding="utf-8")
    main(["generate", "--documents", str(docs), "-n", "2", "--out", made, "-q"])
    main(["retrieve", "--dataset", made, "--retriever", "bm25", "-q"])
    main(["judge", "--dataset", made, "-q"])
    before = grades_of(made)
    (docs / "forms.md").rename(docs / "entry.md")

    main(["refresh", "--dataset", made, "--documents", str(docs), "--complete", "off", "-q"])

    assert len(before) == 4
    assert grades_of(made) == before


def test_markup_of_another_format_is_text(tmp_path):
    """In plain text, a star is a star."""
    diff = diff_of({"a.txt": (BEFORE,)}, {"a.txt": (NOW,)}, tmp_path)

    assert new_to_readers(diff) == {id_of("a.txt", NOW)}


def test_star_of_source_code_is_no_mark(tmp_path):
    """A product is not a difference, though items may begin with either sign."""
    before, now = (f"total = (\n    price\n    {sign} n\n)" for sign in "*-")
    diff = diff_of(
        {"a.py": (before,), "b.md": (before,)}, {"a.py": (now,), "b.md": (now,)}, tmp_path
    )

    assert new_to_readers(diff) == {id_of("a.py", now)}


def test_quote_with_its_markup_is_found_as_it_is_read():
    """Evidence of such a set, or of a person who copied the source, stands where it stood."""
    page = Page([Chunk(chunk_id="c", doc_id="a.md", text=NOW, start=0, end=len(NOW))])

    [place] = page.places("See the [price list](https://x.org/a): the fee is **ten** percent.")

    assert place.text == "See the price list: the fee is ten percent."


def test_chunk_is_read_at_its_place():
    """Offsets of an older set lead into the file as well."""
    chunk = Chunk(chunk_id="c", doc_id="a.md", text=BEFORE, start=7, end=7 + len(BEFORE))

    read = as_read(chunk)

    assert read.text == NOW
    assert (read.start, read.end) == (7, 7 + len(BEFORE))
    assert BEFORE[read.offset(NOW.index("ten")) - 7 :].startswith("ten**")
    assert as_read(read) == read
