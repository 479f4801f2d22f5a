import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.corpus.documents import Document, read_documents
from ragforge.errors import DataError
from ragforge.files.text import normalise


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    for name in ("a.md", "b.rst", "c.txt", "guide/d.html", "drafts/e.md", "drafts/old/f.md"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"text of {name}", encoding="utf-8")
    return folder


def ids(*paths, **options):
    return [document.doc_id for document in read_documents(paths, **options)]


def read_one(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    [document] = read_documents([path])
    return document


def test_folder_is_read_to_any_depth_in_sorted_order(docs):
    """Order and ids must not hang on the file system."""
    assert ids(docs) == [
        "a.md", "b.rst", "c.txt", "drafts/e.md", "drafts/old/f.md", "guide/d.html",
    ]  # fmt: skip


def test_file_given_by_name_has_its_name_as_id(docs):
    """The id must not hold the path of the machine."""
    assert ids(docs / "drafts" / "e.md") == ["e.md"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["**/*.md"], ["a.md", "drafts/e.md", "drafts/old/f.md"]),
        (["*.md"], ["a.md", "drafts/e.md", "drafts/old/f.md"]),
        (["drafts/*.md"], ["drafts/e.md"]),
        (["drafts/*"], ["drafts/e.md", "drafts/old/f.md"]),
        (["drafts"], ["drafts/e.md", "drafts/old/f.md"]),
        (["drafts/"], ["drafts/e.md", "drafts/old/f.md"]),
        (["**/old/*"], ["drafts/old/f.md"]),
        (["/a.md", "?.txt"], ["a.md", "c.txt"]),
        (["[bc].*"], ["b.rst", "c.txt"]),
        (["[!a-c].*"], ["drafts/e.md", "drafts/old/f.md", "guide/d.html"]),
    ],
)
def test_include_takes_what_its_patterns_name(docs, patterns, expected):
    """Patterns mean what they mean in .gitignore, which users know."""
    assert ids(docs, include=patterns) == expected


def test_exclude_is_stronger_than_include(docs):
    """A draft must not slip in by a wide include."""
    assert ids(docs, include=["*.md"], exclude=["drafts/*"]) == ["a.md"]


def test_odd_range_in_a_pattern_matches_nothing(docs):
    """A typing error in a pattern must not end in a traceback."""
    assert ids(docs, exclude=["[z-a].md", "[", "("]) == ids(docs)


def test_hidden_files_and_folders_are_passed_over(docs):
    """Editors and version control leave copies there."""
    (docs / ".git").mkdir()
    (docs / ".git" / "x.md").write_text("hidden")
    (docs / ".x.md").write_text("hidden")

    assert ".x.md" not in ids(docs)
    assert ".git/x.md" not in ids(docs)


def test_link_to_a_folder_is_reported_and_not_followed(docs):
    """A loop of links must not hang the walk."""
    (docs / "guide" / "loop").symlink_to(docs, target_is_directory=True)
    notes = []

    found = ids(docs, skipped=lambda path, reason: notes.append((path, reason)))

    assert len(found) == 6
    assert notes == [(str(docs / "guide" / "loop"), "is a link to a folder, which is not followed")]


def noted(docs, **options):
    """Return the ids of what is read, and what is told of the rest."""
    notes = []
    found = ids(docs, skipped=lambda path, reason: notes.append(f"{path}: {reason}"), **options)
    return found, notes


def leading_out(docs):
    """Let links in a folder lead to files outside of it, and return these."""
    outside = docs.parent / "outside"
    outside.mkdir()
    for name in ("a.md", "b.md", "c.md", "d.md"):
        (outside / name).write_text(f"# Of {name}\n\nA password.\n")
        (docs / f"x{name}").symlink_to(f"../outside/{name}")
    return outside


def test_links_out_of_the_folder_are_told_once_and_not_followed(docs):
    """A folder from elsewhere could bring any file of its reader's into what is published."""
    before, unread = ids(docs), []
    leading_out(docs)

    found, notes = noted(docs, unread=unread.append)

    assert found == before
    assert notes == [
        f"4 files, such as {docs / 'xa.md'}, {docs / 'xb.md'}, {docs / 'xc.md'}: links out of the "
        "folder are not followed; --follow-links reads what they lead to"
    ]
    assert unread == ["xa.md", "xb.md", "xc.md", "xd.md"]


