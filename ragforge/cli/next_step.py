"""The line behind a command that says what to do next: one that can be copied and run as it is.

It stands on stderr as `next: COMMAND  # why`, and nowhere with --json, --quiet and --observer.
"""

import argparse
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.api.progress import say
from ragforge.config import Settings, each_setting, load
from ragforge.errors import RagforgeError

if TYPE_CHECKING:
    from ragforge.api.compared import RunComparison
    from ragforge.api.sweeping import Swept
    from ragforge.evaluating.comparison import ComparisonReport
    from ragforge.evaluating.gate import Verdict
    from ragforge.evaluating.versions import RefreshSummary
    from ragforge.files.set.dataset import Dataset

_CARRIED: Final = (
    *("model_name", "model_base_url", "model_endpoint_id", "model_api_key_env", "judge_panel"),
    *("judge_batch", "prompts_prompts_dir"),
)
"""Settings that the next command takes over where they were given as flags, by their keys."""
_BUILT_IN: Final = ("bm25", "chargram")
_OFFLINE: Final = "offline"
_ALLOWED_DROP: Final = "0.02"
_REPORT: Final = "report.html"
_BASELINE: Final = "baseline.json"
_QRELS: Final = "qrels.trec"


def say_next(arguments: argparse.Namespace, words: Sequence[str], why: str) -> None:
    """Say which command comes next, unless nobody wants to read it.

    Args:
        arguments: Of the command that ended; a settings file that it named is named again.
        words: The next command behind `ragforge`; several are put together with `&&`.
        why: What it is for, in a few words.
    """
    if not _is_read(arguments):
        return
    from ragforge.cli.invocation import shown_words

    config = getattr(arguments, "config", None)
    words = [*words, *(["--config", str(config)] if config and words[0] != "report" else [])]
    say(f"next: ragforge {shlex.join(shown_words(words))}  # {why}")


def _is_read(arguments: argparse.Namespace) -> bool:
    """Whether a person reads what is said: neither a program nor the mail of a scheduler."""
    given = vars(arguments)
    return not any(given.get(name) for name in ("quiet", "json", "observer", "prometheus"))


def after_queries(arguments: argparse.Namespace, dataset: "Dataset") -> None:
    """Say what comes after queries were made or brought in: two retrievers, judged and compared."""
    if not _is_read(arguments):
        return
    if _ranked(dataset):
        after_runs(arguments, dataset)
        return
    settings = _settings(arguments)
    names = [name for name, service in settings.retrievers.items() if service.url][:2]
    has_chunks = next(dataset.chunks(), None) is not None
    others = _BUILT_IN if has_chunks else ("http://127.0.0.1:8000/old", "http://127.0.0.1:8000/new")
    retrievers = [*names, *others][: max(2, len(names))]
    why = "put yours for one of them: an address or package.module:name"
    if not has_chunks and len(names) < len(retrievers):
        why = "put the addresses of your service, which return texts"
    elif len(names) >= len(retrievers):
        why = "which is better?"
    words = [word for name in retrievers for word in ("--retriever", name)]
    words += ["--judge", *_model(arguments)]
    if settings.model.name == _OFFLINE and not _model(arguments):
        words += _measures_without_judge(dataset)
    say_next(arguments, ["compare", *_set(dataset), *words], why)


def _measures_without_judge(dataset: "Dataset") -> list[str]:
    """Return flags for a measure that needs no grades, first, where queries have evidence."""
    has_evidence = any(query.evidence for query in dataset.accepted_queries())
    return ["-m", "EvidenceR@10", "-m", "nDCG@10"] if has_evidence else []


def after_runs(arguments: argparse.Namespace, dataset: "Dataset", run: str = "") -> None:
    """Say what comes after a run was made or brought in."""
    names = _ranked(dataset)
    if not names:
        return
    is_judged = _is_judged(dataset)
    if len(names) > 1:
        others = [name for name in names if name != run]
        two = [others[-1], run] if run else names if len(names) == 2 else []
        words = ["compare", *_set(dataset), *two]
        more = [] if is_judged and not run else ["--judge", *_model(arguments)]
        say_next(arguments, [*words, *more], "which is better?")
    elif is_judged and not run:
        _say_evaluate(arguments, dataset, names[0])
    else:
        words = ["judge", *_set(dataset), "--run", names[0], *_model(arguments)]
        say_next(arguments, words, "grade what it retrieved")


