"""Where in a reply results and answers may stand: paths proposed by its names and shapes."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from ragforge.deferred import dataclass
from ragforge.retrieval.services.paths import describe
from ragforge.scripts import reads_as_words

_DEPTH: Final = 7
_MOST_NODES: Final = 20_000
_ITEMS_SEEN: Final = 20
_LONG_TEXT: Final = 40
"""Characters from which on a text without a telling name may be a passage."""
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LISTS: Final = re.compile(
    r"hits?|results?|documents?|docs|matches|items|passages?|chunks?|points|data|records|nodes|rows"
    r"|context(s|_?docs)?|sources?|citations?|references?|refs|value|entries|evidence",
    re.IGNORECASE,
)
_IDS: Final = re.compile(
    r"(.*[_-])?(id|uid|uuid|guid|key|pk|chunk|passage|ref|slug)|(chunk|passage|node)_?id",
    re.IGNORECASE,
)
_COLUMNS: Final = re.compile(
    r"(chunk_?)?(ids?|keys?)|documents?|texts?|contents?|passages?|metadatas?|scores?|distances?"
    r"|sources?",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\S{1,200}")
_TEXTS: Final = re.compile(
    r"(.*[_-])?(text|content|page_?content|body|passage|snippet|chunk|excerpt|quote|value|highlight)",
    re.IGNORECASE,
)
_DOCUMENTS: Final = re.compile(
    r"(.*[_-])?(doc(ument)?([_-]?id)?|source|file(_?(path|name))?|path|uri|url|link|title|name|page)",
    re.IGNORECASE,
)
_SCORES: Final = re.compile(
    r"(?!rank$)@?(.*[_.-])?(score|similarity|relevance|distance|certainty|confidence|rank|weight)",
    re.IGNORECASE,
)
_ANSWERS: Final = re.compile(
    r"(.*[_-])?(answer|response|reply|output(_?text)?|completion|generated_?text|result|message|text"
    r"|content|summary)",
    re.IGNORECASE,
)
_SAID: Final = re.compile(
    r"choices|candidates|generations|messages|parts|contents?|outputs?", re.IGNORECASE
)
"""Names of lists that hold what a model says, and not what it read."""
_OFTEN_READ: Final = re.compile(r"contents?|outputs?", re.IGNORECASE)
"""Of those, names of passages as well."""
_LAST: Final = re.compile(r"messages", re.IGNORECASE)
"""Of those, lists of which the last item is the answer."""


@dataclass(frozen=True, slots=True)
class PathProposal:
    """A path that may be meant.

    Args:
        setting: It is for, such as `results`.
        path: JMESPath.
        found: What stands there, in words.
    """

    setting: str
    path: str
    found: str


@dataclass(frozen=True, slots=True)
class _Place:
    """A value of a reply.

    Args:
        path: JMESPath, "@" for the reply itself.
        name: The last key on the way.
        value: What stands there.
    """

    path: str
    name: str
    value: object


def propose_results(reply: object) -> list[PathProposal]:
    """Return paths for what a retriever's reply lacks, most likely one for each setting.

    Args:
        reply: Its JSON.

    Returns:
        Nothing where no list in it looks like results.
    """
    table = _table_of_columns(reply)
    if table is not None:
        rows = describe(table.value)
        assert isinstance(table.value, list)
        return [PathProposal("results", table.path, rows), *propose_fields(table.value)]
    place = _likeliest_list(reply)
    if place is None:
        return []
    found = [PathProposal("results", place.path, describe(place.value))]
    assert isinstance(place.value, list)
    return [*found, *propose_fields(place.value)]


def propose_fields(items: Sequence[object]) -> list[PathProposal]:
    """Return paths, within one result, of its id, text, document and score, as far as there are."""
    objects = [item for item in items[:_ITEMS_SEEN] if isinstance(item, Mapping)]
    if not objects or len(objects) < len(items[:_ITEMS_SEEN]):
        return []
    leaves = list(_common_leaves(objects))
    text = _longest([leaf for leaf in leaves if _is_text(leaf)]) or _longest(
        [leaf for leaf in leaves if _length(leaf) >= _LONG_TEXT or _is_prose(leaf)]
    )
    others = [leaf for leaf in leaves if leaf is not text]
    kinds: list[tuple[str, _Leaf | None]] = [
        ("id", _first(others, _is_id)),
        ("text", text),
        ("document", _first(others, _is_document)),
        ("score", _first(others, _is_score)),
    ]
    return [
        PathProposal(setting, leaf.path, describe(leaf.values[0]))
        for setting, leaf in kinds
        if leaf is not None
    ]


def propose_answer(reply: object) -> list[PathProposal]:
    """Return paths for what a system's reply lacks: the answer, its contexts and their fields."""
    texts = [place for place in _places(reply) if isinstance(place.value, str) and place.value]
    contexts = _likeliest_list(reply, _is_said)
    inside = f"{contexts.path}[0]" if contexts else "\0"
    outside = [place for place in texts if not place.path.startswith(inside)]
    named = [place for place in outside if _ANSWERS.fullmatch(place.name)]
    best = max(named or outside, key=lambda place: _answer_worth(place), default=None)
    found = []
    if best is not None:
        found.append(PathProposal("answer", best.path, describe(best.value)))
    if contexts is not None:
        assert isinstance(contexts.value, list)
        found.append(PathProposal("contexts", contexts.path, describe(contexts.value)))
        fields = propose_fields(contexts.value)
        found.extend(item for item in fields if item.setting != "score")
    return found