def test_links_out_of_the_folder_are_followed_on_demand(docs):
    """Some collect their documents by links; no loop, and nothing twice."""
    before, outside = ids(docs), leading_out(docs)
    (docs / "more").symlink_to(outside)
    (docs / "again").symlink_to(outside)
    (docs / "up").symlink_to(docs.parent)
    (outside / "back").symlink_to(docs)
    (outside / "loop").symlink_to(outside)

    found, notes = noted(docs, follow_links=True)

    four = [f"{name}.md" for name in "abcd"]
    links = [f"again/{name}" for name in four] + [f"x{name}" for name in four]
    assert sorted(found) == sorted([*before, *links])
    assert len(notes) == 4


def test_a_folder_of_links_that_lead_out_says_how_they_are_read(docs):
    """Nothing but an empty set would come of it."""
    (docs.parent / "links").mkdir()
    (docs.parent / "links" / "a.md").symlink_to(docs / "a.md")

    with pytest.raises(DataError, match=r"no document in it is read: .*--follow-links reads"):
        ids(docs.parent / "links")


def test_the_folder_may_be_a_link_and_have_links_within(docs):
    """So mounted settings and documents look: each file is a link to a hidden folder."""
    (docs / "..data").mkdir()
    (docs / "..data" / "k.md").write_text("# Mounted\n")
    (docs / "k.md").symlink_to("..data/k.md")
    (docs.parent / "link").symlink_to(docs)

    found, notes = noted(docs.parent / "link")

    assert "k.md" in found
    assert notes == []


@pytest.fixture
def odd_names(docs):
    """Files and a folder whose names are not UTF-8, as old archives leave them."""
    try:
        (docs / "caf\udce9.md").write_text("# Coffee\n")
    except OSError:
        pytest.skip("the file system takes only UTF-8")
    (docs / "d\udcff").mkdir()
    (docs / "d\udcff" / "a.md").write_text("# In a folder\n")
    (docs / "image\udcff.png").write_bytes(b"none")
    return docs


def test_names_that_are_not_utf_8_are_told_once_and_passed_over(docs, odd_names):
    """One old file must not stop a corpus of thousands."""
    coffee, within = docs / "caf\udce9.md", docs / "d\udcff" / "a.md"

    found, notes = noted(docs)

    assert len(found) == 6
    assert notes == [f"2 files, such as {coffee}, {within}: names that are not UTF-8 cannot be ids"]


def test_a_file_whose_name_is_not_utf_8_cannot_be_given(docs, odd_names):
    """Whoever names it wants it read."""
    with pytest.raises(DataError, match=r"caf\\xe9\.md: names that are not UTF-8.*rename it"):
        ids(docs / "caf\udce9.md")


def test_link_to_itself_is_passed_over(docs):
    """It cannot be read, and must not hang."""
    (docs / "loop.md").symlink_to(docs / "loop.md")
    notes = []

    assert len(ids(docs, skipped=lambda path, reason: notes.append((path, reason)))) == 6
    assert notes == [
        (str(docs / "loop.md"), "expected a file, got a broken link or a special file")
    ]  # fmt: skip


@pytest.mark.parametrize("content", ["", " \n\t\n", "\ufeff", "\x01\n"])
def test_document_without_text_is_reported_and_skipped(docs, content):
    """An empty page in a large corpus must not stop the run, nor vanish silently."""
    (docs / "empty.md").write_text(content, encoding="utf-8")
    notes = []

    found = ids(docs, skipped=lambda path, reason: notes.append((path, reason)))

    assert "empty.md" not in found
    assert notes == [(str(docs / "empty.md"), "holds no text")]


def test_page_of_scripts_alone_counts_as_empty(docs):
    """What a reader does not see is no text."""
    (docs / "empty.html").write_text("<script>let x = 1</script>")

    assert "empty.html" not in ids(docs)


def test_missing_path_is_a_data_error(tmp_path):
    """A mistyped path must be named."""
    with pytest.raises(DataError, match=r"absent: does not exist"):
        ids(tmp_path / "absent")


