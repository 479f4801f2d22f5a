"""Bring queries, labels, runs and logs of others into a dataset.

Queries come in many shapes, such as {"queries": [{id, query, relevant_doc_ids}]}, BEIR folders,
CSV, or JSON Lines with quotes: {query_id, query, expected_answer, relevant: [{doc_id, quote,
grade}]}; a table has a line for each quote: question,answer,doc_id,quote,difficulty,category, or
for each labelled passage: question,doc_id,grade, or chunk_id where it names chunks of the set. A
quote is looked up in the chunks, so the set outlives a change of the chunk size; one without a
doc_id must stand in exactly one document. What a file does not say stays as it is in the set, and
so do grades that people gave in other ways; a label that the file gave before, and does not give
any more, goes. A question without an id is the one of the set that has its words; an id that is of
another question in the set is refused. What people approved, edited, pinned or rejected in review
stays as it is when a file is imported again, with its grades. A relevant id that the corpus does
not have, or a quote that stands nowhere, is an error: without it recall would rise. --allow-missing
keeps it, as a relevant chunk that no run can find. A text or quote beside the id of another passage
is refused.

Names of columns that ragas, deepeval, promptfoo, LangSmith and MLflow use are known; --map says
where the question, the answer and others stand in a file with other names. A table may be .xlsx
(first sheet; extra `xlsx`). A row that repeats another is taken once, and told.

A label may name a whole document, by its id or the end of its path: store.md is help/store.md
where no other document is called so. Its query is then measured by documents: what a run retrieved
counts as the documents of the chunks, each at its best rank. Other queries are measured by chunks.

--qrels adds the grades of TREC qrels, CSV or JSON to the queries of the set, --run the ranking of
a TREC run, CSV or JSON Lines under the name of its file. Queries go by id, else by their words;
chunks and documents by id or end of path. What the set does not know is counted and told. Qrels of
0 and 1 alone tell relevant from not; beside other grades --grades says what their 1 is. With --out
alone the set has the corpus of a BEIR folder, else no documents: questions to retrieve for and
judge, whose answers stand in the texts that a service returns.

People's grades count before a model's, which go to label_checks.jsonl. Where --made-by names
another model than the one that graded the same pairs, that is refused: --replace takes the grades
of the file, --mix lets those of the set stand.

A log of what users asked is brought in with --logs: questions that people labelled become queries,
the others are added to real_queries.jsonl, whose length and style generated queries are to have. Of
a question that is there already the larger count stands, so a log may come twice; so do the grades
that people gave before. Labels may stand in a file of their own, by the ids of the log: --labels.
What the logged system retrieved for the queries becomes a run.

--sample N draws N different questions of the log as queries, to retrieve for and judge: a week's
share of production. Those that are in the set already are left out, so each week brings new ones;
what share of all that was asked the rest is, is printed. --draw frequency prefers what is asked
often, in proportion; rarity what is asked seldom, in inverse proportion; even nothing. Each query
keeps how often it was asked and with which probability it was drawn (`drawn`), so that
`ragforge history --by batch` can weight it as it was asked. The same log again adds nothing.

Examples:
  ragforge import golden.jsonl --documents docs/ --out set/
  ragforge import questions.csv --out set/ --map question=frage,answer=antwort
  ragforge import --qrels qrels.trec --run bm25.trec --run dense.csv --dataset set/
  ragforge import --logs log.jsonl --dataset set/ --as-queries
  ragforge import --logs week47.jsonl --sample 200 --batch 2026-W47 --dataset set/
  ragforge import --logs logs.json --labels labels.json --chunks chunks.json --out set/
"""

import argparse
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import Progress, say
from ragforge.cli.flags import add_common, add_json, settings_of
from ragforge.cli.next_step import after_queries
from ragforge.cli.output import dumps

if TYPE_CHECKING:
    from typing import Literal

    from ragforge.api.outcomes import Counted
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.intake.log_samples import LogSample
    from ragforge.pipeline.intake.runs_and_qrels import QrelsTaken


