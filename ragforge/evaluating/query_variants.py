"""Queries that ask for what another one asks for, in other words: variants of one question.

What a retriever makes of one it makes of the others, so that they rise and fall together. Taken for
queries of their own, ten questions in five wordings each name a winner in four of ten comparisons
of systems that are equally good.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ragforge.deferred import pattern
from ragforge.evaluating.formatting import plural
from ragforge.files.set.dataset import Dataset
from ragforge.records import Query

_WORD: Final = pattern(r"\w+")
_LEAST_CHARS: Final = 5
"""Of an answer that tells which question it is of, beside the ids of chunks: "yes" does not."""
_LEAST_WORDS: Final = 6
"""Of one that does so alone, or beside the ids of documents, which answer many questions each."""
_RELEVANT: Final = 2

_FEW: Final = 0.1
"""Share of queries that are variants up to which intervals are hardly narrower."""

_Truth = frozenset[tuple[str, str]]


def query_variants(dataset: Dataset, queries: Iterable[Query]) -> dict[str, str]:
    """Return which query each one is a variant of, by id: the first that asks for the same.

    Two ask for the same where their expected answers read alike, and they have the same quotes as
    evidence, or people labelled the same chunks as relevant. Where neither is known, a long answer
    tells alone; not where there is none, as all such questions are refused alike. Queries that are
    no variant are left out.

    Args:
        dataset: Has the labels.
        queries: Those that are measured.
    """
    of_answer: dict[str, list[Query]] = {}
    for query in queries:
        if answer := _folded(query.expected_answer or ""):
            of_answer.setdefault(answer, []).append(query)
    alike = {answer: found for answer, found in of_answer.items() if len(found) > 1}
    unquoted = {q.query_id for found in alike.values() for q in found if not q.evidence}
    labelled = _labelled(dataset, unquoted) if unquoted else {}
    variants: dict[str, str] = {}
    for answer, found in alike.items():
        first: dict[tuple[_Truth, frozenset[str]], str] = {}
        for query in found:
            truth = _quoted(query) or labelled.get(query.query_id, frozenset())
            if query.evidence or (query.answerable and _tells(answer, truth)):
                of = first.setdefault((truth, _signed(query)), query.query_id)
                variants |= {query.query_id: of} if of != query.query_id else {}
    return variants


def variants_note(variants: Mapping[str, str], n_queries: int) -> str:
    """Say that intervals take variants for queries of their own; "" where there are few.

    Args:
        variants: See `query_variants`.
        n_queries: Those that are measured, variants among them.
    """
    if len(variants) <= _FEW * n_queries:
        return ""
    return (
        f"{len(variants):,} of {plural(n_queries, 'query asks', 'queries ask')} for what another "
        "one asks for (the same answer and evidence): intervals take them for queries of their "
        "own, and are too narrow; one wording of each question tells what the set can show"
    )


def _tells(answer: str, labelled: _Truth) -> bool:
    """Whether an answer tells which question it is of, beside what people labelled as relevant.

    One word does not, such as a name or "false": two questions may ask a chunk for it.
    """
    if all(level == "document" for level, _ in labelled):
        return len(answer.split()) >= _LEAST_WORDS
    return len(answer) >= _LEAST_CHARS and not answer.isalpha()


def _signed(query: Query) -> frozenset[str]:
    """Return the words of an expected answer that a sign changes, such as -5."""
    from ragforge.corpus.signs import signed_words  # Few sets have answers that read alike.

    return frozenset(signed_words(query.expected_answer or ""))


def _quoted(query: Query) -> _Truth:
    return frozenset((of.doc_id, _folded(of.quote)) for of in query.evidence)


def _labelled(dataset: Dataset, query_ids: Collection[str]) -> Mapping[str, _Truth]:
    """Return what people labelled as relevant."""
    found: dict[str, set[tuple[str, str]]] = {}
    table = dataset.judgment_table().of_queries(query_ids)
    for pair in table.pairs(
        lambda of: of.source == "human" and ((of.grade or 0) >= _RELEVANT or bool(of.relevant))
    ):
        found.setdefault(pair.query_id, set()).add((pair.grading.level, pair.chunk_id))
    return {query_id: frozenset(chunks) for query_id, chunks in found.items()}


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