def _say_evaluate(arguments: argparse.Namespace, dataset: "Dataset", run: str) -> None:
    say_next(arguments, ["evaluate", *_set(dataset), "--run", run], "how good is it?")


def after_judging(arguments: argparse.Namespace, dataset: "Dataset") -> None:
    """Say what comes after chunks were judged."""
    names = _ranked(dataset)
    if not names:
        after_queries(arguments, dataset)
    elif len(names) == 1:
        _say_evaluate(arguments, dataset, names[0])
    else:
        two = names if len(names) == 2 else []
        say_next(arguments, ["compare", *_set(dataset), *two], "which is better?")


def after_measuring(arguments: argparse.Namespace, names: Sequence[str]) -> None:
    """Say what comes after runs were measured."""
    files = list(arguments.run) if arguments.dataset is None else list(names)
    flags = [word for name in files for word in ("--run", str(name))]
    if len(files) > 1:
        say_next(arguments, ["compare", *_source(arguments), *flags], "which is better?")
    else:
        say_next(arguments, ["worst", *_source(arguments), *flags], "what to repair first")


def after_comparing(arguments: argparse.Namespace, found: "RunComparison") -> None:
    """Say what comes after a comparison: a gate for the winner, or what keeps it from one."""
    report, outcome = found.report, found.outcome
    if report.of != "runs":
        return
    names = list(report.names)
    if outcome == "UNKNOWN":
        _after_unknown(arguments, report)
        return
    paths = dict(zip(names, arguments.run, strict=False)) if arguments.dataset is None else {}
    winner = found.winner or names[-1]
    if found.winner is None:
        words = ["worst", *_source(arguments), "--run", str(paths.get(winner, winner))]
        say_next(arguments, words, "not told apart; more queries show smaller differences")
        return
    other = next(name for name in reversed(names) if name != winner)
    runs = {name: str(paths.get(name, name)) for name in (other, winner)}
    _say_gate(arguments, runs, report.measures[0])


def _after_unknown(arguments: argparse.Namespace, report: "ComparisonReport") -> None:
    """Say what would tell which run is better."""
    decisive = report.of_measure(report.measures[0])
    fair = [item.fair_measure for item in decisive]
    if any(item.lacks_questions for item in decisive):
        words = ["worst", *_source(arguments), "--run", report.names[-1]]
        say_next(arguments, words, "more questions, not more wordings, show smaller differences")
    elif any(fair):
        words = ["compare", *_source(arguments), *report.names, "-m", next(filter(None, fair))]
        say_next(arguments, words, "which finds more evidence in a prompt of one size?")
    elif report.calibration is not None:
        _say_labels(arguments, report)
    elif arguments.dataset is None:
        return
    elif any(item.has_uneven_labels for item in decisive):
        from ragforge.calibration.comparing import first_sample

        command, *rest = first_sample(report)
        words = ["calibrate", command, *_source(arguments), *rest]
        say_next(arguments, words, "pairs of both, for people to label")
    elif any(item.is_open and item.n_open > item.n_left_out for item in report.items):
        words = ["judge", *_source(arguments), "--retry-failed", *_model(arguments, "NAME")]
        say_next(arguments, words, "judgments that failed could turn it round")
    elif not any("`ragforge judge " in item.withheld for item in report.items):
        # Where a reason names the judge to ask, a model of any name would not settle it.
        model = _model(arguments, "NAME")
        words = ["compare", *_source(arguments), *report.names, "--judge", *model]
        say_next(arguments, words, "a model's grades can tell; --base-url names its endpoint")


