"""Running a retriever beside a dataset: what it returns is not written into it."""

import asyncio
import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ragforge.config import SettingsFile, load
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import bring, require_own_chunks
from ragforge.observe import silent
from ragforge.pipeline.job import Job
from ragforge.pipeline.retrieving import make_runs, require_working
from ragforge.pipeline.run_list import named_specs

_READ: Final = ("chunks.jsonl", "queries.jsonl", "judgments.jsonl")
_WRITTEN: Final = ("manifest.json", "failures.jsonl")


def retrieve_beside(
    dataset: Dataset, spec: str, folder: Path, report_settings: Callable[[SettingsFile], None]
) -> tuple[Dataset, str]:
    """Run a retriever over the queries of a dataset; settings come as on the command line.

    Args:
        dataset: Left as it is, but for its call store, where embeddings are kept.
        spec: What to retrieve with.
        folder: Becomes a dataset with the run.
        report_settings: Told of the settings file of the working directory, if there is one.

    Returns:
        That dataset, and the name of the run.

    Raises:
        RagforgeError: The retriever cannot be made, or failed on every query; or the settings file
            needs trust.
    """
    # Here it goes by its own name, not by that of a folder for the time being.
    require_own_chunks(dataset)
    if spec == "dense":
        # Embeddings are paid for, and must outlive the session.
        with contextlib.suppress(OSError):
            dataset.store_path.parent.mkdir(exist_ok=True)
    for name in _READ:
        if (dataset.files / name).exists():
            bring(dataset.files / name, folder / name)
    for name in _WRITTEN:
        if (dataset.files / name).exists():
            shutil.copyfile(dataset.files / name, folder / name)
    beside = Dataset(folder, store_of=dataset.home if dataset.own_place.exists() else None)
    specs = named_specs([spec])
    made = asyncio.run(make_runs(beside, specs, Job(load(on_found=report_settings), silent)))
    require_working(made)
    return beside, made[0].name
