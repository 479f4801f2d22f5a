"""What pages show is run from top to bottom, as a reader would."""

import json
import shutil
import subprocess
from unittest import mock

import pytest
from documentation.reader import (
    DOCS,
    ROOT,
    Reader,
    answers_labelled,
    approved,
    blocks_of,
    labelled,
    services,
)
from documentation.stand_in import answering
from documentation.worlds import SAMPLE, write_app, write_documents, write_files, write_set
from scripted_service import running_scripted_service

import ragforge as rf
from ragforge.mock import Script, bodies, serving

pytestmark = pytest.mark.slow

TUTORIALS = ("tutorials/", "coming-from/")
ELSEWHERE = {"python.md", "recipes.md"}
"""Pages whose code other tests run: `tests/api/test_docs.py`, `tests/integrations`."""
PAGES = [
    name
    for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    if (name := path.relative_to(DOCS if DOCS in path.parents else ROOT).as_posix())
    not in ELSEWHERE
    and not name.startswith(("help/", "reference/"))
    and blocks_of(path)
]
BEGUN = ("tutorials/own-service.md", "tutorials/calibrated.md")
"""Tutorials that begin with the set of the first one."""
UNGRADED = (
    "explanation/pools.md",
    "how-to/local-models.md",
    "how-to/models.md",
    "how-to/queries.md",
    "how-to/ray.md",
    "how-to/rehearse.md",
    "recipes/models.md",
    "shards.md",
)
"""Pages that begin with a set that no model graded: those whose reader has it judged."""
TABLES = {
    "coming-from/ragas.md": "ragas.jsonl",
    "coming-from/deepeval.md": "goldens.jsonl",
    "coming-from/promptfoo.md": "tests.csv",
    "coming-from/spreadsheet.md": "sheet.csv",
}
"""Under which name a page's table is saved."""
QRELS = "q1 0 d1 3\nq1 0 d2 0\nq2 0 d2 2\n"
RUN = "q1 Q0 d1 1 2.0 a\nq1 Q0 d2 2 1.0 a\nq2 Q0 d1 1 2.0 a\nq2 Q0 d2 2 1.0 a\n"
FILES = {"qrels.trec": QRELS, "run.trec": RUN, "other.trec": RUN}
CALIBRATED = (
    "ragforge calibrate sample --dataset my-set --run old --run new -m P@10 -n 60",
    "ragforge calibrate label --dataset my-set --labeller Ann --from labels-Ann.jsonl",
    "ragforge calibrate apply --dataset my-set",
)
BEFORE = {
    "how-to/pictures.md": CALIBRATED,
    "deciding.md": ("ragforge retrieve --dataset my-set --retriever bm25+chargram --name fused",),
    "labelling.md": (
        *CALIBRATED[:1],
        "ragforge answer --dataset my-set --system my_app.rag:ask --name my-rag",
    ),
    "how-to/git.md": (
        "git rm -r -q --cached my-set",
        "git -c user.name=A -c user.email=a@example.org commit -q -m Bare",
    ),
    "how-to/measures.md": (
        "ragforge gate --qrels qrels.trec --run bm25.trec --min nDCG@10=0.01 --allow-holes "
        "--write-baseline baseline.json",
    ),
}
"""What a reader of a page has done before it."""
SUPPLIES = {
    "labels-Ann.jsonl": labelled,
    "answer-labels-Ann.jsonl": answers_labelled,
    "review.json": approved,
    "services.toml": services,
}


@pytest.fixture(scope="session")
def service():
    """A service that stands in for search engines and RAG services."""
    texts = {
        page.name: page.read_text("utf-8") for page in sorted((SAMPLE / "documents").glob("*.md"))
    }
    with running_scripted_service() as server:
        server.answer = answering(texts)
        yield server


@pytest.fixture(scope="session")
def model():
    """An endpoint whose grades count as those of a model, which a mock's do not."""
    with (
        mock.patch.object(bodies, "MOCK_FINGERPRINT", "fp_pages"),
        serving(Script()) as endpoint,
    ):
        yield endpoint


@pytest.fixture(scope="session")
def world(tmp_path_factory, model, service):
    """A folder with a set, its files, and code of the reader's."""
    folder = tmp_path_factory.mktemp("world")
    write_documents(folder)
    write_app(folder)
    write_set(Reader(folder, model.url, service.url))
    write_files(folder)
    return folder


@pytest.fixture
def reader(request, tmp_path, service):
    """Give somebody who follows a page, with what the page begins with."""
    page = request.getfixturevalue("page")
    if page.startswith(TUTORIALS):
        shutil.copytree(SAMPLE, tmp_path / "datasets" / "helpcentre")
        with serving(Script()) as endpoint:
            found = Reader(tmp_path, endpoint.url, service.url)
            _begin(found, page)
            yield found
    else:
        folder = tmp_path / "page"
        shutil.copytree(request.getfixturevalue("world"), folder)
        if page in UNGRADED:
            shutil.rmtree(folder / "my-set")
            shutil.copytree(folder / "ungraded", folder / "my-set")
        _write_handbook(folder)
        model = request.getfixturevalue("model")
        found = Reader(folder, model.url, service.url, SUPPLIES)
        found.names = _names(folder)
        for line in BEFORE.get(page, ()):
            found.type(line)
        yield found
    found.leave()


def _write_handbook(folder):
    """Put a git repository of documents beside the folder of a page."""
    place = folder.parent / "handbook"
    shutil.copytree(folder / "docs", place / "docs")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Pages"]):
        subprocess.run([*git, *words], cwd=place, check=True)


def _names(folder):
    """Return what Python on a page takes for granted."""
    qrels = {f"q{n}": {"d7": 3, "d9": 0, "d1": None} for n in range(9)}
    run = {f"q{n}": {"d7": 12.5, "d9": float(n)} for n in range(9)}
    scores = rf.evaluate(qrels, run, ["nDCG@10"])
    ds = rf.open(folder / "my-set").with_settings(quiet=True)
    return {"ds": ds, "qrels": qrels, "run": run, "base": scores, "new": scores}


def _begin(reader, page):
    """Put there what a tutorial or a comparison expects."""
    folder = reader.folder
    if page != "tutorials/first-set.md":
        shutil.copytree(folder / "datasets/helpcentre/documents", folder / "docs")
    if page in BEGUN:
        reader.type("ragforge generate --documents docs/ -n 50 --out my-set")
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed(page, reader):
    """Whoever is stopped by a page does not come back."""
    path = ROOT / page if page == "README.md" else DOCS / page

    for block in blocks_of(path):
        if block.note == "second path":  # another folder, as a reader would take
            shutil.rmtree(reader.folder / "my-set")
        if block.is_run:
            reader.follow(block, TABLES.get(page, ""))

    manifest = reader.folder / "my-set" / "manifest.json"
    assert not manifest.exists() or json.loads(manifest.read_text("utf-8"))["name"] == "my-set"
