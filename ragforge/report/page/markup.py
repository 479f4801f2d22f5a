"""HTML that cannot be built from data by accident: text is escaped unless it is `Html` already.

Tables scroll sideways where they are wider than the page; their numbers are aligned.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from ragforge.deferred import dataclass, html
from ragforge.evaluating.formatting import Table, numeric_column, plural, visible

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_INTERVAL: Final = re.compile(r"\([-0-9.]+ to [-0-9.]+\)")
_VOID: Final = frozenset({"meta", "br", "hr", "input"})
_SITE_PATH: Final = re.compile(
    r"(?:\./|(?:\.\./){0,9})(?:[A-Za-z0-9][A-Za-z0-9._-]*/)*(?:[A-Za-z0-9][A-Za-z0-9._-]*)?"
)
_FORBIDDEN_TAGS: Final = frozenset({
    "script", "style", "link", "iframe", "object", "embed", "base", "form", "img", "use", "image",
})  # fmt: skip
_FORBIDDEN_ATTRIBUTES: Final = frozenset({"src", "srcset", "style", "action"})


@dataclass(frozen=True, slots=True)
class Html:
    """Finished markup. Only this module makes it; in an f-string it would show as a repr."""

    code: str


Child = Html | str | int | None


def element(tag: str, *children: Child, **attributes: str | int | bool | None) -> Html:
    """Return an element.

    Args:
        tag: Its name. Tags that run, load or submit something are refused.
        children: Markup as it is; text and numbers escaped, with hidden characters made visible;
            None adds nothing.
        attributes: Escaped likewise. A trailing underscore is dropped and inner ones become
            dashes (`class_`, `aria_label`); True gives a bare attribute, False and None none.

    Raises:
        ValueError: The tag or an attribute could load, run or lead to something.
    """
    if not _NAME.fullmatch(tag) or tag.lower() in _FORBIDDEN_TAGS:
        raise ValueError(f"element: tag {tag!r} is not allowed")
    opened = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Html(f"<{tag}{opened}>")
    return Html(f"<{tag}{opened}>{join(children).code}</{tag}>")


def drawn_text(text: str | int, **attributes: str | int) -> Html:
    """Return words in a picture. The part about them lets the style sheet say what is behind."""
    return element("text", element("tspan", text), **attributes)


def join(children: Iterable[Child]) -> Html:
    """Return markup and text one after the other, text escaped."""
    return Html("".join(map(_code, children)))


def with_code(text: str) -> list[Child]:
    """Return a sentence with what stands between backticks as code."""
    parts = text.split("`")
    return [element("code", part) if place % 2 else part for place, part in enumerate(parts)]


def data_block(key: str, content: bytes) -> Html:
    """Return bytes as an inert block of the page, in base64: no browser runs or loads it.

    Args:
        key: Its id: letters, digits and dashes.
        content: Anything.

    Raises:
        ValueError: The key is no such name.
    """
    if not _NAME.fullmatch(key):
        raise ValueError(f"data_block: key {key!r} is not allowed")
    text = b64encode(content).decode()
    return Html(f'<script type="application/zlib" id="{key}">{text}</script>')


def document(
    *,
    lang: str,
    head: Iterable[Html],
    body: Iterable[Html],
    css: str,
    script: str = "",
    connects: bool = False,
    loads: bool = False,
) -> Html:
    """Return a whole page with its style sheet and a policy that lets nothing else in.

    Args:
        lang: Language of the page's own words.
        head: What else goes into the head.
        body: The page.
        css: The style sheet: part of the program, never data.
        script: Likewise; "" for a page that runs none.
        connects: Whether it may ask the site that serves it.
        loads: Whether the script may load others, such as files of data beside the page; markup
            may not.

    Raises:
        ValueError: The style sheet or the script would end its element.
    """
    if any(mark in code for code in (css, script) for mark in ("</", "<!--")):
        raise ValueError("style sheet, script: expected no markup")
    policy = element(
        "meta",
        http_equiv="Content-Security-Policy",
        content=_policy(css, script, connects=connects, loads=loads),
    )
    start = join([Html('<meta charset="utf-8">'), policy, *head, Html(f"<style>{css}</style>")])
    run = f"<script>{script}</script>" if script else ""
    page = f"<head>{start.code}</head>\n<body>{join(body).code}{run}</body>"
    return Html(f'<!DOCTYPE html>\n<html lang="{html.escape(lang)}">{page}</html>\n')


def svg_file(drawn: Html, *, title: str, width: int, height: int, css: str) -> Html:
    """Return a picture that is a file of its own, with its style sheet.

    Args:
        drawn: Elements of SVG.
        title: What a screen reader says of it.
        width: Of the picture, in its own units.
        height: Likewise.
        css: The style sheet: part of the program, never data.

    Raises:
        ValueError: The style sheet would end its element.
    """
    if "<" in css or "&" in css:
        raise ValueError("style sheet: expected no markup")
    inside = join([element("title", title), Html(f"<style>{css}</style>"), drawn])
    picture = element(
        "svg",
        inside,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
    )
    return Html(f"{picture.code}\n")


def page_head(title: str) -> list[Html]:
    """Return the head of a page that is a file: it fits the window, and tells nobody of itself."""
    return [
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
    ]


def page_file(name: str) -> str:
    """Return a style sheet or a script of the page."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def site_link(
    path: str, *children: Child, query: Mapping[str, str] | None = None, **attributes: str | None
) -> Html:
    """Return a relative link within the site that a page is served from.

    Args:
        path: Where it leads.
        children: What it says.
        query: What is asked there, by name; "" asks nothing.
        attributes: As those of `element`.

    Raises:
        ValueError: The path leads elsewhere, or is no plain path.
    """
    asked = urlencode({name: value for name, value in (query or {}).items() if value})
    href = html.escape(f"{_site_path(path)}{'?' if asked else ''}{asked}")
    named = "".join(_attribute(name, value) for name, value in attributes.items())
    return Html(f'<a href="{href}"{named}>{join(children).code}</a>')


