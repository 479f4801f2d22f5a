"""The offline baseline for groundedness: sentences whose words and numbers a passage holds."""

from ragforge.corpus.quote_locations import Location
from ragforge.deferred import dataclass
from ragforge.records import Grounding, Provenance
from ragforge.stages.answer.lexical import unsupported_sentences
from ragforge.stages.ground.citations import read_marks
from ragforge.stages.ground.parts import Exchange, is_statement, spans
from ragforge.stages.ground.settling import PlacedClaim, settle, settled_by_rule
from ragforge.stages.words import content_stems, sentences

_NAME = "offline-lexical-ground-1"


@dataclass(frozen=True, slots=True)
class LexicalGrounder:
    """Takes every sentence for a claim, and shared words for support."""

    @property
    def provenance(self) -> Provenance:
        """The baseline's name."""
        return Provenance(kind="baseline", model=_NAME)

    async def judge(self, exchange: Exchange) -> Grounding:
        """Return the grounding of an answer; see `Judge`."""
        cited = read_marks(exchange.answer, [passage.chunk_id for passage in exchange.passages])
        found = settled_by_rule(exchange, cited)
        if found is not None:
            return found
        words = cited.words
        parts = [part for part in spans(cited.text) if is_statement(part, words)]
        claims = [_checked(part, words, exchange) for part in parts]
        return settle(exchange, cited, claims, (), self.provenance)


def _checked(part: Location, answer: str, exchange: Exchange) -> PlacedClaim:
    sentence = answer[part.start : part.end]
    places = tuple(
        place
        for place, passage in enumerate(exchange.passages)
        if not unsupported_sentences(sentence, (passage.text,))
    )
    quote = _nearest(sentence, exchange.passages[places[0]].text) if places else ""
    return PlacedClaim((part,), places, quote)


def _nearest(sentence: str, text: str) -> str:
    """Return the first sentence of a text that shares the most words with the given one."""
    said = set(content_stems(sentence))
    return max(sentences(text), key=lambda one: len(said & set(content_stems(one))), default="")
