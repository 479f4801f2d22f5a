"""Pairs of an import that somebody graded before: whose grade counts, and what becomes of others.

A person's counts before a judge's, which goes to the label checks, where a calibration holds it
against the person's. A model's is not replaced by another model's unasked, as in judging.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import plural
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import Key, key_of, pair_and_judge
from ragforge.records import Judgment, Provenance

OtherJudges: TypeAlias = Literal["refuse", "replace", "mix"]
"""What becomes of grades that another model gave to pairs of a file: `replace` puts those of the
file in their place, `mix` lets them stand."""
_Outcome: TypeAlias = Literal["same", "replaced", "kept", "refused"]
_OUTCOMES: Final[Mapping[OtherJudges, _Outcome]] = MappingProxyType(
    {"refuse": "refused", "replace": "replaced", "mix": "kept"}
)

_QUOTES: Final = "quotes of queries"


@dataclass(slots=True)
class GradedBefore:
    """The grades of judges that an import met in a set."""

    counts: dict[_Outcome, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By what became of them, grades of each judge."""
    kept: set[Key] = field(default_factory=set)
    """Pairs whose grade stands though the file has another."""
    checks: list[Judgment] = field(default_factory=list)
    """Grades of judges beside those of people."""
    _beside: dict[str, Counter[str]] = field(default_factory=dict)

    def count(self, pair: Key, outcome: _Outcome, judge: str) -> None:
        """Note what becomes of the grade of a pair."""
        self.counts[outcome][judge] += 1
        if outcome == "kept":
            self.kept.add(pair)

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each judge whose grades met those of people, and for the others."""
        for name, counts in self._beside.items():
            words = ", ".join(f"{counts[how]:,} {how}" for how in ("the same", "higher", "lower"))
            yield (
                f"{plural(counts.total(), 'grade')} by {name} of pairs that people graded: "
                f"people's count, and the judge's are in label_checks.jsonl: {words}"
            )
        for name, count in self.counts["replaced"].items():
            yield f"{plural(count, 'grade')} by {name} replaced by those of the file"
        for name, count in self.counts["kept"].items():
            yield f"{plural(count, 'grade')} by {name} stand; those of the file are left out there"

    def count_quote(self, old: Judgment, now: Judgment) -> None:
        """Note what replaces the claim of a query's quote: anybody's grade does."""
        if now.source != "evidence" and old.grade != now.grade:
            self.counts["replaced"][_QUOTES] += 1

    def put_beside(self, old: Judgment, now: Judgment) -> None:
        """Keep what a judge gave to a pair that people graded, before or now."""
        judged, by_people = (old, now) if now.source == "human" else (now, old)
        if judged.source not in ("judge", "carried") or judged.provenance is None:
            return
        self.checks.append(judged)
        counts = self._beside.setdefault(judged.provenance.model, Counter())
        if judged.grade is not None and by_people.grade is not None:
            over = judged.grade - by_people.grade
            counts["higher" if over > 0 else "lower" if over < 0 else "the same"] += 1

    def write_checks(self, dataset: Dataset) -> None:
        """Add the checks to those of a set."""
        if self.checks:
            checks = {pair_and_judge(one): one for one in (*dataset.label_checks(), *self.checks)}
            dataset.write_label_checks(checks.values())


def graded_before(
    dataset: Dataset,
    new: dict[Key, Judgment],
    others: OtherJudges,
    where: str,
    is_passed_over: Callable[[Judgment], bool],
) -> GradedBefore:
    """Return the grades of judges on pairs of an import; those that stand are taken out of it.

    Args:
        dataset: Has the grades of before.
        new: Those of the file by pair; where a judge's of before stands, the pair is removed.
        others: What becomes of those of other models.
        where: Which file it is, for messages.
        is_passed_over: Whether a grade of before is none of these: it goes or stays anyway.

    Raises:
        UsageError: Another model graded pairs of the file, and nobody said whose grades count.
    """
    met = GradedBefore()
    for old in dataset.each_judgment():
        now = new.get(key_of(old))
        if now is None or old.is_failed or is_passed_over(old):
            continue
        if old.source == "evidence":
            met.count_quote(old, now)
        elif "human" in (old.source, now.source):
            met.put_beside(old, now)
        elif old.provenance and now.provenance:
            outcome = _outcome(old, now, old.provenance, now.provenance, others)
            met.count(key_of(old), outcome, old.provenance.model)
    if refused := met.counts["refused"]:
        counts = ", ".join(f"{count:,} by {name}" for name, count in refused.most_common())
        raise UsageError(
            f"{where}: another judge graded some of its pairs in {dataset.path} ({counts}); "
            "--replace puts the grades of the file in their place, --mix lets these stand and "
            "takes the others of the file; nothing was taken in"
        )
    for pair in met.kept:
        del new[pair]
    return met


def _outcome(
    old: Judgment, now: Judgment, by: Provenance, by_now: Provenance, others: OtherJudges
) -> _Outcome:
    """Return what becomes of a judge's grade where a file brings one of a judge."""
    if _is_same(by, by_now):
        return "same" if old.grade == now.grade else "replaced"
    if by.kind != "llm":
        return "replaced"
    if by_now.kind != "llm":
        return "kept"
    return _OUTCOMES[others]


def _is_same(one: Provenance, other: Provenance) -> bool:
    """Whether two names are of one judge; a file may tell no more of it than its model."""
    if one.prompt_sha256 and other.prompt_sha256:
        ways = (one.prompt_sha256, one.protocol), (other.prompt_sha256, other.protocol)
        return one.model == other.model and ways[0] == ways[1]
    return one.model == other.model
