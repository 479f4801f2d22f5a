"""Sweeps: which chunk size, overlap, splitter and retriever find most evidence."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, Unpack

from ragforge.api.call import SWEEP, Handle, begin, part_of
from ragforge.api.keywords import SweepKeywords
from ragforge.api.results import Result, shown_html
from ragforge.api.sources import AnyRetriever, AnySystem, Documents, as_documents
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.sweep import (
    ConfigurationResult,
    JudgedSweep,
    SweepForecast,
    SweepReport,
)
from ragforge.evaluating.sweep_answers import SweepAnswers
from ragforge.files.atomic import write_whole
from ragforge.pipeline.job import Mode
from ragforge.pipeline.sweep.finals import Answering
from ragforge.pipeline.sweep.judged import Judging
from ragforge.pipeline.sweep.plan import OVERLAPS, RETRIEVERS, SIZES, SPLITTERS, TOKENS, sweep_plan
from ragforge.pipeline.sweep.sweeping import forecast_sweep, sweep_dataset
from ragforge.report.sweep import (
    forecast_json,
    forecast_text,
    sweep_document,
    sweep_json,
    sweep_text,
    verdict,
)
from ragforge.report.sweep_cells import configuration_json

AnySplitter: TypeAlias = Any
"""The name of a splitter, a function, or an object or class of a framework's text splitters."""
Numbers: TypeAlias = int | str | Sequence[int | str]
"""One or several; overlaps may be shares such as `20%`."""
_FORMS = (".html", ".svg", ".png", ".json")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Swept(Result):
    """What a sweep found.

    Args:
        report: All results; None after a dry run.
        forecast: What would be done; None but after a dry run.
        notes: What was told on the way.
    """

    report: SweepReport | None = None
    forecast: SweepForecast | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def best(self) -> ConfigurationResult | None:
        """The configuration with the greatest mean; read it with `not_told_apart`."""
        return None if self.report is None else self.report.best

    @property
    def not_told_apart(self) -> tuple[ConfigurationResult, ...]:
        """The configurations that may be the best as well."""
        return () if self.report is None else self.report.ties

    @property
    def verdict(self) -> str:
        """The best and what is not told apart from it, in a sentence; "" after a dry run."""
        return "" if self.report is None else verdict(self.report)

    @property
    def answers(self) -> SweepAnswers | None:
        """What the system answered, best first; None where none was asked."""
        return None if self.report is None else self.report.answers

    @property
    def judged(self) -> JudgedSweep | None:
        """Which configurations may be the best by a judge; None where none was asked."""
        return None if self.report is None else self.report.judged

    @property
    def failed(self) -> dict[str, str]:
        """Configurations that could not be ranked, with the reason."""
        found = self.report or self.forecast
        return {item.name: why for item, why in found.failed} if found else {}

    def write(self, path: str | PathLike[str]) -> Path:
        """Write a page (.html), its picture (.svg, .png) or values (.json), and return the path.

        Raises:
            UsageError: The name ends in none of these, this was a dry run, or PNG cannot be drawn.
            DataError: The file cannot be written.
        """
        from ragforge.pipeline.plotting import write_picture
        from ragforge.report.page.sweep import sweep_page, sweep_picture

        out = Path(path)
        check_out(out)
        if self.report is None:
            raise UsageError(f"{out}: a dry run has nothing to write")
        suffix = out.suffix.lower()
        if suffix == ".json":
            import json

            text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
            write_whole(out, [text, "\n"])
        elif suffix == ".html":
            write_whole(out, [sweep_page(self.report)])
        else:
            write_picture(out, sweep_picture(self.report))
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge sweep --json` prints."""
        if self.report is not None:
            return sweep_json(self.report)
        return forecast_json(self.forecast) if self.forecast else {}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each configuration and each budget or cutoff."""
        if self.report is not None:
            return [row for item in self.report.results for row in _rows(item)]
        listed = self.forecast.configurations if self.forecast else ()
        return [{**configuration_json(item), "chunks": n} for item, n in listed]

    def table(self) -> str:
        """Return the best, what is not told apart from it, and the tables, as text."""
        if self.report is not None:
            return sweep_text(self.report)
        return forecast_text(self.forecast) if self.forecast else ""

    def _repr_html_(self) -> str:
        if self.report is None:
            return shown_html(preformatted=self.table())
        from ragforge.evaluating.formatting import Table

        told = sweep_document(self.report)
        tables = [block for block in told.blocks if isinstance(block, Table)]
        return shown_html(head=told.lead, tables=tables[:1])


def _rows(item: ConfigurationResult) -> Iterator[dict[str, Any]]:
    for top in item.tops:
        row: dict[str, Any] = {
            **configuration_json(item.configuration),
            "chunks": item.ranked.n_chunks,
            "tokens": top.top.tokens,
            "k": top.top.cutoff,
            "prompt_tokens": top.prompt_tokens,
            "is_worse": item.is_worse,
        }
        for name, value in top.values.items():
            short = name.partition("(")[0].partition("@")[0]
            row |= {short: value.mean, f"{short}_low": value.low, f"{short}_high": value.high}
        yield row


async def sweep(
    handle: Handle,
    *,
    sizes: Numbers = SIZES,
    overlaps: Numbers = OVERLAPS,
    splitters: AnySplitter | Sequence[AnySplitter] = SPLITTERS,
    retrievers: AnyRetriever | Sequence[AnyRetriever] = RETRIEVERS,
    k: Numbers = (),
    tokens: Numbers = TOKENS,
    decide_by: str = "",
    documents: Documents | None = None,
    system: AnySystem | None = None,
    answer_top: int | None = None,
    again: bool = False,
    single_call: bool = False,
    judge_as_needed: bool = False,
    least_grade: int = 2,
    out: str | PathLike[str] | None = None,
    processes: int | None = None,
    dry_run: bool = False,
    **settings: Unpack[SweepKeywords],
) -> Swept:
    """Try chunk sizes, overlaps, splitters and retrievers on the queries, by where quotes stand.

    What was ranked is kept in the set, but for splitters and retrievers that are objects: the same
    call goes on where it stopped, and another size adds to what is there.

    Args:
        handle: The set; its queries need evidence.
        sizes: Characters of a chunk.
        overlaps: Characters that neighbours share, or shares of the size such as "20%".
        splitters: `headings`, `recursive`, `sentences`, `package.module:attribute`, a function
            `f(text)`, or a text splitter. A function or class is told size and overlap where it has
            parameters `chunk_size` (or max_chars, size) and `chunk_overlap` (or overlap).
        retrievers: Names as for `retrieve`, no addresses; or classes that take the chunks.
        k: Texts from the top, beside the budgets.
        tokens: Budgets of a prompt.
        decide_by: A measure of evidence; EvidenceR within the middle budget where "".
        documents: Files, folders, origins, or texts by name; those that the chunks of the set were
            cut from where None.
        system: Answers from what the best retrieved, and is graded: "model" (the model of `model=`,
            with a prompt of ours), a function `f(query, contexts)`, plain or async, an address that
            takes {"query", "contexts"}, or `package.module:attribute`. None asks nobody.
        answer_top: Configurations answered for: the first by evidence. The best and what is not
            told apart from it, 5 at most, where None.
        again: Ask the system what it answered before, too.
        single_call: Grade each answer as a whole, in one call, without drawing facts first.
        judge_as_needed: Have the model grade retrieved texts, only until it is told of which
            configurations prompts hold an answer most often; see `Swept.judged`.
        least_grade: Of a text that answers: 2 for a part of the answer, 3 for all of it.
        out: A page (.html), its picture (.svg, .png) or the values (.json).
        processes: That rank by words. One a core in a notebook, and one in a script, whose main
            module each process would run again: guard it by `if __name__ == "__main__"`.
        dry_run: Count configurations, chunks, calls and money; see `Swept.forecast`.
        settings: model, embedding_model, max_cost_usd and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: Nothing is to be tried, a number cannot be taken, nothing could be ranked, or
            the system retrieves by itself.
        DataError: The documents cannot be read, or no query has evidence that stands in them.
        EndpointError, BudgetError: It was stopped; what was ranked is kept.
    """
    # The command has words, and needs no jobs of others.
    from ragforge.api.jobs import spec_of, specs_of

    check_out(None if out is None else Path(out))
    if processes is not None and processes < 1:
        raise UsageError(f"processes {processes}: expected a number from 1")
    plan = sweep_plan(
        sizes=_texts(sizes),
        overlaps=_texts(overlaps),
        splitters=specs_of(_several(splitters)),
        retrievers=specs_of(_several(retrievers)),
        cutoffs=_texts(k),
        tokens=_texts(tokens),
        decide_by=decide_by,
    )
    if system is None and (answer_top is not None or again or single_call):
        raise UsageError("answer_top, again and single_call go with system")
    answering = None if system is None else Answering(spec_of(system), answer_top, again=again)
    judging = Judging(least_grade) if judge_as_needed else None
    mode = Mode(dry_run=dry_run, single_call=single_call)
    with (
        begin(SWEEP, settings, handle.keywords, mode=mode) as call,
        as_documents(documents) as named,
    ):
        dataset = part_of(handle)
        if dry_run:
            forecast = await forecast_sweep(
                dataset, plan, named, call.job, answering=answering, judging=judging
            )
            return Swept(forecast=forecast, notes=tuple(call.notes))
        n_processes = processes or (1 if _runs_script() else n_cores())
        report = await sweep_dataset(
            dataset,
            plan,
            named,
            call.job,
            n_processes=n_processes,
            answering=answering,
            judging=judging,
        )
        found = Swept(report, notes=tuple(call.notes))
        if out is not None:
            found.write(out)
        return found


def check_out(out: Path | None) -> None:
    """Check that a result can be written under a name.

    Raises:
        UsageError: It ends otherwise.
    """
    if out is not None and out.suffix.lower() not in _FORMS:
        raise UsageError(f"{out}: expected a name that ends in {', '.join(_FORMS)}")


def n_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def split_list(texts: Iterable[str]) -> list[str]:
    """Return the items of lists between commas."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def _runs_script() -> bool:
    return hasattr(sys.modules.get("__main__"), "__file__")


def _several(given: object) -> list[Any]:
    if isinstance(given, str):
        return split_list([given])
    return list(given) if isinstance(given, list | tuple) else [given]


def _texts(given: Numbers) -> list[str]:
    return split_list(map(str, _several(given)))
