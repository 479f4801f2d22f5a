"""The pictures of the README, taken anew by running this with `tests` on the path."""

import base64
import os
import tempfile
from pathlib import Path

from devtools import FLAGS, opened

from ragforge.cli import main
from ragforge.files.shipped_folders import shipped

ROOT = Path(__file__).parents[2]
WIDTH, HEIGHT = 1100, 720


def report(folder):
    """Return the page that compares BM25 with a local model by grades of people."""
    os.chdir(folder)
    sample = Path(shipped("datasets")) / "helpcentre"
    documents = ["--documents", str(sample / "documents")]
    main(["import", str(sample / "golden.jsonl"), *documents, "--out", "help-centre", "-q"])
    for name in ("bm25", "minilm"):
        main(["retrieve", "--dataset", "help-centre", "--retriever", name, "-q"])
    words = ["report", "--dataset", "help-centre", "--base", "bm25", "-m", "nDCG@10"]
    main([*words, "--out", "report.html", "-q"])
    return folder / "report.html"


def photograph(page, scheme, width=WIDTH, height=HEIGHT):
    """Return a PNG of what a window shows of a page."""
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, **ONE_TO_ONE)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.call("Emulation.setEmulatedMedia", features=features)
    return base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])


ONE_TO_ONE = {"deviceScaleFactor": 1, "mobile": False}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = report(Path(folder).resolve())
        with opened(made, Path(folder) / "profile", FLAGS) as window:
            for scheme in ("light", "dark"):
                picture = ROOT / "docs" / "pictures" / f"report-{scheme}.png"
                picture.parent.mkdir(exist_ok=True)
                picture.write_bytes(photograph(window, scheme))
