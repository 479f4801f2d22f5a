"""Turn what was measured into rows, and check that the tools computed the same."""

from collections.abc import Iterable, Iterator
from typing import Final

from cases import Case
from measuring import By, Sample, Samples

COLUMNS: Final = (
    "case",
    "ragforge",
    "vs pytrec_eval-terrier",
    "vs ir_measures",
    "vs ranx (dict / classes)",
    "vs trec_eval (C)",
)
PEERS: Final = (
    ("pytrec_eval",),
    ("ir_measures",),
    ("ranx-dict", "ranx-classes"),
    ("trec_eval",),
)
"""Tools by column, those behind ragforge's."""
OWN: Final = {
    "ragforge": "",
    "ragforge-bare": ", numpy not loaded",
    "ragforge-1-thread": ", one thread",
    "ragforge-2-threads": ", two threads",
    "ragforge-api": ", API",
    "ragforge-command": ", command line",
}
ABSENT: Final = "-"
FAILED: Final = "failed"
NOT_YET: Final = "not yet"
MISSING_FEATURE: Final = ("TypeError", "AttributeError")
"""How the version of ragforge that is measured says that it has no such call."""
LEAST_MIB: Final = 1.0
"""Less than this is taken for this: allocators take memory in pieces of about that size."""
LEAST_TOLD_MIB: Final = 4.0
"""Where no tool of two takes more, their memory is not compared."""
BUSY: Final = 1.25
"""Above this ratio of wall to CPU time a tool has waited for a core."""
TOLERANCE: Final = 1e-9
"""Between tools that give means at full length; they add in different orders."""
TREC_EVAL_TOLERANCE: Final = 0.5e-4 + TOLERANCE


def rows(case: Case, samples: Samples, by: By) -> Iterator[list[str]]:
    """Yield the row of every way in which ragforge was called."""
    own = [tool for tool in samples if tool in OWN]
    for tool in own or ["ragforge"]:
        sample = samples.get(tool, Sample(failed=ABSENT))
        cells = [" / ".join(_cells(case, by, sample, map(samples.get, names))) for names in PEERS]
        yield [case.title + OWN[tool], _own_cell(case, by, sample), *cells]


def _own_cell(case: Case, by: By, sample: Sample) -> str:
    if sample.failed:
        if sample.failed == ABSENT:
            return ABSENT
        return NOT_YET if sample.failed.startswith(MISSING_FEATURE) else FAILED
    time, least = duration(sample.time_s(by)), duration(sample.time_s("least"))
    return f"{time} (min {least}){_memory(case, sample)}"


def _memory(case: Case, sample: Sample) -> str:
    if sample.memory_mib is None:
        return ""
    added = "+" if case.kind in ("dicts", "rescore") else ""
    return f", {added}{sample.memory_mib:.0f} MiB"


def _memory_ratio(own: Sample, peer: Sample) -> str:
    if own.memory_mib is None or peer.memory_mib is None:
        return ""
    if max(own.memory_mib, peer.memory_mib) < LEAST_TOLD_MIB:
        return ""
    more_than = ">" if own.memory_mib < LEAST_MIB else ""
    return f", memory {more_than}{times(peer.memory_mib / max(own.memory_mib, LEAST_MIB))}"


def _cells(case: Case, by: By, own: Sample, peers: Iterable[Sample | None]) -> Iterator[str]:
    for sample in peers:
        if sample is None:
            yield ABSENT
        elif sample.failed:
            yield FAILED
        elif own.failed:
            yield f"{duration(sample.time_s(by))}{_memory(case, sample)}"
        else:
            time_s = sample.time_s(by)
            ratio = f"{times(time_s / own.time_s(by))} ({duration(time_s)})"
            yield f"{ratio}{_memory_ratio(own, sample)}"


def notes(case: Case, samples: Samples) -> Iterator[str]:
    """Yield what failed and why, how ranx differs where scores are tied, doubts on times."""
    for tool, sample in samples.items():
        if sample.failed:
            yield f"{tool}: {sample.failed}"
        elif _orders_ties_otherwise(case, tool):
            reference = _reference(samples)
            furthest = max(abs(sample.means[name] - reference[name]) for name in sample.means)
            yield f"{tool} orders ties otherwise: its means differ by up to {furthest:.4f}"
    waits = [s.time_s("median") / s.time_s("cpu") for s in samples.values() if not s.failed]
    if max(waits, default=1.0) > BUSY:
        yield f"busy machine: wall time is up to {max(waits):.1f} times CPU time; try --by cpu"


def disagreements(case: Case, samples: Samples) -> Iterator[str]:
    """Yield a text for every mean that differs from the first tool's."""
    reference = _reference(samples)
    for tool, sample in samples.items():
        if sample.failed or _orders_ties_otherwise(case, tool):
            continue
        tolerance = TREC_EVAL_TOLERANCE if tool == "trec_eval" else TOLERANCE
        if sample.means.keys() != reference.keys():
            yield f"{tool}: computed {sorted(sample.means)}, expected {sorted(reference)}"
            continue
        for name, mean in sample.means.items():
            if abs(mean - reference[name]) > tolerance:
                yield f"{tool}: {name} is {mean!r}, expected {reference[name]!r}"


def _reference(samples: Samples) -> dict[str, float]:
    """Return the means of the first tool that has them at full length."""
    exact = [s.means for tool, s in samples.items() if not s.failed and tool != "trec_eval"]
    return exact[0] if exact else next((s.means for s in samples.values() if s.means), {})


def _orders_ties_otherwise(case: Case, tool: str) -> bool:
    return case.shape.scores != "distinct" and tool.startswith("ranx")


def duration(seconds: float) -> str:
    """Return a time with a unit that keeps it short: `0.85 ms`, `2.63 s`."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1000:.2f} ms" if seconds < 0.01 else f"{seconds * 1000:.0f} ms"


def times(ratio: float) -> str:
    """Return a ratio with two digits or more: `0.85x`, `2.6x`, `33x`."""
    if ratio >= 10:
        return f"{ratio:.0f}x"
    return f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"
