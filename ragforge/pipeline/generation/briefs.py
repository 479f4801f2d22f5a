"""From slots to briefs: the chunks themselves, and the second one of those that need two."""

from dataclasses import dataclass

from ragforge.pipeline.surveyed import Surveyed
from ragforge.records import Slot
from ragforge.stages.generate.candidates import Brief
from ragforge.stages.generate.hops import common_terms, joined, partner

_HOPS = ("multi_hop", "multi_hop_across")


@dataclass(slots=True)
class Briefs:
    """Makes briefs.

    Args:
        survey: Of the corpus.
        seed: Decides which chunks are looked at for what is common.
    """

    survey: Surveyed
    seed: int
    _common: frozenset[str] | None = None

    async def of(self, slot: Slot) -> Brief | None:
        """Return the brief of a slot; None where its chunk has no partner that it needs."""
        source = self.survey.chunk(slot.chunk_ids[0])
        if slot.type not in _HOPS:
            return Brief(slot, (source,))
        if self._common is None:
            self._common = common_terms(self.survey, self.seed)
        other = await partner(source, slot.type, self.survey, self.survey.bm25, self._common)
        return Brief(joined(slot, other), (source, other)) if other is not None else None
