"""What a reader does not see within lines of Markdown: link targets, attributes, tags, signs.

One pass from sign to sign, in linear time: markdown-it reads a line exactly, and tells of nothing
where it stands.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from ragforge.corpus.components import CLOSED, hidden_cells, tag_edits
from ragforge.corpus.powers import REACH, is_power
from ragforge.corpus.seen_text import Edit
from ragforge.deferred import html, pattern

_SIGN: Final = pattern(
    r"[\\`*_\[<&{]|!(?=\[)|:(?=(?:material|fontawesome|octicons|simple)-)|\+\+(?=[a-z0-9\"])"
    r"|(?<![\w%])%%|(?<!=)==(?!=)|~~|\^\^|(?<=[\w)])[~^](?=[\w+-]{1,20}[~^])"
)
_MAY_BE_SIGN: Final = pattern(r"[\\`*_\[<&{!:+%=~^]")
"""What a sign begins with: a set of characters alone is looked for faster."""
_HTML_SIGN: Final = pattern("[<&]")
_BRACKETS: Final = pattern(r"\\.|`+|[\[\]]", re.DOTALL)
_TICKS: Final = pattern(r"`+")
_HIGHLIGHTED: Final = pattern(r"#!\w{1,20}+[ \t]{1,20}+(?=\S)")
"""The language of code within a line, as MkDocs Material states it; below as Nextra does."""
_HIGHLIGHTED_BEHIND: Final = pattern(
    r"(?<=[^\s`])\{:(?!(?:else|then|catch)\})[a-z][\w.]{0,40}+\}\Z"
)
"""Behind code; `{:else}` is of Svelte itself."""
_MOST_CODE: Final = 2000
_LONGEST_LABEL: Final = 999
"""Characters of a label of a link, by CommonMark."""
_ATTRIBUTE: Final = (
    r"""(?:[#.][\w:./-]{1,200}+|[\w:@-]{1,100}+="""
    r"""(?:"[^"\n]{0,500}+"|'[^'\n]{0,500}+'|[^\s{}"']{1,200}+))"""
)
ATTRIBUTES: Final = pattern(
    rf"\{{:?[ \t]{{0,20}}+{_ATTRIBUTE}(?>(?:[ \t]{{1,20}}+(?:{_ATTRIBUTE}|[\w-]{{1,50}}+)){{0,20}})"
    r"[ \t]{0,20}+\}|\{:[^{}\n]{0,300}+\}"
)
_FILLED: Final = r"\{\{[^{}]{0,300}+\}\}|\{%(?>(?:[^{}%]|%(?!\})){0,300})%\}"
"""What Jekyll and Hugo put something in the place of, such as the address of a page."""
_TARGET: Final = pattern(
    r"\(\s{0,100}+(?:<[^<>\n]{0,2000}+>"
    rf"|(?>(?:{_FILLED}|[^\s()<\\]|\\.|\((?>(?:[^\s()\\]|\\.){{0,500}})\)){{0,2000}}))"
    r"""(?>(?:\s{1,100}+(?:"[^"]{0,500}+"|'[^']{0,500}+'|\([^()]{0,500}+\)))?)\s{0,100}+\)"""
)
_AUTOLINK: Final = pattern(
    r"<(?:(?:https?|ftp|mailto):[^\s<>]{1,2000}+|[\w.+-]{1,100}+@[\w.-]{1,200}+)>"
)
_BREAK: Final = pattern(r"<br[ \t]{0,20}+/?>", re.IGNORECASE)
_BRACED: Final = r"\{(?>(?:[^{}]|\{(?>(?:[^{}]|\{[^{}]{0,500}+\}){0,1000})\}){0,2000})\}"
_TAG: Final = pattern(
    r"</?(?P<name>[A-Za-z][\w.:-]{0,60}+)"
    r"(?>(?:\s{1,100}+(?:\{\.\.\.[^{}]{0,200}+\}|[\w:@.-]{1,100}+"
    rf"""(?>(?:\s?=\s?(?:"(?>(?:{_FILLED}|[^"]){{0,2000}})"|'[^']{{0,2000}}+'|{_BRACED}"""
    r"""|[^\s"'<>={}]{1,500}+))?))){0,40})\s{0,100}+/?>"""
)
_UNSEEN_ELEMENT: Final = pattern(
    r"<(?P<name>script|style|svg|iframe|template|noscript)\b[^<>]{0,2000}+>", re.IGNORECASE
)
_ENTITY: Final = pattern(r"&(?:[A-Za-z][A-Za-z0-9]{1,30}+|#[0-9]{1,7}+|#[xX][0-9a-fA-F]{1,6}+);")
_ROLE: Final = pattern(r"\{[a-zA-Z][\w:+.-]{0,60}+\}(?=`)")
_ROLE_TEXT: Final = pattern(r"`(?P<body>[^`]{1,500}+)`")
_TITLED: Final = pattern(r"(?P<title>[^<]{1,300}+)<[^<>]{1,500}+>\Z")
TEXT_ROLES: Final = frozenset(
    "abbr any doc download emphasis footcite guilabel kbd math menuselection numref ref strong sub "
    "sup subscript superscript term title-reference".split()
)
"""Roles of Sphinx whose text is no code."""
_ICON_ROLES: Final = pattern(r"octicon|fa[bsr]?|material-[a-z]{1,20}")
_BADGE_ROLES: Final = "bdg"
"""What the names of roles of badges begin with."""
_QUOTES: Final = ("double", "single", "ticked")
_NEW: Final = ("added", "marked", "new")
_MOST_SUBSTITUTED: Final = 200_000
"""Characters that values may put in; a file that asks for more is not a document."""
_MACRO: Final = pattern(
    r"\{(?:%(?>(?:[^{}%]|%(?!\})){0,2000})%|\*[^{}*\n]{0,500}+\*|![^{}!\n]{0,500}+!"
    r"|\{<[^{}<>]{0,500}+>\}|\{%[^{}%]{0,500}+%\})\}"
)
_ICON: Final = pattern(r":(?:material|fontawesome|octicons|simple)-[\w-]{1,100}+:")
_WIKI_LINK: Final = pattern(r"\[\[\w[^\[\]|\n]{0,300}+\|(?P<shown>[^\[\]|\n]{1,300}+)\]\]")
_EMBED: Final = pattern(r"!\[\[[^\[\]\n]{1,300}+\]\]")
_OBSIDIAN_COMMENT: Final = pattern(r"%%[^%\n]{1,1000}+%%(?![\w%])")
_KEY: Final = r"""(?:[a-z0-9-]{1,40}+|"[^"+\n]{1,60}+")"""
_KEYS: Final = pattern(rf"\+\+(?P<keys>{_KEY}(?>(?:\+{_KEY}){{0,6}}))\+\+")
_SMALL: Final = pattern(r"([~^])[\w+-]{1,20}+\1")
_CRITIC: Final = pattern(
    r"\{(?:\+\+(?P<added>(?>(?:[^+]|\+(?!\+)){1,1000}))\+\+"
    r"|==(?P<marked>(?>(?:[^=]|=(?!=)){1,1000}))=="
    r"|--(?>(?:[^-]|-(?!-)){1,1000})--|>>(?>(?:[^<]|<(?!<)){1,1000})<<"
    r"|~~(?>(?:[^~]|~(?![~>])){0,1000})~>(?P<new>(?>(?:[^~]|~(?!~)){0,1000}))~~)\}"
)
_LITERAL: Final = pattern(
    r"""\{[ \t]{0,20}(?:"(?P<double>[^"\\\n]{0,1000}+)"|'(?P<single>[^'\\\n]{0,1000}+)'"""
    r"|`(?P<ticked>[^`\\$]{0,2000}+)`)[ \t]{0,20}\}"
)
_VALUE: Final = pattern(
    r"\{\{-?[ \t]{0,20}(?P<of>\$frontmatter\.|page\.|site\.|include\.|layout\.)?"
    r"(?P<name>[\w-]{1,60}+)(?:[^{}\n]{0,100}+)?-?\}\}"
)
_RAW: Final = pattern(
    r"(?:[ \t]{0,100}+\n)?(?P<tag>[ \t]{0,100}+\{%-?[ \t]{0,20}+raw[ \t]{0,20}+-?%\}\n?)"
)
_RAW_END: Final = pattern(
    r"(?P<tag>(?:\n[ \t]{0,100}+)?\{%-?[ \t]{0,20}+endraw[ \t]{0,20}+-?%\})\s{0,100}+\Z"
)
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CELL_END: Final = pattern(r"(?<!\\)\|")
_MOST_SIGNS: Final = 3
ELEMENTS: Final = frozenset(
    "a abbr address article aside audio b blockquote body br button caption center cite code col "
    "colgroup dd del details dfn div dl dt em figcaption figure font footer form h1 h2 h3 h4 h5 h6 "
    "head header hr html i iframe img input ins kbd label li link main mark meta nav ol p picture "
    "pre q s samp script section small source span strike strong style sub summary sup svg table "
    "tbody td tfoot th thead time tr tt u ul var video".split()
)
"""What is taken for a tag; `<name>` of anything else is text, as people write placeholders."""
_RAISED: Final = pattern(r"<sup\b[^<>]{0,200}+>([^<>]{1,5}+)</sup>", re.IGNORECASE)
_ADDRESS: Final = r"\]\([^()\s]{0,500}+\)"
_RAISED_NUMBER: Final = r"<sup\b[^<>]{0,200}+>[0-9]{1,4}+</sup>"
_NOTE: Final = pattern(
    r"<sup\b[^<>]{0,200}+>(?:<a\b[^<>]{0,500}+>[0-9]{1,4}+</a>"
    rf"|\[[0-9]{{1,4}}+{_ADDRESS})</sup>"
    rf"|<a\b[^<>]{{0,500}}+>{_RAISED_NUMBER}</a>|\[{_RAISED_NUMBER}{_ADDRESS}",
    re.IGNORECASE,
)
"""A raised number that leads to a note."""
_NOTE_NUMBER: Final = pattern(r"(?<=[>\[])[0-9]{1,4}(?=[<\]])")
_RAISING: Final = frozenset({"sup", "superscript"})
_BLOCKS: Final = frozenset(
    "address article aside blockquote body caption center dd details div dl dt figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 head header hr html li main nav ol p pre section summary table "
    "tbody td tfoot th thead tr ul".split()
)
"""What stands apart from the text around it."""


class InlineReader:
    """Finds what a reader does not see within lines.

    Args:
        text: Of the whole file.
        is_mdx: Whether names in capitals are components.
        labels: Of the link definitions of the file, in lower case.
        values: What names stand for between braces, of the front matter.
    """

    def __init__(
        self, text: str, *, is_mdx: bool, labels: Collection[str], values: Mapping[str, str]
    ) -> None:
        self._text = text
        self._is_mdx = is_mdx
        self._labels = labels
        self._values = values
        self._components = {found["name"] for found in CLOSED.finditer(text)}
        self._end = 0
        self._pairs: dict[int, int] | None = None
        self._is_row = False
        self._opened: dict[str, int] = {}
        self._without: set[str] = set()
        self._target_start = self._target_stop = 0
        self._n_substituted = 0
        self._at: dict[str, Callable[[int], Iterator[Edit | int]]] = {
            "\\": self._escape,
            "`": self._code,
            "*": self._emphasis,
            "_": self._emphasis,
            "[": self._link,
            "!": self._image,
            "<": self._angle,
            "&": self._entity,
            "{": self._brace,
            ":": self._icon,
            "+": self._keys,
            "%": self._comment,
            "=": self._emphasis,
            "~": self._raised,
            "^": self._raised,
        }

    def edits(self, start: int, end: int) -> Iterator[Edit]:
        """Yield the edits of a paragraph at `text[start:end]`, in any order; no code is in it."""
        self._end, self._pairs = end, None
        self._is_row = self._text.startswith("|", start)
        self._opened.clear()
        self._without.clear()
        if self._text.find("data-hidden", start, end) >= 0:
            yield from hidden_cells(self._text, start, end)
        at = self._target_start = self._target_stop = start
        while sign := _MAY_BE_SIGN.search(self._text, at, end):
            if self._target_start <= sign.start() < self._target_stop:
                at = self._target_stop
                continue
            at = sign.start() + 1
            if not _SIGN.match(self._text, sign.start(), end):
                continue
            for found in self._at[self._text[sign.start()]](sign.start()):
                if isinstance(found, Edit):
                    yield found
                else:
                    at = found

    def code_edits(self, start: int, end: int) -> Iterator[Edit]:
        """Yield the edits of code that HTML holds: tags and entities alone, no other markup."""
        self._end, at = end, start
        while sign := _HTML_SIGN.search(self._text, at, end):
            at = sign.end()
            tag = _TAG.match(self._text, sign.start(), end)
            if tag and tag["name"].lower() in ELEMENTS:
                at = tag.end()
                yield Edit(sign.start(), at)
            for found in self._entity(sign.start()):
                if isinstance(found, Edit):
                    yield found
                    at = found.end

    def _escape(self, at: int) -> Iterator[Edit | int]:
        follows = self._text[at + 1 : min(at + 2, self._end)]
        if follows == "|" and self._is_row:
            return  # It would part the cell.
        if follows in _PUNCTUATION or follows == "\n":
            yield Edit(at, at + 1)
            yield at + 2

    def _code(self, at: int) -> Iterator[Edit | int]:
        ticks = _TICKS.match(self._text, at, self._end)
        assert ticks is not None
        behind = _code_end(self._text, ticks, self._end)
        yield behind
        if behind > ticks.end():
            first, last = ticks.end(), behind - len(ticks[0])
            yield from raw_edits(self._text, first, last)
            named = _HIGHLIGHTED.match(self._text, first, last)
            named = named or _HIGHLIGHTED_BEHIND.search(self._text, first, last)
            if named:
                yield Edit(*named.span())
            yield from self._attributes(behind)

    def _attributes(self, at: int) -> Iterator[Edit | int]:
        """Yield the attributes right behind a link, code or a word, and where to go on."""
        found = ATTRIBUTES.match(self._text, at, self._end)
        if found:
            yield Edit(at, found.end())
            yield found.end()

    def _emphasis(self, at: int) -> Iterator[Edit | int]:
        text, sign = self._text, self._text[at]
        behind = at + 1
        while behind < self._end and text[behind] == sign:
            behind += 1
        yield behind
        run = text[at:behind]
        if len(run) > _MOST_SIGNS or (sign in "=~^" and len(run) != len("==")):
            return
        before = text[at - 1] if at else " "
        after = text[behind] if behind < self._end else " "
        is_within = sign in "_=" and before.isalnum() and after.isalnum()
        closes = run in self._opened and not before.isspace() and not is_within
        begin = self._opened.pop(run) if closes else at
        if closes and not (self._is_row and _CELL_END.search(text, begin, at)):
            yield Edit(begin, begin + len(run))
            yield Edit(at, behind)
            yield from self._attributes(behind)
        elif not after.isspace() and not (sign in "_=" and before.isalnum()):
            self._opened[run] = at

    def _raised(self, at: int) -> Iterator[Edit | int]:
        """Yield the edits of `~~struck~~`, `^^inserted^^`, and what stands lower or higher."""
        if self._text.startswith(self._text[at] * 2, at):
            yield from self._emphasis(at)
        elif small := _SMALL.match(self._text, at, self._end):
            # 10^6^ is not 106.
            keeps_sign = small[0][0] == "^" and small[0][1:-1].lstrip("+-").isdecimal()
            yield Edit(at, at + (not keeps_sign))
            yield Edit(small.end() - 1, small.end())
            yield small.end()

    def _comment(self, at: int) -> Iterator[Edit | int]:
        if comment := _OBSIDIAN_COMMENT.match(self._text, at, self._end):
            yield Edit(at, comment.end())
            yield comment.end()

    def _note(self, at: int) -> Iterator[Edit | int]:
        """Yield the edits of the number of a note, where it would be one with what is before it."""
        found = _NOTE.match(self._text, at, self._end)
        number = _NOTE_NUMBER.search(self._text, at, found.end()) if found else None
        if found and number and is_power(self._base(at), number[0]):
            yield Edit(at, number.start(), "[")
            yield Edit(number.end(), found.end(), "]")
            yield found.end()

    def _base(self, at: int) -> str:
        """Return what stands before a raised text, without the marks of emphasis around it."""
        return self._text[max(0, at - REACH) : at].rstrip("*_")

    def _link(self, at: int) -> Iterator[Edit | int]:
        if note := list(self._note(at)):
            yield from note
            return
        if wiki := _WIKI_LINK.match(self._text, at, self._end):
            yield Edit(at, wiki.start("shown"))
            yield Edit(wiki.end("shown"), wiki.end())
            yield wiki.end()
            return
        behind = self._closing(at)
        stop = self._target_end(at + 1, behind, any_label=False) if behind else 0
        if not stop:
            return
        found = ATTRIBUTES.match(self._text, stop, self._end)
        # What the link is called is read on; what it leads to is not.
        self._target_start, self._target_stop = behind - 1, found.end() if found else stop
        yield Edit(at, at + 1)
        yield Edit(behind - 1, self._target_stop)

    def _image(self, at: int) -> Iterator[Edit | int]:
        if embed := _EMBED.match(self._text, at, self._end):
            yield Edit(at, embed.end())
            yield embed.end()
            return
        behind = self._closing(at + 1)
        stop = self._target_end(at + 2, behind, any_label=True) if behind else 0
        if stop:
            found = ATTRIBUTES.match(self._text, stop, self._end)
            stop = found.end() if found else stop
            yield Edit(at, stop)
            yield stop

    def _closing(self, at: int) -> int:
        """Return the place behind the bracket that closes one; 0 where none does."""
        if self._pairs is None:
            self._pairs = _bracket_pairs(self._text, at, self._end)
        return self._pairs.get(at, 0)

    def _target_end(self, label: int, behind: int, *, any_label: bool) -> int:
        """Return where a link ends whose label is closed; 0 where it leads nowhere."""
        target = _TARGET.match(self._text, behind, self._end)
        if target:
            return target.end()
        named = self._closing(behind) if self._text.startswith("[", behind) else 0
        name = self._text[behind + 1 : named - 1] if named else ""
        name = name or self._text[label : behind - 1]
        is_short = len(name) <= _LONGEST_LABEL  # Else each bracket of thousands is looked through.
        is_known = is_short and " ".join(name.lower().split()) in self._labels
        is_known = is_known or bool(any_label and named)
        return (named or behind) if is_known else 0

    def _angle(self, at: int) -> Iterator[Edit | int]:
        text, end = self._text, self._end
        if link := _AUTOLINK.match(text, at, end):
            yield Edit(at, at + 1)
            yield Edit(link.end() - 1, link.end())
            yield link.end()
            yield from self._attributes(link.end())
            return
        stretch: list[Edit] = []
        is_parted, behind, at = False, at, -1
        while at < behind:
            at = behind
            for found in self._markup(at):
                if isinstance(found, int):
                    behind = found
                elif found.start == found.end:
                    is_parted = True
                elif stretch and found.start > stretch[-1].end:
                    yield from self._parted(stretch, is_parted=True)
                    stretch, is_parted = [found], True
                else:
                    stretch.append(found)
        yield from self._parted(stretch, is_parted=is_parted)
        if stretch:
            yield behind

    def _markup(self, at: int) -> Iterator[Edit | int]:
        """Yield the edits of one tag or comment; an empty one where it parts words."""
        text, end = self._text, self._end
        if note := list(self._note(at)):
            yield from note
        elif text.startswith("<!--", at):
            yield from self._until("-->", at, at + 4)
        elif unseen := _UNSEEN_ELEMENT.match(text, at, end):
            yield Edit(at, unseen.end())
            yield unseen.end()
            yield from self._until(f"</{unseen['name']}>", unseen.end(), unseen.end())
        elif line_end := _BREAK.match(text, at, end):
            yield Edit(at, line_end.end(), " ")
            yield line_end.end()
        elif (tag := _TAG.match(text, at, end)) and self._is_tag(tag):
            if tag["name"].lower() in _BLOCKS:
                yield Edit(at, at)
            if (raised := _RAISED.match(text, at, end)) and is_power(self._base(at), raised[1]):
                yield Edit(at, raised.start(1), "^")
                yield raised.start(1)
                return
            yield from tag_edits(text, at, tag.end())
            yield tag.end()

    def _parted(self, stretch: list[Edit], *, is_parted: bool) -> Iterator[Edit]:
        """Yield the edits of tags without text between, with a blank where words would join."""
        text = self._text
        if is_parted and stretch and not any(edit.seen for edit in stretch):
            start, behind = stretch[0].start, stretch[-1].end
            around = text[max(0, start - 1) : start] + text[behind : min(behind + 1, self._end)]
            if len(around) == len("ab") and not any(map(str.isspace, around)):
                stretch = [stretch[0]._replace(seen=" "), *stretch[1:]]
        yield from stretch

    def _until(self, closing: str, at: int, inner: int) -> Iterator[Edit | int]:
        """Yield what reaches up to a sign; one that was missing once is not looked for again."""
        stop = -1 if closing in self._without else self._text.find(closing, inner, self._end)
        if stop < 0:
            self._without.add(closing)
            return
        yield Edit(at, stop + len(closing))
        yield stop + len(closing)

    def _is_tag(self, tag: re.Match[str]) -> bool:
        name = tag["name"]
        if name.lower() in ELEMENTS or (self._is_mdx and "." in name):
            return True
        return self.is_component(name, is_whole=tag[0].endswith("/>"))

    def is_component(self, name: str, *, is_whole: bool) -> bool:
        """Whether a name in capitals is that of a component; others are placeholders.

        Args:
            name: Of a tag.
            is_whole: Whether the tag closes itself.
        """
        return name[0].isupper() and (self._is_mdx or is_whole or name in self._components)

    def _entity(self, at: int) -> Iterator[Edit | int]:
        entity = _ENTITY.match(self._text, at, self._end)
        seen = html.unescape(entity[0]) if entity else ""
        if entity and len(seen) == 1 and (seen.isprintable() or seen.isspace()):
            yield Edit(at, entity.end(), " " if seen.isspace() else seen)
            yield entity.end()

    def _brace(self, at: int) -> Iterator[Edit | int]:
        text, end = self._text, self._end
        if role := _ROLE.match(text, at, end):
            yield Edit(at, role.end())
            if body := _ROLE_TEXT.match(text, role.end(), end):
                name = role[0].strip("{}").rpartition(":")[2]
                yield from role_edits(text, body.span(), name)
                yield body.end()
        elif text.startswith("{/*", at):
            yield from self._until("*/}", at, at + 3)
        elif macro := _MACRO.match(text, at, end):
            *edits, last = tag_edits(text, at, macro.end())
            yield from (*edits, last)
            # The text of a box is read on, like that of a link.
            self._target_start, self._target_stop = last.start, last.end
            yield edits[0].end if len(edits) == 1 else last.end
        elif (found := ATTRIBUTES.match(text, at, end)) and self._closes_line(found.end()):
            begin = at
            while begin and text[begin - 1] in " \t":
                begin -= 1
            yield Edit(begin, found.end())
            yield found.end()
        else:
            yield from self._braced(at)

    def _braced(self, at: int) -> Iterator[Edit | int]:
        """Yield the edits of a text of MDX, of CriticMarkup, and of what stands for a value."""
        text, end = self._text, self._end
        if self._is_mdx and (literal := _LITERAL.match(text, at, end)):
            yield from _kept(literal, _QUOTES)
        elif critic := _CRITIC.match(text, at, end):
            yield from _kept(critic, _NEW)
        elif (value := _VALUE.match(text, at, end)) and (value["of"] or self._values):
            yield from self._value(value)

    def _value(self, found: re.Match[str]) -> Iterator[Edit | int]:
        """Yield the edit of what stands for a value; one of a site is not known, and left out."""
        is_named = found["of"] or "substitutions" in self._values
        seen = self._values.get(found["name"]) if is_named else None
        if seen is None and not found["of"]:
            return
        self._n_substituted += len(seen or "")
        if self._n_substituted > _MOST_SUBSTITUTED or self._text[found.start() - 1] == "$":
            return
        yield Edit(found.start(), found.end(), seen or "")
        yield found.end()

    def _closes_line(self, at: int) -> bool:
        """Whether nothing stands behind a place in its line, but what closes a heading or cell."""
        while at < self._end and self._text[at] in " \t#|":
            at += 1
        return at == self._end or self._text[at] == "\n"

    def _icon(self, at: int) -> Iterator[Edit | int]:
        if icon := _ICON.match(self._text, at, self._end):
            found = ATTRIBUTES.match(self._text, icon.end(), self._end)
            stop = found.end() if found else icon.end()
            stop += self._text.startswith(" ", stop)
            yield Edit(at, stop)
            yield stop

    def _keys(self, at: int) -> Iterator[Edit | int]:
        if keys := _KEYS.match(self._text, at, self._end):
            yield Edit(at, keys.start("keys"))
            for quote in re.finditer('"', keys["keys"]):
                yield Edit(keys.start("keys") + quote.start(), keys.start("keys") + quote.end())
            yield Edit(keys.end("keys"), keys.end())
            yield keys.end()


def _kept(found: re.Match[str], groups: Sequence[str]) -> Iterator[Edit | int]:
    """Yield the edits that leave of a match the first group there is, and the place behind it."""
    group = next((name for name in groups if found[name]), "")
    first, behind = found.span(group) if group else (found.end(), found.end())
    yield Edit(found.start(), first)
    yield Edit(behind, found.end())
    yield found.end()


def _code_end(text: str, ticks: re.Match[str], end: int) -> int:
    """Return the place behind a code span; that behind its ticks where nothing closes it."""
    behind = ticks.end()
    while closing := _TICKS.search(text, behind, min(end, ticks.end() + _MOST_CODE)):
        behind = closing.end()
        if len(closing[0]) == len(ticks[0]):
            return behind
    return ticks.end()


def raw_edits(text: str, start: int, end: int) -> Iterator[Edit]:
    """Yield the edits of the tags of Jekyll around code that is shown as it is written."""
    opened = _RAW.match(text, start, end)
    closed = opened and _RAW_END.search(text, opened.end(), end)
    if opened and closed:
        yield Edit(*opened.span("tag"))
        yield Edit(*closed.span("tag"))


def _bracket_pairs(text: str, start: int, end: int) -> dict[int, int]:
    """Return for each bracket that is closed the place behind the one that closes it."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    at = start
    while sign := _BRACKETS.search(text, at, end):
        at = sign.end()
        if sign[0] == "[":
            opened.append(sign.start())
        elif sign[0] == "]" and opened:
            pairs[opened.pop()] = at
        elif sign[0][0] == "`":
            at = _code_end(text, sign, end)
    return pairs


def _is_raised(text: str, quoted: tuple[int, int], name: str) -> bool:
    """Whether a role makes a power of what it is given; it stands behind an escaped blank."""
    if name not in _RAISING:
        return False
    before = text[max(0, quoted[0] - len(name) - 2 * REACH) : quoted[0]].rpartition(name)[0]
    return is_power(before.rstrip(":{").removesuffix("\\ "), text[quoted[0] + 1 : quoted[1] - 1])


def role_edits(text: str, quoted: tuple[int, int], name: str) -> Iterator[Edit]:
    """Yield the edits of what a Sphinx role is given: a title before its target, `~` and `!`.

    Args:
        text: Of the file.
        quoted: Where the ticks around it begin and end.
        name: Of the role, without its domain; those of text lose the ticks.
    """
    start, end = quoted[0] + 1, quoted[1] - 1
    if _ICON_ROLES.fullmatch(name):
        yield Edit(quoted[0], quoted[1] + text.startswith(" ", quoted[1]))
        return
    is_text = name in TEXT_ROLES or name.startswith(_BADGE_ROLES)
    if is_text:
        yield Edit(start - 1, start, "^" if _is_raised(text, quoted, name) else "")
    if titled := _TITLED.match(text, start, end):
        yield Edit(start + len(titled["title"].rstrip()), end)
    elif text.startswith("~", start):
        last = text.rfind(".", start, end) + 1
        yield Edit(start, max(start + 1, last))
    elif text.startswith("!", start):
        yield Edit(start, start + 1)
    if is_text:
        yield Edit(end, end + 1)