def test_folder_without_documents_says_what_it_saw(tmp_path):
    """The user must learn why a full folder counts as empty."""
    for name in ("a.py", "b.py", "Makefile"):
        (tmp_path / name).write_text("x")

    with pytest.raises(DataError, match=r"\.md, .*\.tsv\), got 3 files \(\.py: 2, no suffix: 1\)$"):
        ids(tmp_path)


def test_empty_folder_says_so(tmp_path):
    """A wrong mount point looks like this."""
    with pytest.raises(DataError, match="got no file"):
        ids(tmp_path)


def test_patterns_that_leave_nothing_are_named_as_the_cause(docs):
    """Else the user looks for missing files."""
    with pytest.raises(DataError, match="include and exclude pass over 6 of them"):
        ids(docs, include=["nothing"])


def test_file_of_another_kind_is_refused(tmp_path):
    """A picture given by name must not be read as text."""
    (tmp_path / "a.png").write_bytes(b"PNG")

    with pytest.raises(DataError, match=r"a\.png: expected one of \.md, .*got \.png"):
        ids(tmp_path / "a.png")


def test_broken_files_are_passed_over_and_counted(docs):
    """One bad upload among thousands must not end the night's run, nor go unseen."""
    (docs / "bad.pdf").write_bytes(b"%PDF-1.4")
    (docs / "bad.docx").write_bytes(b"PK")
    notes = []

    found = ids(docs, skipped=lambda path, reason: notes.append((path, reason)))

    assert len(found) == 6
    assert [(path, reason.split(":")[0]) for path, reason in notes] == [
        (str(docs / "bad.docx"), "is no whole Word document"),
        (str(docs / "bad.pdf"), "is no whole PDF"),
        ("2 of 8 files", "could not be read"),
    ]


def test_nothing_but_broken_files_is_a_data_error(tmp_path):
    """An empty corpus must not look like a finished run."""
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4")
    (tmp_path / "b.pdf").write_bytes(b"")

    with pytest.raises(DataError, match=r"none of the 2 files could be read: .*a\.pdf"):
        ids(tmp_path)


def test_missing_library_is_told_once_with_the_extra(docs, monkeypatch):
    """A thousand equal lines hide the one that says what to install."""
    for name in ("x.pdf", "y.pdf"):
        (docs / name).write_bytes(b"%PDF-1.4")
    monkeypatch.setitem(sys.modules, "pypdf", None)
    notes = []

    found = ids(docs, skipped=lambda path, reason: notes.append((path, reason)))

    assert len(found) == 6
    assert notes[0] == (
        "2 .pdf files", "reading them needs pypdf: pip install 'ragforge[pdf]'"
    )  # fmt: skip


def test_rows_of_a_table_are_documents(docs):
    """A catalogue comes as a table, and each product is a thing to ask about."""
    (docs / "goods.csv").write_text("id,name,price\nx7,Oak table,120\nx9,Chair,45\n")

    table = [d for d in read_documents([docs]) if d.doc_id.startswith("goods.csv#")]

    assert table == [
        Document("goods.csv#x7", "Oak table", "id: x7\nname: Oak table\nprice: 120", "row"),
        Document("goods.csv#x9", "Chair", "id: x9\nname: Chair\nprice: 45", "row"),
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"id,name\n1,caf\xe9\n", "byte 5 (0xe9) is not UTF-8"),
        (b"id,name\n1,a\n2,b,c\n", "expected 2 cells"),
        (b"id,name\n1,a\n1,b\n", "id '1' comes twice"),
    ],
)
def test_broken_table_is_passed_over_whole(docs, content, reason):
    """Half a table read would be half a corpus."""
    (docs / "bad.csv").write_bytes(content)
    notes = []

    found = ids(docs, skipped=lambda path, reason: notes.append((path, reason)))

    assert len(found) == 6
    [(path, told)] = notes
    assert path == str(docs / "bad.csv")
    assert reason in told


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"caf\xe9", r"x\.md: byte 3 \(0xe9\) is not UTF-8"),
        (b"a\x00b", r"x\.md: is binary"),
        ("text".encode("utf-16"), r"x\.md: is UTF-16"),
    ],
)
def test_file_that_is_not_utf8_text_is_refused(tmp_path, content, message):
    """Guessed encodings put garbled words into queries."""
    (tmp_path / "x.md").write_bytes(content)

    with pytest.raises(DataError, match=message):
        ids(tmp_path)


