"""Writing the sheet that a reviewer fills in: a table, or one page."""

from pathlib import Path

from ragforge.errors import UsageError
from ragforge.files.atomic import write_whole
from ragforge.files.dataset import Dataset
from ragforge.files.review_sheet import SheetRow, write_sheet
from ragforge.pipeline.review_drawing import sheet_rows
from ragforge.report.page.review import render_review


def export_sheet(
    dataset: Dataset, out: Path, sample: int | None = None, reviewer: str = ""
) -> list[SheetRow]:
    """Write a sheet and return its rows; see `sheet_rows`.

    Args:
        dataset: Has queries.
        out: A new file; .csv for a table, .html for a page.
        sample: How many are drawn at random.
        reviewer: For whom it is.

    Raises:
        UsageError: The file exists, for decisions may be in it; or it is neither kind.
        DataError: There is nothing to decide about, or the file cannot be written.
    """
    kind = out.suffix.lower()
    if kind not in (".csv", ".html"):
        raise UsageError(f"--out {out}: expected a name that ends in .csv or .html")
    if out.exists():
        raise UsageError(
            f"--out {out}: is there already, maybe with decisions in it; name another file"
        )
    rows = sheet_rows(dataset, sample=sample, reviewer=reviewer)
    if kind == ".csv":
        write_sheet(out, rows)
    else:
        write_whole(out, [render_review(dataset.manifest.name, rows)])
    return rows
