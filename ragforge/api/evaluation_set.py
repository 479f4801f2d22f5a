"""A set to work with: all that the commands do with `--dataset`, as methods.

Each call opens the files anew, so that a set may be worked on by several programs. What a call
takes and returns is told where it is defined: in `jobs`, `measuring` and `contents`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

from ragforge.api import contents, jobs, measuring
from ragforge.api.call import check, every_keyword
from ragforge.api.handle import Handle, dataset_of
from ragforge.api.keywords import EveryKeyword
from ragforge.api.results import shown_html
from ragforge.api.running import awaited, each_awaited, plainly
from ragforge.files.manifest import Manifest
from ragforge.files.set.query_selection import Wanted


@dataclass(frozen=True, slots=True)
class AsyncEvaluationSet(Handle):
    """The calls of an `EvaluationSet` to be awaited; iterators are async ones."""

    retrieve = jobs.retrieve
    judge = jobs.judge
    judge_labels = jobs.judge_labels
    audit_judge = jobs.audit_judge
    complete = jobs.complete
    answer = jobs.answer
    grade_answers = jobs.grade_answers
    ground = jobs.ground
    refresh = jobs.refresh

    evaluate = awaited(measuring.evaluate)
    compare = awaited(measuring.compare)
    compare_answers = awaited(measuring.compare_answers)
    gate = awaited(measuring.gate)
    report = awaited(measuring.report)
    worst = awaited(measuring.worst)
    history = awaited(measuring.history)
    diff = awaited(measuring.diff)

    queries = each_awaited(contents.queries)
    judgments = each_awaited(contents.judgments)
    chunks = each_awaited(contents.chunks)
    failures = each_awaited(contents.failures)
    rankings = each_awaited(contents.rankings)
    answers = each_awaited(contents.answers)
    answer_grades = each_awaited(contents.answer_grades)
    list_runs = awaited(contents.list_runs)
    remove_run = awaited(contents.remove_run)
    rename_run = awaited(contents.rename_run)
    add_queries = awaited(contents.add_queries)
    add_logs = awaited(contents.add_logs)
    export = awaited(contents.export)
    validate = awaited(contents.validate)
    accept_edits = awaited(contents.accept_edits)
    export_review = awaited(contents.export_review)
    import_review = awaited(contents.import_review)
    roll_back = awaited(contents.roll_back)


@dataclass(frozen=True, slots=True)
class EvaluationSet(Handle):
    """A set of queries with ground truth: a directory, and all that can be done with it.

    Make one with `rf.generate`, `rf.open`, `rf.from_queries`, `rf.from_csv` or `rf.from_beir`.
    """

    retrieve = plainly(jobs.retrieve)
    judge = plainly(jobs.judge)
    judge_labels = plainly(jobs.judge_labels)
    audit_judge = plainly(jobs.audit_judge)
    complete = plainly(jobs.complete)
    answer = plainly(jobs.answer)
    grade_answers = plainly(jobs.grade_answers)
    ground = plainly(jobs.ground)
    refresh = plainly(jobs.refresh)

    evaluate = measuring.evaluate
    compare = measuring.compare
    compare_answers = measuring.compare_answers
    gate = measuring.gate
    report = measuring.report
    worst = measuring.worst
    history = measuring.history
    diff = measuring.diff

    queries = contents.queries
    judgments = contents.judgments
    chunks = contents.chunks
    failures = contents.failures
    rankings = contents.rankings
    answers = contents.answers
    answer_grades = contents.answer_grades
    list_runs = contents.list_runs
    remove_run = contents.remove_run
    rename_run = contents.rename_run
    add_queries = contents.add_queries
    add_logs = contents.add_logs
    export = contents.export
    validate = contents.validate
    accept_edits = contents.accept_edits
    export_review = contents.export_review
    import_review = contents.import_review
    roll_back = contents.roll_back

    @property
    def aio(self) -> AsyncEvaluationSet:
        """The same calls to be awaited."""
        return AsyncEvaluationSet(self.path, self.keywords, self.wanted)

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs."""
        return tuple(dataset_of(self).run_names())

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems that have answers."""
        return tuple(dataset_of(self).answer_names())

    @property
    def manifest(self) -> Manifest:
        """What it was made from, digests, models, prompts, and what was spent."""
        return dataset_of(self).manifest

    def with_settings(self, **settings: Unpack[EveryKeyword]) -> "EvaluationSet":
        """Return the set with keywords that hold for all calls that take them.

        Raises:
            TypeError: No call takes such a keyword.
        """
        check("with_settings", settings, every_keyword())
        given: Mapping[str, Any] = settings
        return replace(self, keywords={**self.keywords, **given})

    def part(
        self,
        sample: int | None = None,
        *,
        by: str = "",
        split: Literal["dev", "test"] | None = None,
        seed: int = 0,
    ) -> "EvaluationSet":
        """Return the set with a part of its queries to be retrieved, answered and measured.

        What is made for a part carries that. Means of a sample are those of the whole set.

        Args:
            sample: So many, drawn from each stratum in proportion; all where None.
            by: What strata are made by, such as difficulty; the category, else the difficulty, as
                far as queries have it, where "".
            split: Only those of this split.
            seed: Equal seeds draw alike.
        """
        return replace(self, wanted=Wanted(split, sample, seed, by))

    def _repr_html_(self) -> str:
        return shown_html(head=[f"evaluation set {self.path}", _counts(self)])


def _counts(found: EvaluationSet) -> str:
    """Return what is in a set, in words."""
    manifest = found.manifest
    records = {
        name.removesuffix(".jsonl"): entry.records
        for name, entry in manifest.files.items()
        if name in ("queries.jsonl", "judgments.jsonl", "chunks.jsonl")
    }
    counts = ", ".join(f"{count} {name}" for name, count in records.items())
    runs = ", ".join(found.runs) or "none"
    return f"version {manifest.version}: {counts}; runs: {runs}"
