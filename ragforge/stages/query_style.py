"""How people ask: how long, and whether in sentences or in keywords."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import quantiles
from typing import Final

from ragforge.stages.words import words

MOST_KEYWORDS: Final = 6
_MARK = re.compile(r"[?\uff1f\u061f\u037e]\s*$")
_AROUND: Final = "\"'\u201c\u201e\u00bf\u00ab(,:;"
_ASKING: Final = frozenset(
    "what which who whom whose when where why how is are was were am do does did can could should "
    "would will may might has have had must "
    "was wer wen wem wessen wann wo wohin woher warum wieso weshalb wie welche welcher welches ist "
    "sind kann können darf soll muss gibt hat "
    "que quoi quel quelle quels quelles qui quand où pourquoi comment combien est peut "
    "qué cuál cuáles quién cuándo dónde cómo cuánto puedo puede hay "
    "che cosa quale quali chi quando dove perché come quanto posso "
    "qual quais quem onde como quanto posso pode "
    "wat welke wie wanneer waar waarom hoe kan mag".split()
)
_ASKED_ANYWHERE = re.compile("[什吗嗎怎谁誰哪呢]|为什么|多少|どう|なぜ|何|か。?\\s*$")


@dataclass(frozen=True, slots=True)
class QueryStyle:
    """How a set of queries is worded; all but `n` are 0 where it is empty."""

    n: int
    median_words: float
    lower_quartile: float
    upper_quartile: float
    """Of the number of words; ideographs count one each."""
    share_questions: float
    """With a question mark, or a first word that asks."""
    share_keywords: float
    """Of at most six words and no question; the rest are commands and longer descriptions."""


def style_of(queries: Iterable[str]) -> QueryStyle:
    """Return how queries are worded, each counted once however often it was asked."""
    distinct = list(dict.fromkeys(queries))
    lengths = [len(words(query)) for query in distinct]
    if not lengths:
        return QueryStyle(0, 0.0, 0.0, 0.0, 0.0, 0.0)
    lower, middle, upper = (
        quantiles(lengths, n=4, method="inclusive") if len(lengths) > 1 else lengths * 3
    )
    asking = [is_question(query) for query in distinct]
    keywords = [
        not asks and length <= MOST_KEYWORDS for asks, length in zip(asking, lengths, strict=True)
    ]
    n = len(distinct)
    return QueryStyle(
        n, float(middle), float(lower), float(upper), sum(asking) / n, sum(keywords) / n
    )


def is_question(query: str) -> bool:
    """Whether a query is put as a question, as far as its words tell."""
    if _MARK.search(query) or _ASKED_ANYWHERE.search(query):
        return True
    first, *others = query.casefold().split() or [""]
    word = first.strip(_AROUND).replace("\u2019", "'").partition("'")[0]
    return bool(others) and word in _ASKING
