"""Writing a report about a dataset."""

from collections.abc import Callable
from pathlib import Path

from ragforge.config import EvaluateSettings
from ragforge.files.atomic import write_whole
from ragforge.files.dataset import Dataset
from ragforge.pipeline.agreement import agreement_in
from ragforge.report.html import render_html
from ragforge.report.markdown import render_markdown
from ragforge.report.summary import Summary, summarise
from ragforge.report.text import render_text

RENDERERS: dict[str, Callable[[Summary], str]] = {
    "html": render_html,
    "markdown": render_markdown,
    "text": render_text,
}


def write_report(dataset: Dataset, out: Path, form: str, settings: EvaluateSettings) -> None:
    """Write a report.

    Args:
        dataset: What it is about.
        out: The file; replaced whole.
        form: A key of `RENDERERS`.
        settings: Measures and threshold.

    Raises:
        DataError: The dataset cannot be read, or the file cannot be written.
    """
    write_whole(out, [RENDERERS[form](report_summary(dataset, settings))])


def report_summary(dataset: Dataset, settings: EvaluateSettings) -> Summary:
    """Return what a report says, with the agreement of judges with people.

    Raises:
        DataError: The dataset cannot be read.
    """
    return summarise(
        dataset,
        measures=settings.measures,
        rel_threshold=settings.rel_threshold,
        agreement=agreement_in(dataset),
    )