def _say_labels(arguments: argparse.Namespace, report: "ComparisonReport") -> None:
    """Say which labels decide what is unknown, or which measure does by those there are."""
    from ragforge.calibration.comparing import linear_instead, next_labels

    instead = linear_instead(report)
    if instead:
        words = ["compare", *_source(arguments), *report.names, "-m", instead, "--calibrated"]
        say_next(arguments, words, "which is better by a measure that needs no ideal ranking?")
        return
    command, *rest = next_labels(report)
    words = ["calibrate", command, *_source(arguments), *rest]
    say_next(arguments, words, "people's labels decide here, and they are missing")


def _say_gate(arguments: argparse.Namespace, runs: Mapping[str, str], measure: str) -> None:
    """Say how the winner is held against the other in CI: by a baseline that is there, or new.

    Args:
        arguments: Of the comparison.
        runs: Names or files of the other and of the winner, by name.
        measure: That decides.
    """
    (_, other), (name, winner) = runs.items()
    folder = arguments.dataset or Path()
    baseline = folder / _BASELINE
    drop = ["--max-drop", f"{measure}={_ALLOWED_DROP}", "--baseline", str(baseline)]
    gate = ["gate", *_source(arguments), "--run", winner, *drop]
    if baseline.exists():
        say_next(arguments, gate, "may it ship?")
        return
    # The rule has the baseline hold the measure, and lets one of evidence do without a judge.
    rule = ["--min", f"{measure}=0", "--write-baseline", str(baseline)]
    write = ["gate", *_source(arguments), "--run", other, *rule]
    if arguments.quiet or arguments.json:
        return
    say(f"next: ragforge {shlex.join(write)} && ragforge {shlex.join(gate)}  # may {name} ship?")


def after_gate(arguments: argparse.Namespace, verdict: "Verdict") -> None:
    """Say what comes after a gate."""
    run = [] if arguments.run is None else ["--run", arguments.run]
    if arguments.answers is not None or arguments.write_baseline is not None:
        return
    if verdict.passed:
        words = ["report", *_source(arguments), *run, "--out", _REPORT]
        say_next(arguments, words, "a page for those who ask why")
    else:
        say_next(arguments, ["worst", *_source(arguments), *run], "what to repair first")


def after_worst(arguments: argparse.Namespace) -> None:
    """Say what comes after the worst queries were shown."""
    runs = [word for name in arguments.run for word in ("--run", str(name))]
    words = ["report", *_source(arguments), *runs, "--out", _REPORT]
    say_next(arguments, words, "all queries on a page")


def after_validating(arguments: argparse.Namespace) -> None:
    """Say what comes after a set was found in order."""
    say_next(arguments, ["plan", *_source(arguments)], "what can it show?")


def after_export(arguments: argparse.Namespace, files: Sequence[Path]) -> None:
    """Say what comes after a set was written in another form: measuring it from the files."""
    runs = [str(path) for path in files if path.suffix == ".trec" and path.name != _QRELS]
    if runs:
        words = ["evaluate", "--qrels", str(arguments.out / _QRELS), "--run", runs[0]]
        say_next(arguments, words, "measured from the files")


def after_history(arguments: argparse.Namespace) -> None:
    """Say what comes after how sets did over time."""
    words = ["report", "--dataset", str(arguments.dataset[0]), "--out", _REPORT]
    say_next(arguments, words, "the trend on a page")


def after_diff(arguments: argparse.Namespace, after: "Dataset") -> None:
    """Say what comes after two versions were compared; nothing of one that is no more in use."""
    from ragforge.files.set.paths import REJECTED, VERSIONS

    if after.path.parent.name not in (VERSIONS, REJECTED) and after.run_names():
        say_next(arguments, ["evaluate", *_set(after)], "how do the runs do now?")


def after_sweep(arguments: argparse.Namespace, found: "Swept") -> None:
    """Say what comes after configurations were ranked: to cut as the best of them does."""
    if found.best is None:
        return
    best = found.best.configuration
    if best.splitter == "headings" and not best.overlap:
        documents = map(str, arguments.documents or ["DOCS"])
        words = ["chunk", *documents, "--max-chars", str(best.size), "--out", "chunks.jsonl"]
        why = "cut as one of the best does" if found.not_told_apart else "cut as the best does"
        say_next(arguments, words, why)


