"""Who gave the grades behind numbers: in one line, as JSON, and when they name no winner."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from ragforge.deferred import dataclass, pattern
from ragforge.evaluating.formatting import one_line, plural
from ragforge.records import Calibration, Grader, MixedGrades, Provenance
from ragforge.records.extra_body import extra_body_in
from ragforge.records.judgments import JUDGED, LOCAL_MODEL_JUDGE, GradeOrigin, origin

if TYPE_CHECKING:
    from ragforge.evaluating.judgments import Judge
    from ragforge.files.formats.qrels import JudgedQrels
    from ragforge.files.set.canaries import Canaries

_KINDS: Final = {
    "llm": "language model",
    "human": "person",
    "rule": "rule",
    "file": "grades of a file",
}

BASELINE: Final = "offline baseline"
ALWAYS_0: Final = "always 0"

_BATCHES: Final = pattern(r"batch (\d+) x (\d+)")
_VOTES: Final = pattern(r"votes (\d+) at ([\d.]+)")
_USUAL_PROMPTS: Final = ("", "judge_relevance", "judge_relevance_batch")

UNCALIBRATED: Final = "uncalibrated"
"""Said of numbers by a language model whose errors no labels of people correct."""
NOT_RECORDED: Final = "who graded is not recorded"
_NAME_CHARS: Final = 60
_MOST_NAMED: Final = 8
"""In the line; a file may name one for each grade."""
_UNRECORDED: Final = GradeOrigin("")


def judge_text(judge: Provenance) -> str:
    """Return a judge in a few words: model, prompt, and how it was asked."""
    if judge.kind == "baseline":
        return "the offline baseline"
    if not judge.model:
        return "a judge that is not recorded"
    prompt = f" with {one_line(judge.prompt)} {judge.prompt_sha256[:8]}" if judge.prompt else ""
    how = f" ({one_line(judge.protocol)})" if judge.protocol else ""
    return f"{one_line(judge.model)}{prompt}{how}"


def is_in_batches(judge: Provenance) -> bool:
    """Whether a judge is shown several texts at once, where there are several."""
    return _BATCHES.search(judge.protocol) is not None


def judges_text(judges: Iterable[Provenance]) -> str:
    """Return judges in a few words, with `and` before the last."""
    *others, last = map(judge_text, judges)
    return f"{', '.join(others)} and {last}" if others else last


def missing_grades_text(mixed: MixedGrades, command: str) -> str:
    """Return a sentence on the missing grades, with the command that buys them."""
    gone = f" ({mixed.n_gone:,} of them had a grade that is gone)" if mixed.n_gone else ""
    are = "is" if mixed.n_pairs == 1 else "are"
    return (
        f"{plural(mixed.n_pairs, 'pair')} {are} without a grade of {judge_text(mixed.ask)}{gone}; "
        f"`{command}` buys them, and tells the price with --dry-run"
    )


def judge_command(
    ask: Provenance, dataset: str, runs: Sequence[str] = (), *, n_earlier: int = 0, depth: int = 0
) -> str:
    """Return the command that lets a judge grade what it has not graded.

    Args:
        ask: The judge.
        dataset: Where the set is.
        runs: Whose rankings are needed.
        n_earlier: Earlier rankings of each that are needed too.
        depth: Ranks that are needed, where they are more than is usual.
    """
    words = ["ragforge", "judge", "--dataset", dataset]
    words += [word for run in runs for word in ("--run", run)]
    if n_earlier:
        words += ["--earlier-rankings", *([str(n_earlier)] if n_earlier > 1 else [])]
    words += ["--depth", str(depth)] if depth else []
    words.append("--again")
    words += ["--panel", ask.model.replace("+", ",")] if "+" in ask.model else _model(ask)
    if batches := _BATCHES.search(ask.protocol):
        words += ["--batch", batches[1], "--permutations", batches[2]]
    if votes := _VOTES.search(ask.protocol):
        words += ["--votes", votes[1], "--temperature", votes[2]]
    if "logprobs" in ask.protocol:
        words += ["--logprobs", "on"]
    if "examples" in ask.protocol:
        words += ["--examples", "FILE"]
    if extra_body_in(ask.protocol):
        words += ["--extra-body", "BODY"]
    if ask.prompt not in _USUAL_PROMPTS:
        words += ["--prompt", ask.prompt]
    return one_line(shlex.join(words), 1000)


def judge_name(judge: "Judge") -> str:
    """Return who judged in a few words."""
    if judge.is_baseline:
        return f"baseline ({judge.model or 'offline'})"
    if judge.is_mock:
        return f"ragforge mock in the place of {judge.model}"
    kind = _KINDS.get(judge.kind, "judge not recorded")
    since = f", {judge.since}" if judge.since else ""
    return f"{judge.model} ({kind}{since})" if judge.model else kind


def _model(ask: Provenance) -> list[str]:
    if ask.kind == "baseline":
        is_local = ask.model.startswith(LOCAL_MODEL_JUDGE)
        return ["--model", "offline", "--offline-model", "minilm" if is_local else "none"]
    return ["--model", ask.model or "MODEL"]


@dataclass(frozen=True, slots=True)
class GradedBy:
    """How many grades one origin gave."""

    origin: GradeOrigin
    n: int
    drifted_at: str = ""
    """When a canary found that this judge is another one than it was, ISO 8601; "" where none did.
    """
    signs: tuple[str, ...] = ()
    """By which."""


@dataclass(frozen=True, slots=True)
class SilentGrades:
    """Grades that say nothing about quality, among those that a number rests on."""

    n_words: int = 0
    """Of the offline baseline: shared words."""
    n_cosines: int = 0
    """Of the offline baseline: cosines of a local model."""
    n_made_up: int = 0
    """Of `ragforge mock`."""
    n: int = 0
    """All grades it rests on."""

    @property
    def any(self) -> bool:
        """Whether there is one; it is enough for no winner to be named."""
        return bool(self.n_words or self.n_cosines or self.n_made_up)

    @property
    def basis(self) -> str:
        """What the number rests on, in words: `by shared words`."""
        kinds = ["shared words"] if self.n_words else []
        kinds += ["cosines of a local model"] if self.n_cosines else []
        kinds += ["what ragforge mock made up"] if self.n_made_up else []
        n = self.n_words + self.n_cosines + self.n_made_up
        part = f"in part ({n:,} of {self.n:,} grades) " if n < self.n else ""
        return f"{part}by {' and '.join(kinds)}"


def count_silent(origins: Iterable[GradeOrigin]) -> SilentGrades:
    """Count the grades that say nothing, one origin a grade."""
    counts = Counter(origins)
    return SilentGrades(
        n_words=sum(n for item, n in counts.items() if item.is_shared_words),
        n_cosines=sum(n for item, n in counts.items() if item.is_cosine),
        n_made_up=sum(n for item, n in counts.items() if item.is_made_up),
        n=sum(counts.values()),
    )


def silent_of(graders: Iterable[Grader]) -> SilentGrades:
    """Count the grades that say nothing in an evaluation of a history or a baseline.

    A trend, or a difference of two evaluations, can be told only where neither has `any`.
    """
    listed = [grader for grader in graders if grader.count]
    rules = [grader for grader in listed if grader.kind == "baseline"]
    n_rules = sum(g.count - g.n_evidence for g in rules)
    n_cosines = sum(g.count - g.n_evidence for g in rules if g.model.startswith(LOCAL_MODEL_JUDGE))
    return SilentGrades(
        n_words=n_rules - n_cosines,
        n_cosines=n_cosines,
        n_made_up=sum(g.count for g in listed if g.kind == "mock"),
        n=sum(g.count for g in listed),
    )


def why_unknown(silent: SilentGrades, ahead: str) -> str:
    """Return why no winner is named, "" where nothing forbids it.

    Args:
        silent: Among the grades that the difference rests on.
        ahead: The name of the one that these numbers put first; "" where they put neither.
    """
    if not silent.any:
        return ""
    return f"{silent.basis}, {ahead or 'neither'} ranks higher; this says nothing about quality"


def count_grades(origins: Iterable[GradeOrigin]) -> tuple[GradedBy, ...]:
    """Return who graded, one origin a grade; who gave most first."""
    counts = Counter(origins).items()
    entries = (GradedBy(item, n) for item, n in counts if n)
    return tuple(sorted(entries, key=_order))


def count_file_grades(
    judged: "JudgedQrels", others: Iterable[Mapping[str, Mapping[str, int | None]]] = ()
) -> tuple[GradedBy, ...]:
    """Return who graded the pairs of a file; () where it does not say.

    Args:
        judged: The file.
        others: Grades of texts beside it, which runs of other texts than chunks go by.
    """
    if not judged.origins:
        return ()
    beside = {
        (query_id, chunk_id)
        for of in others
        for query_id, grades in of.items()
        for chunk_id, grade in grades.items()
        if grade is not None and chunk_id not in judged.grades.get(query_id, {})
    }
    of_file = (
        (query_id, chunk_id)
        for query_id, grades in judged.grades.items()
        for chunk_id, grade in grades.items()
        if grade is not None
    )
    return count_grades(judged.origins.get(pair, _UNRECORDED) for pair in chain(of_file, beside))


def grades_of(judges: Iterable["Judge"]) -> tuple[GradedBy, ...]:
    """Return who graded among judges, without records that failed; who gave most first."""
    counts: Counter[GradeOrigin] = Counter()
    for judge in judges:
        source = "human" if judge.kind == "human" else ""
        n = judge.count - judge.n_failed - judge.n_evidence
        counts[origin(judge.kind, judge.model, judge.prompt, source, judge.since)] += n
        counts[origin(judge.kind, judge.model, judge.prompt, "evidence")] += judge.n_evidence
    return tuple(sorted((GradedBy(item, n) for item, n in counts.items() if n > 0), key=_order))


def mark_drift(entries: Iterable[GradedBy], canaries: "Canaries") -> tuple[GradedBy, ...]:
    """Return who graded, with the canary by which a judge is not any more what it was.

    It is marked as long as its last canary says so, and as long as grades of before a drift stand
    beside later ones, whatever canaries say.

    Args:
        entries: Who did.
        canaries: Of the set.
    """
    entries = tuple(entries)
    last = {(each.judge.model, each.judge.prompt): each for each in canaries.drifted()}
    by_name = {each.since: each for each in canaries.all if each.signs}
    sides: dict[tuple[str, str], set[str]] = {}
    for item in entries:
        if _can_drift(item.origin):
            sides.setdefault((item.origin.model, item.origin.prompt), set()).add(item.origin.since)
    found = []
    for item in entries:
        judge = (item.origin.model, item.origin.prompt)
        if _can_drift(item.origin):
            since = sides[judge]
            canary = last.get(judge)
            if canary is None and len(since) > 1:
                canary = by_name.get(max(since))
            if canary is not None:
                item = replace(item, drifted_at=canary.at, signs=canary.signs)
            elif len(since) > 1:  # The ledger is gone; the grades still say when.
                item = replace(item, drifted_at=max(since).split()[2])
        found.append(item)
    return tuple(found)


def _can_drift(by: GradeOrigin) -> bool:
    return by.kind == "llm" and by.source == JUDGED


def drift_text(entries: Iterable[GradedBy]) -> str:
    """Return in words which judges drifted and what to do, in a clause; "" where none did."""
    found = {}
    for item in entries:
        if item.drifted_at:
            signs = f" ({', '.join(item.signs)})" if item.signs else ""
            name = one_line(item.origin.model, _NAME_CHARS)
            found[item.origin.model] = f"{name} by its canary of {item.drifted_at[:10]}{signs}"
    if not found:
        return ""
    judges = ", ".join(found.values())
    from ragforge.files.set.canaries import REMEDY  # For the few sets where a judge drifted.

    return f"JUDGE DRIFTED: {judges}: grades given since are of another judge; {REMEDY}"


@dataclass(frozen=True, slots=True)
class Correction:
    """What labels of people do to the measures that are shown."""

    n_labels: int
    measures: tuple[str, ...]
    """Those that they correct; a calibration may refuse, or be of others."""
    is_partial: bool
    """Whether others stand beside them."""

    @classmethod
    def of(
        cls, calibration: Calibration | None, corrected: Iterable[str], shown: Iterable[str]
    ) -> "Correction | None":
        """Return what a calibration does to some measures; None for none.

        Args:
            calibration: None where none is used.
            corrected: The measures with a corrected number.
            shown: All.
        """
        if calibration is None:
            return None
        measures = tuple(dict.fromkeys(corrected))
        return cls(calibration.labels.n_used, measures, not {*shown} <= {*measures})

    def __str__(self) -> str:
        labels = f"corrected by {plural(self.n_labels, 'label')} of people"
        if not self.measures:
            return UNCALIBRATED
        if not self.is_partial:
            return labels
        return f"{', '.join(self.measures)} {labels}, the rest {UNCALIBRATED}"


def graded_line(entries: Iterable[GradedBy], correction: Correction | None = None) -> str:
    """Return in words who graded in one line: what a reader has to know before any number.

    A judge that drifted comes first, with what to do.

    Args:
        entries: Who did.
        correction: What labels of people do to the numbers; where a language model graded and
            there is none, they are uncalibrated.
    """
    listed = list(entries)
    if not any(item.origin.kind for item in listed):
        return NOT_RECORDED
    # Prompts of one model are one grader to a reader.
    counts: Counter[str] = Counter()
    for item in listed:
        counts[_named(item.origin)] += item.n
    named = counts.most_common()
    parts = [f"{name}: {n:,}" for name, n in named[:_MOST_NAMED]]
    others = named[_MOST_NAMED:]
    if others:
        parts.append(f"{len(others):,} others: {sum(n for _, n in others):,}")
    if correction is not None:
        parts.append(str(correction))
    elif any(item.origin.kind == "llm" and item.origin.source == JUDGED for item in listed):
        parts.append(UNCALIBRATED)
    drift = drift_text(listed)
    return f"{drift}; graded by {'; '.join(parts)}" if drift else f"graded by {'; '.join(parts)}"


def graders_text(entries: Iterable[GradedBy], judge: str) -> str:
    """Name who gave the grades of a decision that a judge was asked for, who gave most first.

    Args:
        entries: Who did; a judge is asked for those that people did not give.
        judge: Its name.
    """
    names = [
        _named(item.origin) if item.origin.source in ("human", "evidence") else one_line(judge, 60)
        for item in entries
    ]
    return " and ".join(dict.fromkeys(names)) or one_line(judge, 60)


def graded_json(entries: Iterable[GradedBy]) -> list[dict[str, object]]:
    """Return what stands under `graded_by`; `kind` is None where it is not recorded.

    `drifted_at` and `signs` are there where a canary found that the judge drifted, `since` where
    grades were given after a drift.
    """
    return [
        {
            "kind": item.origin.kind or None,
            "model": item.origin.model,
            "prompt": item.origin.prompt,
            "source": item.origin.source,
            **({"since": item.origin.since} if item.origin.since else {}),
            "n": item.n,
            **({"drifted_at": item.drifted_at, "signs": [*item.signs]} if item.drifted_at else {}),
        }
        for item in entries
    ]


def _named(item: GradeOrigin) -> str:
    model = one_line(item.model, _NAME_CHARS)
    if item.is_made_up:
        return f"ragforge mock in the place of {model}" if model else "ragforge mock"
    if item.source == "evidence":
        return f"quotes in queries by {model or 'people'}"
    if item.kind == "baseline":
        how = "a local model" if item.is_cosine else "shared words"
        return f"the offline baseline, {how} ({model})"
    if item.kind == "human":
        return f"people ({model})" if model else "people"
    kinds = {"llm": "language model", "rule": "rule", "file": "grades of a file"}
    since = f", {item.since}" if item.since else ""
    return f"{model} ({kinds[item.kind]}{since})" if item.kind in kinds else "not recorded"


def _order(item: GradedBy) -> tuple[int, str, str, str, str]:
    by = item.origin
    return -item.n, by.kind, by.model, by.prompt, f"{by.source} {by.since}"
