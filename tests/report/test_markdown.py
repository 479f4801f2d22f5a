import re

import pytest
from markdown_it import MarkdownIt

from ragforge.evaluating.summary import summarise
from ragforge.report.markdown import escape_markdown
from ragforge.report.set_report import render_markdown


def rendered(markdown):
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "| a | b |",
        "`code` **bold** _it_ ~~no~~",
        "[link](javascript:alert(1)) ![img](x)",
        "&lt; &amp; \\| \\",
        "$x$",
    ],
)
def test_data_comes_out_as_the_text_it_is(text):
    """Neither Markdown nor the HTML in it may take the text for markup."""
    html = rendered(f"| {escape_markdown(text)} |\n| --- |\n")
    shown = html.split("<th>")[1].split("</th>")[0]

    expected = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert shown.replace("&quot;", '"') == expected


def test_addresses_and_mentions_do_not_become_links():
    """A report in a pull request must not call people or point to strangers' pages."""
    assert escape_markdown("https://evil.example www.evil.example @ana #12") == (
        "https&#58;//evil.example www&#46;evil.example @&#8288;ana #&#8288;12"
    )


def test_measure_names_stay_as_they_are():
    """An escape in the middle of every name would be ugly for nothing."""
    assert escape_markdown("nDCG@10") == "nDCG@10"


def test_hostile_dataset_renders_to_text_only(hostile_dataset):
    """One cell that breaks out shifts the whole table."""
    markdown = render_markdown(summarise(hostile_dataset))
    html = rendered(markdown)

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e]", markdown)
    assert not any(tag in html for tag in ("<script", "<img", "<a ", "<style", "</details"))


def test_every_row_of_a_table_has_its_columns(hostile_dataset):
    """A pipe in a query must not open a column, nor a line feed end the table."""
    lines = render_markdown(summarise(hostile_dataset)).splitlines()
    start = lines.index("## Worst queries") + 2
    table = lines[start : lines.index("", start)]

    assert len(table) == 2 + 8
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {6}