def after_planning(arguments: argparse.Namespace) -> None:
    """Say what comes after a plan: the queries, or the decision."""
    if arguments.dataset is None:
        words = ["generate", "--documents", "DOCS", "-n", "N", "--out", "my-set"]
        say_next(arguments, words, "as many queries as it takes; --dry-run prices them")
    else:
        words = ["compare", *_source(arguments), "A", "B", "--judge-as-needed", "--dry-run"]
        say_next(arguments, words, "what deciding between two runs takes")


def after_report(arguments: argparse.Namespace, dataset: "Dataset", *, has_runs: bool) -> None:
    """Say what comes after a report: a run, a page, or what to repair."""
    runs = [word for name in arguments.run for word in ("--run", str(name))]
    if not has_runs and arguments.dataset is not None:
        after_queries(arguments, dataset)
    elif arguments.out is None:
        after_worst(arguments)
    else:
        say_next(arguments, ["worst", *_source(arguments), *runs], "what to repair first")


def after_answers(arguments: argparse.Namespace, dataset: "Dataset", system: str) -> None:
    """Say what comes after answers of a system were written, or graded."""
    graded = dataset.answer_grade_names()
    others = [name for name in graded if name != system]
    if system not in graded:
        path = dataset.path / "answers" / f"{system}.jsonl"
        words = ["answer", *_set(dataset), "--answers", str(path), *_model(arguments)]
        say_next(arguments, words, "grade them")
    elif others:
        words = ["compare", *_set(dataset), "--answers", others[-1], system]
        say_next(arguments, words, "which is better?")
    else:
        say_next(arguments, ["report", *_set(dataset), "--out", _REPORT], "all answers on a page")


def after_probe(arguments: argparse.Namespace, where: str) -> None:
    """Say what comes after a service of the settings was understood.

    Args:
        arguments: Of the probe.
        where: The section of the settings that names it.
    """
    kind, _, name = where.partition(".")
    words = ["--dataset", str(arguments.dataset or "my-set")]
    if kind == "retrievers":
        say_next(arguments, ["retrieve", *words, "--retriever", name], "ask it all queries")
    else:
        words = ["answer", *words, "--system", name, "--name", name]
        say_next(arguments, words, "ask it all queries, and grade")


def after_refresh(arguments: argparse.Namespace, summary: "RefreshSummary") -> None:
    """Say what comes after a new version was published."""
    if summary.status == "published":
        words = ["diff", "--dataset", summary.dataset, "--since", str(summary.parent)]
        say_next(arguments, words, "what changed, query by query")


def _settings(arguments: argparse.Namespace) -> Settings:
    """Return what settings say of models and services; nothing where they are no good."""
    try:
        return load(arguments.config)
    except RagforgeError:
        return Settings()


def _set(dataset: "Dataset") -> list[str]:
    return ["--dataset", str(dataset.path)]


def _source(arguments: argparse.Namespace) -> list[str]:
    if arguments.dataset is not None:
        return ["--dataset", str(arguments.dataset)]
    return ["--qrels", str(arguments.qrels)]


def _model(arguments: argparse.Namespace, otherwise: str = "") -> list[str]:
    """Return the flags of the model that was named; a name to be filled in where none was."""
    given = vars(arguments)
    words = []
    for setting in each_setting("model", "judge", "prompts"):
        value = given.get(setting.dest)
        if f"{setting.section}_{setting.field}" in _CARRIED and value not in (None, [], ()):
            text = ",".join(value) if isinstance(value, list | tuple) else str(value)
            words += [f"--{setting.flag}", text]
    return words or (["--model", otherwise] if otherwise else [])


def _ranked(dataset: "Dataset") -> list[str]:
    """Return the names of the runs that have a ranking: a retriever may have failed on all."""
    files = dataset.manifest.files
    entries = {name: files.get(f"runs/{name}.jsonl") for name in dataset.run_names()}
    return [name for name, entry in entries.items() if entry is None or entry.records]


def _is_judged(dataset: "Dataset") -> bool:
    """Whether anything but the evidence of the queries was graded."""
    return any(item.source != "evidence" for item in dataset.each_judgment())
