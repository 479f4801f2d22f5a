"""Writing a report about a dataset."""

from collections.abc import Callable
from pathlib import Path

from ragforge.config import EvaluateSettings
from ragforge.files.atomic import write_whole
from ragforge.files.dataset import Dataset
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
    summary = summarise(dataset, measures=settings.measures, rel_threshold=settings.rel_threshold)
    write_whole(out, [RENDERERS[form](summary)])
