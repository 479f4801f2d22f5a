"""What a canary of a judge came to, as text, JSON and rows."""

from dataclasses import field
from typing import Any, Final

from ragforge.api.results import Estimate, Result
from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import number, plural, share, signed, with_ends
from ragforge.files.set.canaries import REMEDY
from ragforge.pipeline.judge.canaries import AT_FIRST, CanaryResult

_KAPPAS: Final = ("kappa", "quadratic kappa")
_IN_WORDS: Final = {
    "shift": "its grades moved to one side",
    "scatter": "its grades lie further from the first ones than its own noise",
    "failures": "more of its replies are no verdict",
}
ADVICE: Final = (
    "What to do: grades from now on are of another judge, and are not put beside those of before. "
    f"Name a version of the model that does not change, or {REMEDY}."
)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CanaryOutcome(Result):
    """Whether a judge still grades as it did.

    Args:
        found: What it came to.
        notes: What was told on the way.
    """

    found: CanaryResult
    notes: tuple[str, ...] = field(default=())

    @property
    def estimate(self) -> Estimate | None:
        """What a dry run counted; None in earnest."""
        return None if self.found.estimate is None else Estimate(self.found.estimate)

    @property
    def verdict(self) -> str:
        """`first`, `steady` or `drifted`."""
        if self.found.first is None:
            return "first"
        return "drifted" if self.found.has_drifted else "steady"

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge judge canary --json` prints."""
        found = self.found
        if found.canary is None or found.drift is None:
            return dict(found.estimate or {})
        drift, ends = found.drift, found.drift.interval
        return {
            "verdict": self.verdict,
            "signs": list(found.canary.signs),
            "number": found.canary.number,
            "canary_id": found.canary.canary_id,
            "first_id": found.canary.first_id,
            "judge": found.canary.judge.model_dump(mode="json"),
            "pairs": len(found.canary.pairs),
            "compared": drift.n_pairs,
            "queries": drift.n_queries,
            "same": drift.same,
            "one_off": drift.one_off,
            "more_off": drift.more_off,
            "noise": drift.noise,
            "shift": {
                "mean": drift.shift,
                "low": ends.low if ends else None,
                "high": ends.high if ends else None,
            },
            "p": found.canary.p,
            "failed_first": drift.n_failed_first,
            "failed_now": drift.n_failed_now,
            "left_out": found.canary.n_left_out,
            "answered_by": [each.model_dump() for each in found.canary.answered_by],
            "other_answerers": list(found.other_answerers),
            "agreement": self._agreement(),
            "stale_calibrations": list(found.stale),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each pair."""
        canary, first = self.found.canary, self.found.first
        before = {(old.query_id, old.chunk_id): old.grade for old in first.pairs} if first else {}
        return [
            {
                "query_id": each.query_id,
                "chunk_id": each.chunk_id,
                "people": each.people,
                "first": before.get((each.query_id, each.chunk_id), each.grade),
                "now": each.grade,
            }
            for each in (canary.pairs if canary else ())
        ]

    def table(self) -> str:
        """Return what the command prints: the verdict first."""
        if self.found.canary is None or self.found.drift is None:
            return Estimate(self.found.estimate or {}).table()
        return "\n".join([self._verdict_line(), *self._grade_lines(), *self._other_lines()])

    def _verdict_line(self) -> str:
        canary = self.found.canary
        assert canary is not None
        if self.found.first is None:
            return (
                f"first canary of {canary.judge.model}: {plural(len(canary.pairs), 'pair')} are "
                "kept; the same command holds the judge against them next time"
            )
        if not canary.signs:
            return f"steady: {canary.judge.model} grades as it did at {self.found.first.at[:10]}"
        signs = "; ".join(_IN_WORDS[sign] for sign in canary.signs)
        return (
            f"DRIFTED: {canary.judge.model} is not the judge of {self.found.first.at[:10]}: {signs}"
        )

    def _grade_lines(self) -> list[str]:
        drift, canary = self.found.drift, self.found.canary
        assert drift is not None
        assert canary is not None
        lines = []
        if self.found.first is None:
            lines.append(f"asked twice, it differs from itself on {share(drift.noise)} of them")
        else:
            ends = drift.interval
            tail = f" [{signed(ends.low, 2)}, {signed(ends.high, 2)}]" if ends else ""
            shift = "—" if drift.shift is None else f"{signed(drift.shift, 2)}{tail}"
            p = ", ".join(f"{name} {number(value)}" for name, value in canary.p.items())
            lines += [
                f"{plural(drift.n_pairs, 'pair')} of {plural(drift.n_queries, 'query', 'queries')}:"
                f" {drift.same} same, {drift.one_off} one off, {drift.more_off} two or more off; at"
                f" first it differed from itself on {share(drift.noise)}",
                f"grade now less the first: {shift} over queries; p of a judge that did not change:"
                f" {p} (alarm at 0.0167)",
            ]
        if drift.n_failed_first or drift.n_failed_now:
            lines.append(
                f"without a grade: {drift.n_failed_first} at first, {drift.n_failed_now} now; they "
                "are in no figure of grades"
            )
        return lines

    def _other_lines(self) -> list[str]:
        found, lines = self.found, []
        for name, graders in self._agreement().items():
            shown = ", ".join(
                f"{with_ends(each['value'], each['low'], each['high'], 2)} {who}"
                for who, each in graders.items()
            )
            lines.append(f"{name} with people: {shown}")
        if found.other_answerers:
            lines.append(
                f"answered by {', '.join(found.other_answerers)}, who did not answer at first"
            )
        if found.has_drifted:
            lines.append(ADVICE)
        if found.stale:
            lines.append(
                f"stale: calibration {', '.join(found.stale)} was made before the judge drifted"
            )
        return lines

    def _agreement(self) -> dict[str, dict[str, Any]]:
        agreement = self.found.agreement
        if agreement is None:
            return {}
        told: dict[str, dict[str, Any]] = {}
        for name in _KAPPAS:
            values = {
                AT_FIRST if self.found.first is None else grader.name: grader.figures[name]
                for grader in agreement.graders
            }
            told[name] = {
                who: {"value": of.value, "low": of.low, "high": of.high}
                for who, of in values.items()
            }
        return told