def site_page(
    *, lang: str, head: Iterable[Html], body: Iterable[Html], css_path: str, script_path: str
) -> Html:
    """Return a page whose style sheet and script come from the site that serves it.

    What a browser may do with it is for that site's headers to say.

    Raises:
        ValueError: A path leads elsewhere.
    """
    css, script = _site_path(css_path), _site_path(script_path)
    loaded = f'<link rel="stylesheet" href="{css}"><script src="{script}" defer></script>'
    start = f'<meta charset="utf-8">{join(head).code}{loaded}'
    page = f"<head>{start}</head>\n<body>{join(body).code}</body>"
    return Html(f'<!DOCTYPE html>\n<html lang="{html.escape(lang)}">{page}</html>\n')


def table_block(table: Table, *, titled: bool = True, has_values: bool = False) -> Html | None:
    """Return a table with its title and note; None where it has no rows.

    Args:
        table: The table.
        titled: Whether its title stands above it.
        has_values: Whether all columns but the first are values, whatever is noted beside them.
    """
    if not table.rows:
        return None
    columns = list(zip(*table.rows, strict=True))
    numeric = [
        index > 0 and (has_values or numeric_column(column)) for index, column in enumerate(columns)
    ]
    rows = [
        [
            element("td", _with_whole_intervals(cell), class_="num" if right else None)
            for cell, right in zip(row[1:], numeric[1:], strict=True)
        ]
        for row in table.rows
    ]
    heads = [row[0] for row in table.rows]
    body = [table_row(head, row) for head, row in zip(heads, rows, strict=True)]
    return element(
        "div",
        element("h3", table.title) if titled else None,
        scroll_table(table.title, table.headers, body, numeric),
        element("p", *with_code(table.note), class_="note") if table.note else None,
        class_="block",
    )


def _with_whole_intervals(cell: str) -> str:
    """Return the text of a cell; where its lines break, an interval stays in one."""
    return _INTERVAL.sub(lambda found: found.group().replace(" ", "\u00a0"), cell)


def folded_table(table: Table) -> Html | None:
    """Return a table under its title, folded up; None where it has no rows."""
    inner = table_block(table, titled=False)
    if inner is None:
        return None
    rows = element("span", plural(len(table.rows), "row"), class_="rest")
    title = element("summary", element("h3", table.title), " ", rows)
    return element("details", title, inner, class_="folded")


def scroll_table(
    title: str, headers: Sequence[Child], body: Iterable[Html], numeric: Sequence[bool]
) -> Html:
    """Return a table that scrolls sideways where it is wider than the page, by keyboard too."""
    heads = [_header(text, right) for text, right in zip(headers, numeric, strict=True)]
    table = element("table", element("thead", element("tr", *heads)), element("tbody", join(body)))
    return scrolling(table, title)


def scrolling(table: Html, title: str) -> Html:
    """Return a table that scrolls; the script of a page takes away Tab stops of what fits."""
    return element("div", table, class_="scroll", role="group", tabindex=0, aria_label=title)


def table_row(head: Child, cells: Iterable[Html], **attributes: str | None) -> Html:
    """Return a row that its first cell names."""
    return element("tr", element("th", head, scope="row"), *cells, **attributes)


def _header(text: Child, right: bool) -> Html:
    """Return the head of a column; a corner that says nothing heads nothing."""
    class_ = "num" if right else None
    return element("th", text, scope="col", class_=class_) if text else element("td", class_=class_)


def _site_path(path: str) -> str:
    if not path or not _SITE_PATH.fullmatch(path):
        raise ValueError(f"site: path {path[:40]!r} is not allowed")
    return path


def _policy(css: str, script: str, *, connects: bool, loads: bool) -> str:
    others = " 'strict-dynamic'" if loads else ""
    runs = f"script-src {_source(script)}{others}; " if script else ""
    if connects:
        runs += "connect-src 'self'; "
    return (
        f"default-src 'none'; style-src {_source(css)}; {runs}base-uri 'none'; form-action 'none'"
    )


def _source(code: str) -> str:
    """Return the name under which a policy lets in a piece of code, and none other."""
    return f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'"


def _code(child: Child) -> str:
    if child is None:
        return ""
    return child.code if isinstance(child, Html) else html.escape(visible(str(child)))


def _attribute(name: str, value: str | int | bool | None) -> str:
    name = name.removesuffix("_").replace("_", "-")
    text = str(value)
    leads_out = name == "href" and not text.startswith("#")
    runs = name.lower().startswith("on") or name in _FORBIDDEN_ATTRIBUTES
    if not _NAME.fullmatch(name) or leads_out or runs:
        raise ValueError(f"element: attribute {name}={text[:40]!r} is not allowed")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{html.escape(visible(text))}"'