COMMON = (
    "--documents",
    "--chunks",
    "--dataset",
    "--out",
    "--logs",
    "--labels",
    "--as-queries",
    "--sample",
    "--allow-missing",
    "--made-by",
    "--json",
)
"""Options of the short help, in its order."""
_READINGS = ("complete", "pooled", "partial")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("queries", nargs="?", type=Path, metavar="FILE", help="the hand-made set")
    parser.add_argument(
        "--logs",
        nargs="+",
        action="extend",
        type=Path,
        metavar="LOG",
        help="logs of what users asked",
    )
    parser.add_argument(
        "--labels",
        metavar="FILE|READING",
        help="with --logs: FILE with what people said of the logged questions, by their id; else "
        "what a chunk without a label is: not relevant (complete; the default where people alone "
        "label), not looked at (pooled), or not known (partial). Pooled and partial count alike: "
        "it is not relevant in a value, and what it could change is told",
    )
    parser.add_argument(
        "--as-queries",
        action="store_true",
        help="with --logs: questions without labels become queries too, to retrieve for and judge",
    )
    _add_sample(parser)
    _add_labels_and_runs(parser)
    parser.add_argument(
        "--clicks",
        choices=("ignore", "relevant"),
        default="ignore",
        help="with --logs: whether what was clicked counts as labelled relevant (default: ignore)",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--documents",
        nargs="+",
        action="extend",
        metavar="DOCS",
        help="files, folders, git:REPOSITORY@REVISION, sql:URL#QUERY or addresses such as s3://…",
    )
    source.add_argument("--chunks", type=Path, metavar="FILE", help="ready-made chunks")
    source.add_argument("--dataset", type=Path, metavar="DIR", help="add to this dataset")
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory of the new dataset")
    parser.add_argument(
        "--allow-missing",
        action="store_true",
        help="keep ids and quotes that the corpus lacks, as chunks that no run can find",
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="NAME=COLUMN",
        help="where the question, answer and others stand in FILE, between commas: "
        "question=input,answer=outputs.answer; dots lead into nested objects",
    )
    _add_graders(parser)
    add_json(parser)
    add_common(parser, "chunk")


def _add_labels_and_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--qrels", type=Path, metavar="FILE", help="grades by the ids of queries and chunks"
    )
    parser.add_argument(
        "--grades",
        metavar="GRADE=GRADE,…",
        help="with --qrels: which grades from 0 to 3 those of the file are, such as 2=1,3=2,4=3; "
        "1=1 takes a file of 0 and 1 for a part of one that goes to 3, 1=2 for relevant or not",
    )
    parser.add_argument(
        "--run",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="a ranking for each query, several may be given",
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="NAME",
        help="name of the run of each --run, in the same order (default: that of the file)",
    )


def _add_graders(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--made-by",
        default="",
        metavar="WHO",
        help="who graded, for the records: a name of people, or model:NAME where a model did",
    )
    others = parser.add_mutually_exclusive_group()
    others.add_argument(
        "--replace",
        dest="others",
        action="store_const",
        const="replace",
        default="refuse",
        help="where another model graded the same pairs, the grades of the file take their place; "
        "where an id of FILE is of another question in the set, its question does",
    )
    others.add_argument(
        "--mix",
        dest="others",
        action="store_const",
        const="mix",
        help="where another model graded the same pairs, its grades stand beside the others of "
        "the file",
    )


