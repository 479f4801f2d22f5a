"""Datasets with a history, and the site that shows them."""

from dataclasses import dataclass
from http.client import HTTPConnection

import pytest

from ragforge.files.set.history import appending
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.evaluated import with_content_id
from ragforge.records import Digests, Evaluation, MeasuredMean, Spending
from ragforge.viewer.server import serving


def evaluation(run="bm25", mean=0.5, at="2026-01-01T00:00:00+00:00", **fields):
    """An evaluation of 50 queries by nDCG@10 with an interval 0.1 wide."""
    measured = MeasuredMean(mean=mean, low=mean - 0.05, high=mean + 0.05, n=50)
    made = Evaluation(
        evaluation_id="-",
        at=at,
        dataset="set",
        version=1,
        run=run,
        rel_threshold=2,
        n_queries=50,
        n_failed=0,
        n_retrieved=500,
        n_holes=3,
        measures={"nDCG@10": measured},
        graders=(),
        digests=Digests(corpus="a", queries="b", judgments="c", rankings="d", prompts="e"),
        spent=Spending(calls=0, prompt_tokens=0, completion_tokens=0, cost_usd=None),
        timing=None,
        tool_version="1",
    )
    return with_content_id(made.model_copy(update=fields))


def keep(dataset, *evaluations):
    """Add evaluations to the history of a dataset."""
    with appending(dataset.path) as ledger:
        ledger.append(evaluations)


@pytest.fixture
def make_evaluation():
    """See `evaluation`."""
    return evaluation


@pytest.fixture
def add():
    """See `keep`."""
    return keep


@pytest.fixture
def folder(tmp_path):
    """A folder for datasets."""
    return tmp_path / "sets"


@pytest.fixture
def dataset(folder):
    """A dataset named `first` in the folder, with one evaluation."""
    made = create_dataset(folder / "first", {"seed": "0"})
    keep(made, evaluation())
    return made


@pytest.fixture
def create(folder):
    """Make another dataset in the folder."""

    def run(name):
        return create_dataset(folder / name, {"seed": name})

    return run


@dataclass
class Site:
    """The site, asked as no library would."""

    access: object

    def ask(self, path, method="GET", **headers):
        """Return the reply with its body read; a header that is None is not sent."""
        connection = HTTPConnection("127.0.0.1", self.access.port, timeout=20)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        host = given.pop("Host", f"127.0.0.1:{self.access.port}")
        connection.putrequest(method, path, skip_host=True)
        for name, value in {"Host": host, **given}.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        reply = connection.getresponse()
        reply.text = reply.read().decode()
        connection.close()
        return reply


@pytest.fixture(scope="session")
def site_at():
    """See `Site`."""
    return Site


@pytest.fixture
def rendered():
    """The datasets of which a report was made, in order."""
    return []


@pytest.fixture
def render(rendered):
    """Make a report that tells how often it was called."""

    def make(dataset):
        rendered.append(dataset.path.name)
        policy = (
            '<meta http-equiv="Content-Security-Policy" content="default-src &#x27;none&#x27;">'
        )
        return f"<html><head>{policy}</head>report {len(rendered)}</html>"

    return make


@pytest.fixture
def site(folder, dataset, render):
    """The site of the folder."""
    with serving([folder], render) as access:
        yield Site(access)
