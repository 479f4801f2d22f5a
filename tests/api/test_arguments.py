"""Arguments of another kind than a call takes: refused before anything is done."""

import pytest

import ragforge as rf
from ragforge.api.arguments import checked


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda ds: ds.gate("bad", min={"RR": 0.1}, point="False"),
            "gate: point: expected True",
        ),
        (lambda ds: ds.gate("bad", min=["RR=0.6"]), "gate: min: expected a mapping of text to"),
        (lambda ds: ds.gate("bad", min={"RR": "0.6"}), "gate: min: expected a mapping"),
        (lambda ds: ds.judge(again="no"), "judge: again: expected True or False, got 'no'"),
        (lambda ds: ds.judge(quiet="no"), "judge: quiet: expected True or False, got 'no'"),
        (lambda ds: ds.judge(retry_failed=0), "judge: retry_failed: expected True or False, got 0"),
        (lambda ds: ds.retrieve("bm25", k=True), "retrieve: k: expected a value, got True"),
        (lambda ds: ds.retrieve("bm25", name=5), "retrieve: name: expected text or None, got 5"),
        (lambda ds: ds.evaluate("bad", "RR", only_retrieved="x"), "evaluate: only_retrieved: exp"),
        (lambda ds: ds.evaluate("bad", "RR", history="no"), "evaluate: history: expected True or"),
        (lambda ds: ds.evaluate(None), "evaluate: runs: expected text or a list of text, got None"),
        (lambda ds: ds.evaluate("bad", 5), "evaluate: measures: expected text or a list of text"),
        (lambda ds: ds.evaluate("bad", observer=5), "observer: expected a name or something to"),
        (lambda ds: ds.compare(["bad", "good"]), r"compare: runs: expected text, got \['bad'"),
        (lambda ds: ds.compare("bad", "good", ["RR"]), r"compare: runs: expected text, got \['RR'"),
        (lambda ds: ds.part("5"), "part: sample: expected a whole number or None, got '5'"),
        (lambda ds: ds.part(5.5), "part: sample: expected a whole number or None, got 5.5"),
        (lambda ds: ds.part(True), "part: sample: expected a whole number or None, got True"),
        (lambda ds: ds.part(5, seed="x"), "part: seed: expected a whole number, got 'x'"),
        (lambda ds: ds.part(-1), "part: sample: expected a whole number from 1, got -1"),
        (lambda ds: ds.part(5, seed=-1), "part: seed: expected a whole number from 0, got -1"),
        (lambda ds: ds.part(split="tst"), "part: split: expected one of: dev, test or None"),
        (lambda ds: ds.part(by="type"), "part: by 'type': goes with a sample"),
        (lambda ds: ds.worst("bad", cause="nonsense"), "worst: cause: expected one of: "),
        (lambda ds: ds.worst("bad", n=-1), "worst: n: expected a whole number from 0, got -1"),
        (lambda ds: ds.worst("bad", below="0.5"), "worst: below: expected a number or None, got"),
        (lambda ds: ds.worst("bad", below=0), "worst: below: expected a number above 0"),
    ],
)
def test_arguments_of_another_kind_are_refused(measured, call, message):
    """A text that counts as true lets a run pass, and a raw error does not say what is expected."""
    with pytest.raises(rf.UsageError, match=message):
        call(measured)


def test_documents_are_texts(place):
    """Bytes have no encoding that anybody told."""
    with pytest.raises(rf.UsageError, match="generate: documents: expected text or a path or"):
        rf.generate({"a.md": b"abc"}, out="set", quiet=True)


def test_what_numpy_counts_is_taken(measured):
    """Notebooks count with it."""
    np = pytest.importorskip("numpy")

    part = measured.part(np.int64(5), seed=np.int64(7))
    assert len(list(part.queries())) == 5
    allowed = ["few", "holes", "baseline-judge"]
    found = measured.gate("good", min={"RR": np.float64(0.5)}, point=np.True_, allow=allowed)
    assert found.passed


def test_what_can_be_taken_once_is_not_taken_by_the_check():
    """A generator that was looked at would be empty."""

    @checked
    def listed(names: "str | list[str] | tuple[str, ...]") -> list[str]:
        return list(names)

    assert listed(name for name in ("a", "b")) == ["a", "b"]


def test_an_endpoint_without_a_model_is_refused(measured):
    """The offline baseline would judge in place of the model that somebody meant."""
    with pytest.raises(rf.UsageError, match="judge: base_url: names an endpoint, and no model"):
        measured.judge(base_url="http://127.0.0.1:9/v1", dry_run=True)
