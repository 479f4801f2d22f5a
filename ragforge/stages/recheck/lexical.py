"""The offline baseline: an answer stands where a passage has all its words and numbers."""

from dataclasses import dataclass

from ragforge.corpus.anchors import Location
from ragforge.records import Provenance
from ragforge.stages.recheck.sentences import sentence_places
from ragforge.stages.recheck.subject import Finding, Proved, Subject, without
from ragforge.stages.recheck.turns import is_turned
from ragforge.stages.words import content_stems, numbers

_NAME = "offline-recheck-1"


@dataclass(frozen=True, slots=True)
class LexicalRecheck:
    """Finds an expected answer by its words; what is said in other words it does not find.

    It never finds another answer, and its "none" is no proof that there is none. Where words such
    as "not" or "until" came or went with the quotes, or numbers, it confirms nothing.
    """

    @property
    def provenance(self) -> Provenance:
        """The baseline's name."""
        return Provenance(kind="baseline", model=_NAME)

    async def recheck(self, subject: Subject) -> Finding:
        """Return the first passage with all content words and numbers, unless it was turned."""
        wanted = _telling(subject.expected)
        for number, passage in enumerate(subject.passages):
            text = without(passage.text, subject.others)
            if wanted and wanted <= _telling(text):
                place = _shortest(wanted, text)
                if not is_turned(subject, passage.text[place.start : place.end]):
                    return Finding("same", Proved(number, place), "", self.provenance)
        return Finding("none", None, "", self.provenance)


def _telling(text: str) -> set[str]:
    return set(content_stems(text)) | {f"#{number}" for number in numbers(text)}


def _shortest(wanted: set[str], text: str) -> Location:
    """Return the shortest run of sentences that has what is wanted, the first of equals."""
    places = sentence_places(text)
    told = [_telling(text[one.start : one.end]) for one in places]
    best, first = Location(0, len(text)), 0
    for last in range(len(places)):
        while first <= last and wanted <= set().union(*told[first : last + 1]):
            run = Location(places[first].start, places[last].end)
            best = min(best, run, key=lambda one: one.end - one.start)
            first += 1
    return best