def _add_sample(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="with --logs: make only N of the questions without labels queries, drawn at random",
    )
    parser.add_argument(
        "--draw",
        choices=("frequency", "rarity", "even"),
        help="with --sample: which questions are preferred (default: frequency)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="with --sample: equal seeds draw alike (default: 0)"
    )
    parser.add_argument(
        "--batch",
        metavar="NAME",
        help="with --sample: what the drawn queries are called together, such as 2026-W47 "
        "(default: the name of the log)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    _check(arguments)
    _check_sample(arguments)
    observer = Progress(arguments.quiet)
    from ragforge.api.imported import Taken
    from ragforge.pipeline.intake.importing import undone_if_failed

    with undone_if_failed(arguments.out):
        dataset = _dataset(arguments, observer)
        taken = Taken(_queries(arguments, dataset, observer))
        if arguments.qrels is not None:
            taken.add_qrels(arguments.qrels, _qrels(arguments, dataset, observer))
        for path, name in zip_longest(arguments.run, arguments.name, fillvalue=""):
            from ragforge.pipeline.intake.runs_and_qrels import import_run

            of_run = import_run(
                Path(path), dataset, observer, name, allow_missing=arguments.allow_missing
            )
            taken.add_run(of_run)
    if arguments.labels in _READINGS:
        manifest = dataset.manifest.model_copy(update={"labels": arguments.labels})
        dataset.write_manifest(manifest)
    found = taken.counted()
    if arguments.json:
        print(dumps({"dataset": str(dataset.path), **found.to_dict()}))
    else:
        say(found.table())
        print(dataset.path)
        after_queries(arguments, dataset)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse flags that do not go together."""
    from ragforge.errors import UsageError

    has_files = arguments.qrels is not None or bool(arguments.run)
    has_logs, has_queries = arguments.logs is not None, arguments.queries is not None
    is_for_logs = arguments.as_queries or arguments.clicks != "ignore"
    has_labels_file = arguments.labels not in (None, *_READINGS)
    refused = (
        (has_queries and has_logs, "name either a hand-made set, or logs with --logs"),
        (
            not (has_queries or has_logs or has_files),
            "name a file of queries, --logs LOG, --qrels FILE or --run FILE",
        ),
        (
            has_logs and has_files,
            "--qrels and --run do not go with --logs; import one after the other",
        ),
        (
            arguments.dataset is None and arguments.out is None,
            "name the set: --dataset DIR to add to one, --out DIR for a new one",
        ),
        (
            arguments.qrels is None and arguments.grades is not None,
            "--grades goes with --qrels FILE",
        ),
        (not has_queries and bool(arguments.map), "--map goes with a FILE of queries"),
        (len(arguments.name) > len(arguments.run), "--name: goes with --run FILE, a name each"),
        (not has_logs and is_for_logs, "--as-queries and --clicks go with --logs"),
        (
            not has_logs and has_labels_file,
            f"--labels {arguments.labels}: expected {', '.join(_READINGS)}; a file of labels "
            "goes with --logs",
        ),
    )
    for is_wrong, message in refused:
        if is_wrong:
            raise UsageError(message)
    _check_names(arguments)


def _check_names(arguments: argparse.Namespace) -> None:
    """Refuse two runs of one name: the second would take the place of the first."""
    if len(arguments.run) < 2:
        return
    from ragforge.errors import UsageError
    from ragforge.pipeline.intake.runs_and_qrels import run_name_of

    named: dict[str, Path] = {}
    for path, given in zip_longest(arguments.run, arguments.name, fillvalue=""):
        name = given or run_name_of(Path(path))
        if name in named:
            raise UsageError(
                f"{named[name]} and {path}: both runs would be called {name!r}; give each a --name "
                "of its own"
            )
        named[name] = Path(path)


def _queries(
    arguments: argparse.Namespace, dataset: "Dataset", observer: Progress
) -> "Counted | None":
    """Take the queries in, of a hand-made set or of logs; None where only other files are named."""
    if arguments.logs:
        return _logs(arguments, dataset, observer)
    return None if arguments.queries is None else _set(arguments, dataset, observer)


def _qrels(arguments: argparse.Namespace, dataset: "Dataset", observer: Progress) -> "QrelsTaken":
    from ragforge.pipeline.intake.runs_and_qrels import import_qrels, parse_grades

    return import_qrels(
        arguments.qrels,
        dataset,
        observer,
        made_by=arguments.made_by,
        allow_missing=arguments.allow_missing,
        grades={} if arguments.grades is None else parse_grades(arguments.grades),
        others=arguments.others,
    )


def _check_sample(arguments: argparse.Namespace) -> None:
    """Refuse flags of a sample that cannot be, or would have no effect."""
    from ragforge.errors import UsageError

    flags = ("--draw", arguments.draw), ("--seed", arguments.seed), ("--batch", arguments.batch)
    if arguments.sample is None:
        given = [flag for flag, value in flags if value is not None]
        if given:
            raise UsageError(f"{given[0]} goes with --sample N")
        return
    refused = (
        (arguments.logs is None, "--sample goes with --logs"),
        (
            arguments.clicks != "ignore",
            "--sample draws from questions without labels, and --clicks relevant labels all that "
            "were clicked; name one of them",
        ),
        (arguments.as_queries, "--as-queries takes all questions, --sample some; name one of them"),
        (arguments.sample < 1, f"--sample {arguments.sample}: expected at least 1"),
        ((arguments.seed or 0) < 0, f"--seed {arguments.seed}: expected at least 0"),
        (
            not (arguments.batch is None or arguments.batch.strip()),
            "--batch: expected a name, got none",
        ),
    )
    for is_wrong, message in refused:
        if is_wrong:
            raise UsageError(message)


def _unlabelled(arguments: argparse.Namespace) -> "Literal['keep', 'add'] | LogSample":
    """Return what becomes of the questions of a log that nobody labelled."""
    from ragforge.pipeline.intake.log_samples import LogSample

    if arguments.sample is None:
        return "add" if arguments.as_queries else "keep"
    return LogSample(
        n=arguments.sample,
        draw=arguments.draw or "frequency",
        seed=arguments.seed or 0,
        batch=(arguments.batch or "").strip(),
    )


def _labels_file(arguments: argparse.Namespace) -> Path | None:
    is_file = arguments.labels is not None and arguments.labels not in _READINGS
    return Path(arguments.labels) if is_file else None


def _dataset(arguments: argparse.Namespace, observer: Progress) -> "Dataset":
    from ragforge.errors import UsageError
    from ragforge.files.formats.export_note import brings_chunks
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.generation.source import ChunkSource
    from ragforge.pipeline.intake.importing import dataset_for, dataset_without_chunks

    if arguments.dataset is not None:
        return open_dataset(arguments.dataset)
    chunks = arguments.chunks
    if arguments.documents is None and chunks is None:
        if arguments.queries is None or not brings_chunks(arguments.queries):
            return dataset_without_chunks(arguments.out)
        chunks = arguments.queries
    if arguments.out is None:
        raise UsageError("--documents and --chunks need --out DIR")
    documents = arguments.documents or []
    settings = settings_of(arguments)
    return dataset_for(arguments.out, ChunkSource(documents, chunks, settings.chunk, observer))


def _set(arguments: argparse.Namespace, dataset: "Dataset", observer: Progress) -> "Counted":
    from ragforge.api.imported import queries_taken_in
    from ragforge.files.formats.row_columns import parse_columns
    from ragforge.pipeline.intake.importing import import_queries

    result = import_queries(
        arguments.queries,
        dataset,
        observer,
        made_by=arguments.made_by,
        allow_missing=arguments.allow_missing,
        columns=parse_columns(arguments.map),
        others=arguments.others,
    )
    return queries_taken_in(result)


def _logs(arguments: argparse.Namespace, dataset: "Dataset", observer: Progress) -> "Counted":
    from ragforge.api.imported import logs_taken_in
    from ragforge.pipeline.intake.logs import import_logs

    result = import_logs(
        arguments.logs,
        dataset,
        observer,
        labels=_labels_file(arguments),
        made_by=arguments.made_by,
        allow_missing=arguments.allow_missing,
        clicks=arguments.clicks,
        unlabelled=_unlabelled(arguments),
        others=arguments.others,
    )
    return logs_taken_in(result, as_queries=arguments.as_queries)
