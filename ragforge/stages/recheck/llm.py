"""A language model as judge of old answers: whether passages still give them, with a quote."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict

from ragforge.records import Behaviour, Provenance
from ragforge.stages.answer.refusals import abstains
from ragforge.stages.answer.rules import equal_values, same_text
from ragforge.stages.asking import Asker, quoted, quoted_list, upto, visible
from ragforge.stages.quotes import has_content
from ragforge.stages.recheck.subject import Finding, Subject, Verdict, prove
from ragforge.stages.values import small_numbers
from ragforge.stages.words import numbers, words

PROMPT: Final = "recheck_answer"
_EXPECTS: Final[Mapping[Behaviour, str]] = {
    "answer": "an answer",
    "abstain": "an answer",
    "correct_premise": "a correction of what the question wrongly takes for granted",
    "clarify": "an answer for each of several things that the question may mean",
}


class RecheckReply(BaseModel):
    """Reply schema: the quote first, so that the verdict follows from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    quote: Annotated[str, upto(1200)]
    verdict: Verdict
    answer: Annotated[str, upto(1200)]


@dataclass(frozen=True, slots=True)
class LLMRecheck:
    """Asks a model with the prompt for it."""

    asker: Asker

    @property
    def provenance(self) -> Provenance:
        """The model and its prompt."""
        return self.asker.provenance()

    async def judge(self, subject: Subject) -> Finding:
        """Return what the model finds; see `Judge`."""
        passages = [
            {
                "titles": [visible(title) for title in passage.titles],
                "text": visible(passage.text),
            }
            for passage in subject.passages
        ]
        holes = {
            "question": quoted(subject.question),
            "expects": quoted(_EXPECTS[subject.expects]),
            "expected": quoted(subject.expected),
            "quotes": quoted_list(list(subject.quotes)),
            "others": quoted_list(list(subject.others)),
            "passages": json.dumps(passages, ensure_ascii=False),
        }
        answered = await self.asker.ask(
            holes, RecheckReply, lambda reply: broken_rule(reply, subject)
        )
        reply, by = answered.value, self.asker.provenance(answered.reply)
        proof = None if reply.verdict == "none" else prove(reply.quote, subject)
        answer = " ".join(visible(reply.answer).split()) if reply.verdict == "changed" else ""
        return Finding(reply.verdict, proof, answer, by)


def broken_rule(reply: RecheckReply, subject: Subject) -> str | None:
    """Return the rule that a reply breaks, None where it breaks none."""
    if reply.verdict == "none":
        if reply.quote.strip():
            return 'quote is given, but verdict is "none"'
        if not _says_nothing(reply.answer, subject):
            return 'answer is given, but verdict is "none"'
        return None
    if prove(reply.quote, subject) is None:
        besides = ", apart from the other quotes" if subject.others else ""
        return (
            f"quote does not stand in a passage{besides} as whole words that say something; copy "
            'it exactly, or say "none"'
        )
    return _broken_same(reply, subject) if reply.verdict == "same" else _broken_new(reply, subject)


def _broken_same(reply: RecheckReply, subject: Subject) -> str | None:
    if reply.answer.strip() and not _is_expected(reply.answer, subject):
        strange = numbers(reply.answer) - numbers(subject.expected)
        if strange:
            return f'verdict is "same", but answer says {min(strange)}'
    # A number that the old quotes had must have come from somewhere.
    proved = numbers(subject.expected) & {each for old in subject.quotes for each in numbers(old)}
    lost = [one for one in sorted(proved) if not _stands(one, _texts(subject))]
    if lost:
        return f'verdict is "same", but no passage has the {lost[0]} of the expected answer'
    return None


def _broken_new(reply: RecheckReply, subject: Subject) -> str | None:
    if _says_nothing(reply.answer, subject):
        return 'answer gives none, but verdict is "changed"'
    if _is_expected(reply.answer, subject):
        return 'answer is the expected one, but verdict is "changed"'
    if words(reply.answer) == words(subject.question):
        return "answer repeats the question"
    known = [*_texts(subject), subject.question, subject.expected]
    made_up = [one for one in sorted(numbers(reply.answer)) if not _stands(one, known)]
    if made_up:
        return f"no passage has the {made_up[0]} of answer"
    return None


def _says_nothing(answer: str, subject: Subject) -> bool:
    return not has_content(answer) or abstains(answer, subject.question)


def _is_expected(answer: str, subject: Subject) -> bool:
    same = same_text(subject.expected, answer)
    return same or equal_values(subject.expected, answer, subject.language) is not None


def _texts(subject: Subject) -> list[str]:
    return [part for one in subject.passages for part in (one.text, *one.titles)]


def _stands(number: str, texts: Iterable[str]) -> bool:
    """Whether a number stands in a text, in figures or, a small one, in English words."""
    spelled = small_numbers()
    small = number.isdecimal() and int(number) < len(spelled)
    word = re.compile(rf"\b{spelled[int(number)]}\b", re.IGNORECASE) if small else None
    return any(
        number in numbers(text) or (word is not None and word.search(text) is not None)
        for text in texts
    )
