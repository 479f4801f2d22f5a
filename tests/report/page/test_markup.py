import re

import pytest

from ragforge.report.page.markup import data_block, document, element, join, site_link, site_page


def test_text_is_escaped_and_markup_is_kept():
    """Forgetting to escape must not be possible."""
    inner = element("b", "<i>")

    assert element("p", "a & b ", inner).code == "<p>a &amp; b <b>&lt;i&gt;</b></p>"


def test_attributes_are_escaped():
    """A quote in a run name must not open a new attribute."""
    made = element("p", title='" onclick="x', aria_label="a<b", hidden=True, lang=None)

    assert made.code == '<p title="&quot; onclick=&quot;x" aria-label="a&lt;b" hidden></p>'


@pytest.mark.parametrize("tag", ["script", "SCRIPT", "iframe", "img", "link", "form", "b onload=x"])
def test_tags_that_run_or_load_are_refused(tag):
    """The page holds data of strangers; it has no use for any of these."""
    with pytest.raises(ValueError, match="is not allowed"):
        element(tag)


@pytest.mark.parametrize(
    "attribute",
    [
        {"onclick": "x"},
        {"src": "x"},
        {"style": "x"},
        {"href": "https://x"},
        {"href": "javascript:x"},
    ],
)
def test_attributes_that_run_load_or_lead_out_are_refused(attribute):
    """The page works from a mail, without a network."""
    with pytest.raises(ValueError, match="is not allowed"):
        element("a", **attribute)


def test_style_sheet_cannot_end_its_element():
    """The one part that is not escaped has to be checked."""
    with pytest.raises(ValueError, match="expected no markup"):
        document(lang="en", head=[], body=[], css="</style><script>")


def test_markup_in_an_f_string_is_seen_at_once():
    """Gluing strings by hand must not work silently."""
    assert f"{join(['<'])}" == "Html(code='&lt;')"


def test_data_block_holds_letters_digits_and_nothing_that_runs():
    """Its content could otherwise end the element, or be run."""
    found = data_block("rows-0", b"</script><script>alert(1)</script>").code

    assert re.fullmatch(
        r'<script type="application/zlib" id="rows-0">[A-Za-z0-9+/=]+</script>', found
    )


def test_data_block_takes_plain_names_only():
    """The one attribute that is not escaped has to be checked."""
    with pytest.raises(ValueError, match="is not allowed"):
        data_block('x" onload="y', b"")


@pytest.mark.parametrize(
    "path",
    ["//evil.example", "https://evil.example", "javascript:alert(1)", "a/../b", "/a", "a b", ""],
)
def test_site_links_stay_on_the_site(path):
    """A name of data must not lead elsewhere."""
    with pytest.raises(ValueError, match="is not allowed"):
        site_link(path, "text")


def test_site_link_escapes_its_text():
    """It is data."""
    assert site_link("../sets/a-1", "<b>").code == '<a href="../sets/a-1">&lt;b&gt;</a>'


def test_site_page_loads_from_its_own_site_only():
    """Style sheet and script are files of the program."""
    with pytest.raises(ValueError, match="is not allowed"):
        site_page(lang="en", head=[], body=[], css_path="a.css", script_path="//evil.example/a.js")
