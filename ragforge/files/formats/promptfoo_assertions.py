"""Assertions of promptfoo, and the expected answers that some of them hold.

In tables a cell of `__expected` is `type:value`, `type(threshold):value`, `type` or
`type(threshold)`, each with `not-` before it or without; any other text is the answer.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ragforge.deferred import pattern

_OF_ANSWERS: Final = ("equals", "similar", "factuality", "model-graded-factuality")
"""Those whose value is the answer as it should be."""
_VALUED: Final = (
    *("contains", "contains-all", "contains-any", "icontains", "icontains-all", "icontains-any"),
    *("starts-with", "ends-with", "regex", "levenshtein", "word-count", "finish-reason"),
    *("rouge-l", "rouge-n", "rouge-s", "bleu", "gleu", "meteor", "classifier", "pi", "g-eval"),
    *("llm-rubric", "agent-rubric", "research-rubric", "search-rubric", "video-rubric", "grade"),
    *("model-graded-closedqa", "citation-faithfulness", "noise-sensitivity", "web-search"),
    *("select-best", "max-score", "javascript", "fn", "eval", "python", "ruby", "webhook"),
    *("skill-used", "tool-call-f1", "trajectory:goal-success", "trajectory:step-count"),
    *("trajectory:tool-args-match", "trajectory:tool-sequence", "trajectory:tool-used"),
    *("trace-error-spans", "trace-span-count", "trace-span-duration"),
)
"""Those that hold something else; `grade`, `fn` and `eval` are short for others."""
_BARE: Final = (
    *("is-html", "is-json", "is-refusal", "is-sql", "is-xml", "is-valid-function-call"),
    *("is-valid-openai-function-call", "is-valid-openai-tools-call", "contains-html"),
    *("contains-json", "contains-sql", "contains-xml", "guardrails", "moderation", "cost"),
    *("latency", "perplexity", "perplexity-score", "answer-relevance", "context-faithfulness"),
    *("context-recall", "context-relevance", "conversation-relevance"),
)
"""Those that need no value."""
_TYPES: Final = "|".join(
    sorted(map(re.escape, (*_OF_ANSWERS, *_VALUED, *_BARE)), key=len, reverse=True)
)
_ASSERTION: Final = pattern(
    rf"(?P<not>not-)?(?P<type>{_TYPES}|promptfoo:redteam:[\w:-]{{1,60}})"
    r"(?::(?:cosine|dot|euclidean)(?=[(:]))?(?P<threshold>\([\d.]{1,20}\))?(?::(?P<value>.*))?",
    re.DOTALL,
)
_SCRIPT: Final = "file://"


def asserted_answers(assertions: Iterable[object]) -> Iterator[str]:
    """Yield the answers that assertions hold; others, such as rubrics, hold none.

    Args:
        assertions: Cells of `__expected`, or lists of objects as under `assert`.
    """
    for value in assertions:
        if isinstance(value, str):
            yield from filter(None, [_answer_of(value.strip())])
        for item in value if isinstance(value, list) else ():
            of_answer = isinstance(item, Mapping) and item.get("type") in _OF_ANSWERS
            if of_answer and isinstance(item.get("value"), str) and item["value"].strip():
                yield item["value"].strip()


def _answer_of(cell: str) -> str:
    """Return the answer in a cell; "" where it asserts something else.

    A word such as `python` alone, which says nothing without a value, is an answer.
    """
    found = _ASSERTION.fullmatch(cell)
    if cell.startswith(_SCRIPT):
        return ""
    if found is None:
        return cell
    kind, value = found["type"], found["value"]
    if cell == kind and kind.isalpha() and kind not in _BARE:
        return cell
    is_answer = kind in _OF_ANSWERS and not found["not"]
    return (value or "").strip() if is_answer else ""
