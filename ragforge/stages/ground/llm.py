"""A language model as judge of groundedness: one call an answer; all shares are computed here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragforge.records import Grounding, Provenance
from ragforge.stages.asking import Asker, Way, quoted
from ragforge.stages.ground.citations import CitedText, read_marks
from ragforge.stages.ground.counting import counted_once
from ragforge.stages.ground.parts import Exchange, find_evidence, spans
from ragforge.stages.ground.reply import ClaimsReply, broken_rule
from ragforge.stages.ground.settling import Checked, settle, settled_by_rule
from ragforge.stages.judge.tripwires import flags

_TOKENS_A_SENTENCE = 120
_MOST_MORE_TOKENS = 6000


@dataclass(frozen=True, slots=True)
class LLMGrounder:
    """Checks answers by asking a model.

    The judge sees the answer without its marks of citation: what a sentence cites must not move it
    to find support there.
    """

    asker: Asker

    @property
    def provenance(self) -> Provenance:
        """The model and its prompt."""
        return self.asker.provenance()

    async def judge(self, exchange: Exchange) -> Grounding:
        """Return the grounding of an answer; see `Judge`."""
        cited = read_marks(exchange.answer, [passage.chunk_id for passage in exchange.passages])
        found = settled_by_rule(exchange, cited)
        if found is not None:
            return found
        passages = opaque(exchange)
        holes = {
            "question": quoted(exchange.question),
            "answer": quoted(cited.text),
            "passages": _shown(passages),
        }
        more = min(_MOST_MORE_TOKENS, _TOKENS_A_SENTENCE * len(spans(cited.text)))
        said = await self.asker.ask(
            holes,
            ClaimsReply,
            lambda reply: broken_rule(reply, cited, passages),
            Way(more_tokens=more),
        )
        found = settle(
            exchange,
            cited,
            counted_once(_checked(said.value, cited, passages), cited.words),
            _texts(said.value.no_claim, cited),
            self.asker.provenance(said.reply),
        )
        return found.model_copy(update={"flags": _flags([exchange.answer, *passages.values()])})


def _flags(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({flag for text in texts for flag in flags(text)}))


def opaque(exchange: Exchange) -> dict[str, str]:
    """Return the texts of the passages by ids that tell a model nothing, in their order."""
    return {f"p{number}": passage.text for number, passage in enumerate(exchange.passages, start=1)}


def _checked(reply: ClaimsReply, cited: CitedText, passages: Mapping[str, str]) -> list[Checked]:
    names, wording = list(passages), cited.wording
    found = []
    for item in reply.claims:
        evidence = [(one.passage, one.quote) for one in item.evidence]
        quote = ""
        if evidence:
            text = passages[evidence[0][0]]
            at = find_evidence(evidence[0][1], text)
            assert at is not None
            quote = text[at.start : at.end]
        places = dict.fromkeys(names.index(name) for name, _ in evidence)
        found.append(Checked(tuple(wording.locations(item.claim)), tuple(places), quote))
    return found


def _texts(parts: list[str], cited: CitedText) -> list[str]:
    """Return the answer's own words for parts of it; those that stand in the same place once."""
    wording = cited.wording
    places = dict.fromkeys(wording.locations(part)[0] for part in parts)
    return [cited.text[place.start : place.end] for place in places]


def _shown(passages: Mapping[str, str]) -> str:
    """Return passages as a JSON list, cleaned like `quoted`."""
    entries = (
        f'{{"id": {quoted(name)}, "text": {quoted(text)}}}' for name, text in passages.items()
    )
    return f"[{', '.join(entries)}]"
