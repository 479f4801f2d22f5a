"""What a row says of its query in words: difficulty, type, and whether it has an answer."""

from collections.abc import Mapping
from typing import Final, get_args

from ragforge.files.field_names import (
    ANSWERABLE,
    CATEGORY,
    CHUNK_OF_ROW,
    DIFFICULTY,
    DOCUMENT_OF_ROW,
    EXPECTED_ANSWER,
    EXPECTED_BEHAVIOUR,
    GRADES,
    LANGUAGE,
    PERSONA,
    QUOTE_OF_ROW,
    RELEVANT,
    TYPE,
    UNANSWERABLE,
    Field,
    normal_name,
)
from ragforge.files.row import Row
from ragforge.records import Behaviour, Difficulty, Query, QueryType

_DIFFICULTIES: Final = {
    **{word: word for word in get_args(Difficulty)},
    **dict.fromkeys(("simple", "basic", "beginner", "low", "1"), "easy"),
    **dict.fromkeys(("moderate", "intermediate", "normal", "2"), "medium"),
    **dict.fromkeys(("complex", "difficult", "advanced", "challenging", "high", "3"), "hard"),
}
_BEHAVIOURS: Final = {
    **{word: word for word in get_args(Behaviour)},
    **dict.fromkeys(("refuse", "decline", "no_answer", "not_answerable", "idk"), "abstain"),
    **dict.fromkeys(("correct", "correct_the_premise"), "correct_premise"),
    **dict.fromkeys(("ask", "ask_back", "clarification"), "clarify"),
}
_OF_TYPE: Final = {
    "unanswerable": "abstain",
    "false_premise": "correct_premise",
    "ambiguous": "clarify",
}
_NO_ANSWER: Final = ("no_answer", "not_answerable", "impossible", "out_of_scope")
"""Categories of queries that the corpus does not answer."""
_SAID_BY: Final = {
    "expected_answer": (EXPECTED_ANSWER,),
    "difficulty": (DIFFICULTY,),
    "type": (TYPE,),
    "persona": (PERSONA,),
    "language": (LANGUAGE,),
    "answerable": (ANSWERABLE, UNANSWERABLE, EXPECTED_BEHAVIOUR, TYPE),
    "expected_behaviour": (ANSWERABLE, UNANSWERABLE, EXPECTED_BEHAVIOUR, TYPE),
    "category": (CATEGORY,),
    "evidence": (RELEVANT, GRADES, QUOTE_OF_ROW, CHUNK_OF_ROW, DOCUMENT_OF_ROW),
}
"""Fields of a query to those of a row that say them."""
SAYABLE: Final = frozenset(_SAID_BY)
"""Fields of a query that a row may say nothing of."""
_TRUTHS: Final = {
    **dict.fromkeys(("true", "yes", "y", "1", "1.0"), True),
    **dict.fromkeys(("false", "no", "n", "0", "0.0"), False),
}


def unsaid(row: Row, query: Query, *, names_passages: bool) -> frozenset[str]:
    """Return the fields of a query of which a row says nothing, in its own words or others."""
    return frozenset(
        name
        for name, fields in _SAID_BY.items()
        if not row.has(*fields)
        and getattr(query, name) == Query.model_fields[name].default
        and (name != "evidence" or not names_passages)
    )


def difficulty_of(row: Row) -> str | None:
    """Return the difficulty that a row gives in any of the known words; None where it gives none.

    Raises:
        DataError: The word is not known; it is no category that could be kept.
    """
    return _known_labels(row, DIFFICULTY, _DIFFICULTIES)


def type_of(row: Row, category: str) -> str | None:
    """Return the type that a row gives, or its category is; None where neither is one.

    Raises:
        DataError: The type is none.
    """
    types = get_args(QueryType)
    found = _one_of(row, TYPE, types) or _known(category, types)
    return found or ("unanswerable" if _known(category, _NO_ANSWER) else None)


def behaviour_of(row: Row, query_type: str | None) -> str:
    """Return the behaviour that a row asks for, else the one that goes with the type.

    Raises:
        DataError: The word is not known, or the row says that an answerable query asks to abstain
            or the other way round.
    """
    answerable = _answerable(row)
    given = _known_labels(row, EXPECTED_BEHAVIOUR, _BEHAVIOURS)
    if given is None and answerable is not None:
        of_type = _OF_TYPE.get(query_type or "", "answer")
        return "abstain" if not answerable else of_type.replace("abstain", "answer")
    behaviour = given or _OF_TYPE.get(query_type or "", "answer")
    if answerable is not None and answerable == (behaviour == "abstain"):
        fitting = "another behaviour" if answerable else "abstain"
        raise row.wrong(EXPECTED_BEHAVIOUR, f"{fitting}, as answerable says", behaviour)
    return behaviour


def _answerable(row: Row) -> bool | None:
    """Return whether a row says that the corpus answers its query; None where it does not say.

    Raises:
        DataError: It says both.
    """
    answerable, unanswerable = truth_of(row, ANSWERABLE), truth_of(row, UNANSWERABLE)
    if unanswerable is None:
        return answerable
    if answerable is unanswerable:
        raise row.wrong(UNANSWERABLE, "the opposite of answerable", unanswerable)
    return not unanswerable


def truth_of(row: Row, field: Field) -> bool | None:
    """Return whether a row says that something is so; None where it does not say.

    Raises:
        DataError: It says neither true nor false.
    """
    value = row.get(field)
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return value
    truth = _TRUTHS.get(str(value).lower())
    if truth is None:
        raise row.wrong(field, "true or false", value)
    return truth


def _known_labels(row: Row, field: Field, words: Mapping[str, str]) -> str | None:
    value = row.get(field)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        raise row.wrong(field, "text", value)
    by_name = {normal_name(word): meant for word, meant in words.items()}
    label = by_name.get(normal_name(text))
    if label is None:
        meant = dict.fromkeys(words.values())
        others = [word for word in words if word not in meant]
        raise row.wrong(field, f"one of {', '.join(meant)} (or {', '.join(others)})", value)
    return label


def _one_of(row: Row, name: Field, known: tuple[str, ...]) -> str | None:
    text = row.optional_text(name)
    if text is None:
        return None
    word = _known(text, known)
    if word is None:
        raise row.wrong(name, f"one of {', '.join(known)}", text)
    return word


def _known(text: str, known: tuple[str, ...]) -> str | None:
    """Return the known word that a text is, without regard to case, dashes and blanks."""
    return next((word for word in known if normal_name(word) == normal_name(text)), None)
