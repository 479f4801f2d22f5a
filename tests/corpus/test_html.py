"""Pages of HTML that are made to take long."""

import pytest

from ragforge.corpus.formats import UnreadableError
from ragforge.corpus.html import read_page


def test_html_that_would_take_the_parser_minutes_is_passed_over():
    """It looks through all open elements at each new one."""
    text = f"<p>read</p>{'<div>' * 100_000}deep{'</div>' * 100_000}"

    with pytest.raises(UnreadableError, match="has more than 10,000 elements inside each other"):
        read_page(text)


@pytest.mark.parametrize("tag", ["p", "li", "br", "!-- <div> --"])
def test_html_of_many_unclosed_elements_is_read(tag):
    """People leave out end tags, and lists of ten thousand lines are no attack."""
    page = read_page(f"<{tag}>a" * 20_000)

    assert page.text.count("a") == 20_000


def test_lists_in_lists_are_indented_so_far():
    """Ten thousand levels would otherwise be a hundred megabytes of blanks."""
    page = read_page("<ul><li>a" * 2000)

    assert len(page.text) < 200_000


CONFLUENCE = """<div id="page"><div id="main-header"><div id="breadcrumb-section">
<ol id="breadcrumbs"><li><a href="index.html">Space</a></li></ol></div>
<h1 id="title-heading">Backups</h1></div><div id="content"><div class="page-metadata">Created by
A. Author</div><div class="toc-macro"><ul><li>Restore</li></ul></div><p>Run weekly.</p></div>
<div class="pageSection"><div class="pageSectionHeader"><h2 id="attachments">Attachments:</h2></div>
<div class="greybox"><a href="a.png">a.png</a> (image/png)</div></div>
<div id="footer"><section class="footer-body"><p>By Confluence</p></section></div></div>"""
NOTION = """<article><header><div class="page-header-icon">X</div><h1>Backups</h1></header>
<nav class="block-color-gray table_of_contents"><a>Restore</a></nav><p>Run weekly.</p></article>"""
GITBOOK = """<header role="navigation"><a>Docs</a></header><main><h1>Backups</h1><p>Run weekly.</p>
<a class="hash-link">#</a></main><footer role="contentinfo">Powered by GitBook</footer>"""
DOCUSAURUS = """<nav class="theme-doc-breadcrumbs"><ul><li>Docs</li></ul></nav><h1>Backups</h1>
<p>Run weekly.</p><div class="theme-doc-toc-mobile">On this page</div>
<a class="theme-edit-this-page">Edit this page</a><div class="pagination-nav">Next</div>"""
MDBOOK = """<div id="mdbook-help-container"><h2>Keyboard shortcuts</h2></div>
<div id="menu-bar" class="menu-bar"><ul><li><button>Light</button></li></ul><h1>The book</h1></div>
<main><h1>Backups</h1><ul><li><button>Copy</button></li></ul><p>Run weekly.</p></main>"""
RUSTDOC = """<a class="skip-main-content" href="#m">Skip</a><rustdoc-topbar><h2>Backups</h2>
</rustdoc-topbar><div class="rustdoc-breadcrumbs">std</div><h1><a class="doc-anchor">§</a>Backups
<button id="copy-path">Copy item path</button></h1><details><summary class="hideme">Expand</summary>
<p>Run weekly.</p></details>"""


@pytest.mark.parametrize("page", [CONFLUENCE, NOTION, GITBOOK, DOCUSAURUS, MDBOOK, RUSTDOC])
def test_what_leads_through_a_site_is_left_out(page):
    """It stands on every page of an export, and says nothing of any."""
    assert read_page(page).text == "# Backups\n\nRun weekly."


def test_code_in_older_exports_of_confluence_is_read():
    """It stands in scripts, and so all code of a space was lost."""
    page = (
        '<p>Run:</p><script type="syntaxhighlighter" class="brush: java; gutter: false"><![CDATA['
        "if (a < b)\n  c();]]></script><script>hide();</script><p>Done.</p>"
    )

    assert read_page(page).text == "Run:\n\n```\nif (a < b)\n  c();\n```\n\nDone."


@pytest.mark.parametrize(
    ("html", "seen"),
    [
        ('<p>a<span hidden>b</span><span style="color:red; display: none">c</span> d</p>', "a d"),
        ('<p>a <b style="visibility:hidden">b</b> <button>Copy</button></p>', "a"),
        ("<p>Pick <select><option>One<option>Two</select> now</p>", "Pick now"),
        ("<pre><code>x = 1</code><button>Copy</button></pre>", "```\nx = 1\n```"),
        ('<p style="display:block" hidden="until-found">found</p>', "found"),
        (
            '<p>So <span class="katex"><span class="katex-mathml"><math><mi>x</mi><annotation>'
            'x_1</annotation></math></span><span aria-hidden="true">x1</span></span>.</p>',
            "So x1.",
        ),
        ("<p><math><mi>x</mi><annotation encoding='t'>y</annotation></math></p>", "x"),
        ('<div role="tabpanel" hidden>Linux: apt.</div>', "Linux: apt."),
        ("<h2><button>Who pays?</button></h2>", "## Who pays?"),
        ('<button aria-expanded="false">Who pays?</button>', "Who pays?"),
    ],
)
def test_what_a_page_hides_is_not_seen(html, seen):
    """Nobody asks about it; what a reader unfolds is asked about."""
    assert read_page(html).text == seen


def test_numbers_of_lists_are_as_stated():
    """Exports of Notion write each item as a list of its own; steps are referred to by number."""
    html = '<ol start="1"><li>a</li></ol><ol start="2"><li>b</li><li value="7">c<li>d</ol>'

    assert read_page(html).text == "1. a\n\n2. b\n7. c\n8. d"


def test_power_is_no_digit_of_its_number():
    """10 with a raised 6 is not 106; the number of a footnote is no power, and no digit."""
    body = (
        "<p>10<sup>6</sup>, 10<sup class='x'>-6</sup>, 9 m<sup>2</sup>, "
        "2<sup>nd</sup>, 5<sup><a>1</a></sup>, 7<a><sup>1</sup></a>, Fees<sup>1</sup>.<sup>2</sup>"
    )

    assert read_page(f"<body>{body}").text == ("10^6, 10^-6, 9 m^2, 2nd, 5[1], 7[1], Fees1.2")


@pytest.mark.parametrize(
    ("rows", "read"),
    [
        (
            "<tr><th>Plan<th>Days<tr><td rowspan=2>Free<td>7<tr><td>8<tr><td>Pro<td>9",
            "Plan | Days\nFree | 7\nFree | 8\nPro | 9",
        ),
        ("<tr><td>a<td rowspan='2'>b<tr><td>c<tr><td>d<td>e", "a | b\nc | b\nd | e"),
        ("<tr><td rowspan=2 colspan=2>a<td>b<tr><td>c", "a | b\na | c"),
        ("<tr><td rowspan=9>a<td>b<tr><td>c</table><table><tr><td>d", "a | b\na | c\n\nd"),
        ("<thead><tr><th rowspan=2>a<th>b<tbody><tr><td>c<td>d", "a | b\nc | d"),
        ("<tr><td rowspan=2>a<td rowspan=2>b<tr></tr><tr><td>c<td>d", "a | b\nc | d"),
    ],
)
def test_cell_is_read_in_each_row_that_it_is_in(rows, read):
    """Without it, what stands beside it slid into its column."""
    assert read_page(f"<body><table>{rows}</table>").text == read