def _answer_worth(place: _Place) -> tuple[int, int]:
    assert isinstance(place.value, str)
    order = ("answer", "response", "reply", "output", "completion", "content", "text", "result")
    rank = next((i for i, name in enumerate(order) if name in place.name.lower()), len(order))
    return -rank, len(place.value)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A text or number that all results have.

    Args:
        path: Within a result.
        name: Its key.
        values: Of the results.
    """

    path: str
    name: str
    values: tuple[object, ...]


def _common_leaves(items: Sequence[Mapping[object, object]]) -> Iterator[_Leaf]:
    by_path: dict[str, list[_Place]] = {}
    for item in items:
        for place in _places(item):
            if isinstance(place.value, str | int | float) and "[" not in place.path:
                by_path.setdefault(place.path, []).append(place)
    for path, places in by_path.items():
        if len(places) * 2 > len(items):
            yield _Leaf(path, places[0].name, tuple(place.value for place in places))


def _first(leaves: Sequence[_Leaf], fits: Callable[[_Leaf], bool]) -> _Leaf | None:
    """Return the leaf that fits and is nearest to the top, the most telling name first."""
    fitting = [leaf for leaf in leaves if fits(leaf)]
    return min(
        fitting, key=lambda leaf: ("chunk" not in leaf.path, leaf.path.count(".")), default=None
    )


def _longest(leaves: Sequence[_Leaf]) -> _Leaf | None:
    return max(leaves, key=_length, default=None)


def _length(leaf: _Leaf) -> float:
    lengths = [len(value) for value in leaf.values if isinstance(value, str)]
    return sum(lengths) / len(leaf.values) if lengths else 0.0


def _is_id(leaf: _Leaf) -> bool:
    is_distinct = len(set(map(str, leaf.values))) == len(leaf.values)
    is_word = all(_WORD.fullmatch(str(value)) for value in leaf.values)
    return bool(_IDS.fullmatch(leaf.name)) and "doc" not in leaf.name and is_distinct and is_word


def _is_text(leaf: _Leaf) -> bool:
    return bool(_TEXTS.fullmatch(leaf.name)) and _length(leaf) > 0 and not _is_id(leaf)


def _is_prose(leaf: _Leaf) -> bool:
    """Whether a field that often names a document holds what stands in it."""
    return leaf.name == "document" and all(reads_as_words(str(value)) for value in leaf.values)


def _is_document(leaf: _Leaf) -> bool:
    return bool(_DOCUMENTS.fullmatch(leaf.name)) and _length(leaf) > 0


def _is_score(leaf: _Leaf) -> bool:
    return bool(_SCORES.fullmatch(leaf.name)) and all(map(_is_number, leaf.values))


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
    return not isinstance(value, bool)


def _is_said(place: _Place) -> bool:
    """Whether a list holds what a model says: by its name, unless its items have an origin."""
    if not _SAID.fullmatch(place.name):
        return False
    if not _OFTEN_READ.fullmatch(place.name) or not isinstance(place.value, list):
        return True
    return not any(item.setting in ("document", "score") for item in propose_fields(place.value))


def _likeliest_list(
    reply: object, is_none: Callable[[_Place], bool] = lambda _: False
) -> _Place | None:
    """Return the list that looks most like results; None for none."""
    lists = [
        place
        for place in _places(reply)
        if isinstance(place.value, list) and place.value and not is_none(place)
    ]
    worth = {place.path: _list_worth(place) for place in lists}
    best = max(lists, key=lambda place: worth[place.path], default=None)
    return best if best is not None and worth[best.path] > 0 else None


def _list_worth(place: _Place) -> float:
    """Return how much a list looks like results: by what its items have, and by its name."""
    assert isinstance(place.value, list)
    named = 1.5 if _LISTS.fullmatch(place.name) else 0.0
    first = place.value[0]
    if isinstance(first, str):
        return named if len(place.value) > 1 or named else 0.0
    if not isinstance(first, Mapping):
        return 0.0
    return named + len(propose_fields(place.value)) - 0.1 * place.path.count(".")


def _table_of_columns(reply: object) -> _Place | None:
    """Return results that come as lists of ids, of texts and so on, each as long; None for none."""
    if not isinstance(reply, Mapping):
        return None
    columns: dict[str, list[object]] = {}
    for key, value in reply.items():
        inner = value[0] if isinstance(value, list) and len(value) == 1 else None
        column = inner if isinstance(inner, list) else value
        name = str(key)
        if isinstance(column, list) and column and _COLUMNS.fullmatch(name):
            columns[f"{name}[0]" if column is inner else name] = column
    lengths = {len(column) for column in columns.values()}
    if len(columns) < 2 or len(lengths) != 1:
        return None
    names = {path: path.removesuffix("[0]").removesuffix("s") for path in columns}
    rows = [
        {names[path]: column[row] for path, column in columns.items()}
        for row in range(min(lengths))
    ]
    path = ", ".join(f"{name}: {path}" for path, name in names.items())
    return _Place(f"{{{path}}}", "", rows)


def _places(value: object) -> Iterator[_Place]:
    """Yield a reply with all that it holds, one item of a list standing for all of them."""
    waiting = [(_Place("@", "", value), 0)]
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        place, depth = waiting.pop(0)
        yield place
        if depth < _DEPTH:
            waiting.extend((inner, depth + 1) for inner in _inside(place))


def _inside(place: _Place) -> Iterator[_Place]:
    before = "" if place.path == "@" else place.path
    if isinstance(place.value, Mapping):
        for key, value in place.value.items():
            name = str(key)
            part = name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)
            yield _Place(f"{before}.{part}" if before else part, name, value)
    elif isinstance(place.value, list) and place.value:
        index = -1 if _LAST.fullmatch(place.name) else 0
        yield _Place(f"{before}[{index}]", place.name, place.value[index])