@pytest.mark.parametrize("content", [b"caf\xe9", b"a\x00b", "text".encode("utf-16")])
def test_text_that_cannot_be_read_is_passed_over_with_the_reason(docs, content):
    """One stray file must not cost the run of all others."""
    (docs / "x.md").write_bytes(content)
    notes = []

    found = ids(docs, skipped=lambda path, reason: notes.append((path, reason)))

    assert len(found) == 6
    [(path, told)] = notes
    assert path == str(docs / "x.md")
    assert "only UTF-8" in told
    assert not told.startswith(path)


def test_two_files_with_one_doc_id_are_refused(tmp_path):
    """Their chunks could not be told apart."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "index.md").write_text("text")

    with pytest.raises(DataError, match=r"two/index\.md: has the doc_id 'index\.md' of .*one"):
        ids(tmp_path / "one", tmp_path / "two")


def test_two_given_files_with_one_doc_id_are_refused(docs, tmp_path):
    """Being given by name does not make a file the same as another."""
    (tmp_path / "a.md").write_text("other text")

    with pytest.raises(DataError, match=r"has the doc_id 'a\.md' of"):
        ids(docs, tmp_path / "a.md")


@pytest.mark.parametrize(
    "paths",
    [
        ["docs", "docs/drafts/e.md"],
        ["docs/a.md", "docs"],
        ["docs", "docs/../docs/a.md"],
        ["docs", "docs"],
        ["docs/drafts/old", "docs", "docs/drafts"],
        ["link.md", "docs"],
        ["docs", "linked/a.md"],
    ],
)
def test_file_that_is_given_twice_is_read_once_as_its_folder_has_it(docs, paths):
    """`docs/* docs/guide` names files twice, and a second copy would be judged for nothing."""
    (docs.parent / "link.md").symlink_to(docs / "a.md")
    (docs.parent / "linked").symlink_to(docs, target_is_directory=True)

    assert ids(*(docs.parent / path for path in paths)) == ids(docs)


def test_file_given_by_name_that_its_folder_leaves_out_is_read(docs):
    """A wide exclude can be amended by a name."""
    assert ids(docs, docs / "drafts" / "e.md", exclude=["/*.*", "drafts"]) == [
        "guide/d.html",
        "e.md",
    ]


def test_link_to_a_file_of_the_same_folder_is_a_document_of_its_own(docs):
    """Both names may be what evidence refers to."""
    (docs / "z.md").symlink_to(docs / "a.md")

    assert ids(docs, docs / "a.md") == ids(docs)
    assert "z.md" in ids(docs)


def test_doc_id_is_composed(tmp_path):
    """macOS hands out decomposed names; the id must be the same on Linux."""
    (tmp_path / unicodedata.normalize("NFD", "é.md")).write_text("text")

    assert ids(tmp_path) == ["é.md"]


def test_line_ends_marks_and_control_characters_are_normalised():
    """Offsets must not hang on the editor that saved the file."""
    assert normalise("\ufeffa\r\nb\rc\x0cd\x07\te\u0301 ") == "a\nb\nc\nd\té "


@given(st.text())
def test_normalising_twice_changes_nothing(text):
    """Offsets refer to the normalised text, so it must be a fixed point."""
    assert normalise(normalise(text)) == normalise(text)


def test_title_comes_from_front_matter_first(tmp_path):
    """Static site generators keep it there."""
    document = read_one(tmp_path / "x.md", '---\nlayout: page\ntitle: "Real"\n---\n# Other\n\ntext')

    assert document.title == "Real"


def test_title_is_else_the_first_top_heading(tmp_path):
    """Most Markdown has no front matter."""
    assert read_one(tmp_path / "x.md", "## Sub\n\n# `Top` [link](u) {#id}\n").title == "Top link"


@pytest.mark.parametrize(
    "head",
    [
        "text\n\n" * 300,
        "x" * 3000,
        "```\n# comment\n" + "code\n" * 400 + "```\n",
        "---\nlayout: page\n# comment\n" + "more: text\n" * 200 + "---\n",
    ],
    ids=["far down", "one long line", "open fence", "front matter"],
)
def test_a_title_far_down_is_found_as_one_at_the_top(tmp_path, head):
    """Looking at the first lines alone must not take a comment in code for a title."""
    assert read_one(tmp_path / "x.md", f"{head}\n# Title\n\ntext\n").title == "Title"


def test_rst_title_is_the_outermost(tmp_path):
    """Level follows from the order in which styles appear."""
    assert read_one(tmp_path / "x.rst", "=====\n Top\n=====\n\nSub\n---\n\nx\n").title == "Top"


def test_plain_text_has_no_title(tmp_path):
    """Its first line need not be one."""
    assert read_one(tmp_path / "x.txt", "First\n\nbody") == Document(
        "x.txt", "", "First\n\nbody", "text"
    )


def test_html_becomes_the_text_that_a_reader_sees(tmp_path):
    """Chunks of markup would be judged for their tags."""
    document = read_one(
        tmp_path / "x.HTML",
        """<html><head><title>Page &amp; more</title><style>p {}</style></head><body>
        <nav><a href="/">Home</a></nav><template><p>no</p></template>
        <h1>Top<a class="headerlink" href="#top">¶</a></h1>
        <p>One   two
        &lt;three&gt; caf&eacute;<br>new line</p>
        <ul><li>a</li><li><p>b</p><ol><li>c</li><li>d</li></ol></li></ul>
        <pre><code>def f():

    return 1
