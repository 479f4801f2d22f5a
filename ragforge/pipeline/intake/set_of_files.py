"""A dataset for a while, made of a file of judgments and files of runs, to be measured as a set."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragforge.deferred import dataclass, tempfile
from ragforge.errors import DataError, UsageError
from ragforge.files.formats.qrels import JudgedQrels, read_judged_qrels
from ragforge.files.formats.run_labels import has_texts, labels_of_run
from ragforge.files.formats.runs import read_run
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.stale_runs import refuse_files_of_a_part, refuse_files_of_other_chunks
from ragforge.files.source_files import plain_name
from ragforge.observe import Observer
from ragforge.pipeline.file_runs import why_unmeasured
from ragforge.pipeline.intake.importing import dataset_without_chunks, import_queries
from ragforge.pipeline.intake.runs_and_qrels import import_qrels, import_run


@dataclass(frozen=True, slots=True)
class MeasuredFiles:
    """What is to be measured without a dataset.

    Args:
        qrels: Judgments, in any shape that `read_judged_qrels` takes.
        runs: Files, in any shape that `read_run` takes.
        queries: What the queries ask; None where their ids have to do.
    """

    qrels: Path
    runs: Sequence[Path]
    queries: Path | None = None


@contextmanager
def set_of_files(files: MeasuredFiles, observer: Observer) -> Iterator[Dataset]:
    """Lend a dataset made of files: named as the qrels, with the runs under the names of the files.

    It has no chunks, and is gone behind the block. What its errors say is of the file.

    Raises:
        UsageError: Two runs have one name.
        DataError: A file does not hold to its format, or the runs are of other queries.
    """
    with tempfile.TemporaryDirectory(prefix="ragforge-") as folder:
        place = Path(folder) / (plain_name(files.qrels) or "qrels")
        try:
            yield _made(files, place, observer)
        except (UsageError, DataError) as error:
            raise type(error)(str(error).replace(str(place), str(files.qrels))) from error


def _made(files: MeasuredFiles, place: Path, observer: Observer) -> Dataset:
    refuse_files_of_other_chunks(files.qrels, files.runs)
    refuse_files_of_a_part(files.qrels, files.runs)
    dataset = dataset_without_chunks(place)
    if files.queries is not None:
        import_queries(files.queries, dataset, observer)
    import_qrels(files.qrels, dataset, observer, judged=_judged(files))
    for path in files.runs:
        there = dataset.run_names()
        name = import_run(path, dataset, observer).name
        if name in there:
            raise UsageError(f"{path}: two runs are called {name!r}; rename one of the files")
    return dataset


def _judged(files: MeasuredFiles) -> JudgedQrels:
    """Return what all runs are measured on: a run with texts of its own on what is said of these.

    Raises:
        UsageError: Several runs are measured on different grades.
        DataError: A run has texts of its own, and no grade of any is there.
    """
    judged = read_judged_qrels(files.qrels)
    held: dict[str, JudgedQrels] = {}
    for path in files.runs:
        name, ranked = plain_name(path), read_run(path).rankings
        own = labels_of_run(judged, files.qrels, name) if has_texts(ranked) else None
        if own is not None:
            held[name] = own
        elif why := why_unmeasured(files.qrels, name, ranked, judged.grades):
            raise DataError(why)
    if held and len(files.runs) > 1:
        raise UsageError(
            f"{files.qrels}: run {next(iter(held))} has texts of its own and is measured on other "
            "grades than the others; measure it alone, or hold them against each other with "
            "`ragforge compare`"
        )
    return next(iter(held.values()), judged)