</code></pre>
        <h2>Sub</h2>
        <table><tr><th>k</th><th>v</th></tr><tr><td></td><td><p>1</p></td></tr></table>
        <p># no heading</p><script>let x</script></body></html>""",
    )

    assert document.title == "Page & more"
    assert document.text == (
        "# Top\n\nOne two <three> café\nnew line\n\n"
        "- a\n- b\n  1. c\n  2. d\n\n"
        "```\ndef f():\n\n    return 1\n```\n\n"
        "## Sub\n\nk | v\n| 1\n\n\\# no heading"
    )


def test_fence_of_a_pre_is_longer_than_those_inside(tmp_path):
    """A page about Markdown shows fences."""
    assert read_one(tmp_path / "x.html", "<pre>```\nx\n```</pre>").text == (
        "````\n```\nx\n```\n````"
    )


def test_html_title_is_else_the_first_heading(tmp_path):
    """Fragments have no head."""
    assert read_one(tmp_path / "x.htm", "<h1>Top</h1><p>text</p>").title == "Top"


def test_deeply_nested_html_is_read(tmp_path):
    """Recursion would end at a thousand levels."""
    assert read_one(tmp_path / "x.html", f"{'<div>' * 3000}text").text == "text"


def test_files_that_cannot_be_read_are_told_by_id(tmp_path):
    """Who knows them from before must not take them for deleted."""
    (tmp_path / "a.md").write_text("Text.")
    (tmp_path / "b.md").write_bytes(b"caf\xe9")
    (tmp_path / "c.csv").write_text("id,text\n1,one\n2\n")
    unread = []
    list(read_documents([tmp_path], unread=unread.append))

    assert unread == ["b.md", "c.csv"]


@pytest.mark.parametrize("mark", ["\u0301", "\u0f73", "\u0316\u0301"])
def test_a_flood_of_marks_is_cut(mark):
    """Putting them in order takes quadratic time: 100,000 of them a minute."""
    text = normalise("a" + mark * 100_000 + "b")

    assert len(text) <= 102
    assert (text[-1], normalise(text)) == ("b", text)


def test_marks_that_a_script_uses_stay():
    """Hebrew, Vietnamese and Tibetan put several on one letter."""
    text = "\u05e9\u05bc\u05c1" * 200 + "a" + "\u0323\u0316" * 50 + "\u2014" * 300

    assert normalise(text) == unicodedata.normalize("NFC", text)
