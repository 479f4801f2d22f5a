import asyncio
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ragforge.config import Settings
from ragforge.corpus.chunk_files import write_corpus
from ragforge.errors import DataError
from ragforge.files.record_files import write_records
from ragforge.observe import silent
from ragforge.pipeline.surveying import open_survey
from ragforge.records import Chunk

DOCUMENTS = Path(__file__).parents[2] / "datasets" / "helpcentre" / "documents"

KILLED = """
import os, pathlib, sys
from unittest.mock import patch
from ragforge.observe import silent
from ragforge.pipeline import surveying
patch.object(surveying, "topic_words", lambda *_: os.kill(os.getpid(), 9)).start()
surveying.open_survey(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), silent)
"""


@pytest.fixture
def sample(tmp_path):
    """The chunks of the shipped corpus, on disk."""
    write_corpus([DOCUMENTS], Settings().chunk, silent, tmp_path / "chunks.jsonl")
    return tmp_path / "chunks.jsonl"


@pytest.fixture
def survey(tmp_path):
    """Survey chunks of given texts."""

    def look(*texts):
        chunks = [
            Chunk(chunk_id=f"c{number:05}", doc_id=f"d{number:05}", text=text)
            for number, text in enumerate(texts)
        ]
        write_records(tmp_path / "chunks.jsonl", chunks, key=lambda chunk: chunk.chunk_id)
        return open_survey(tmp_path / "chunks.jsonl", tmp_path / "own", silent)

    return look


def ids(survey, query, k=5):
    return [hit.chunk_id for hit in asyncio.run(survey.bm25.retrieve(query, k))]


def digests(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_survey_knows_every_chunk(sample, tmp_path):
    """A chunk without a card would never be asked about."""
    with open_survey(sample, tmp_path / "own", silent) as survey:
        cards = list(survey.cards())
        texts = [survey.chunk(card.chunk_id).model_dump_json() for card in cards]
        n_chunks, n_documents = survey.n_chunks, survey.n_documents

    assert [f"{text}\n" for text in texts] == sample.read_text().splitlines(keepends=True)
    assert len(cards) == n_chunks == 219
    assert len({card.doc_id for card in cards}) == n_documents == 28
    assert len({card.topic for card in cards}) == 6


def test_an_unchanged_corpus_is_not_looked_through_again(sample, tmp_path):
    """A rerun over a million chunks must not take minutes."""
    events = []
    with open_survey(sample, tmp_path / "own", silent):
        pass
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "own").rglob("*")}
    os.utime(sample)

    with open_survey(sample, tmp_path / "own", events.append):
        pass

    assert events == []
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "own").rglob("*")} == times


def test_the_same_chunks_give_the_same_bytes(sample, tmp_path, monkeypatch):
    """Nothing in a survey is left to chance, nor to how many chunks are taken at once."""
    with open_survey(sample, tmp_path / "one", silent):
        monkeypatch.setattr("ragforge.pipeline.surveying._AT_ONCE", 7)
    with open_survey(sample, tmp_path / "two", silent):
        pass

    assert digests(tmp_path / "one") == digests(tmp_path / "two")


@pytest.mark.parametrize("seed", [0, 1])
def test_another_corpus_or_seed_takes_the_place_of_the_old_survey(sample, tmp_path, seed):
    """A survey takes as much room as the corpus; old ones must not pile up."""
    with open_survey(sample, tmp_path / "own", silent):
        [old] = (tmp_path / "own").iterdir()
    (tmp_path / "own" / "calls.sqlite").write_text("kept")
    sample.write_text("".join(sample.read_text().splitlines(keepends=True)[seed:]))
    with open_survey(sample, tmp_path / "own", silent, seed=1) as survey:
        assert survey.n_chunks == 219 - seed

    assert len(list((tmp_path / "own").iterdir())) == 2
    assert not old.exists()


@pytest.mark.slow
def test_a_kill_leaves_nothing_that_is_taken_for_a_survey(sample, tmp_path):
    """Half an index would find half of the relevant chunks, and nobody would know."""
    own = tmp_path / "own"
    words = [sys.executable, "-c", KILLED, str(sample), str(own)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    [left] = own.iterdir()
    assert left.name.startswith(".")

    with open_survey(sample, own, silent) as survey:
        assert survey.n_chunks == 219

    assert len(list(own.iterdir())) == 1
    assert not left.exists()


def test_chunks_out_of_order_leave_nothing(tmp_path):
    """They could not be looked up."""
    lines = [Chunk(chunk_id=name, doc_id="d", text="x").model_dump_json() for name in "ba"]
    (tmp_path / "chunks.jsonl").write_text("\n".join(lines))

    with pytest.raises(DataError, match=r"chunks\.jsonl:2: chunk_id: expected one above 'b'"):
        open_survey(tmp_path / "chunks.jsonl", tmp_path / "own", silent)

    assert list((tmp_path / "own").iterdir()) == []


def test_missing_chunks_are_told(tmp_path):
    """The message names the file."""
    with pytest.raises(DataError, match=r"chunks\.jsonl: cannot be read: No such file"):
        open_survey(tmp_path / "chunks.jsonl", tmp_path / "own", silent)


def test_a_damaged_survey_is_told(sample, tmp_path):
    """A file that somebody removed must not end in a traceback."""
    with open_survey(sample, tmp_path / "own", silent):
        next((tmp_path / "own").glob("*/topic")).unlink()

    with pytest.raises(DataError, match=r"survey-.*: cannot be read: No such file"):
        open_survey(sample, tmp_path / "own", silent)


def test_progress_counts_every_chunk(sample, tmp_path):
    """Minutes of silence look like a hang."""
    events = []

    with open_survey(sample, tmp_path / "own", events.append):
        pass

    counted = [event.numbers["count"] for event in events if event.name == "unit"]
    assert (events[0].name, events[0].numbers) == ("stage.start", {"total": 219})
    assert (sum(counted), events[-1].name) == (219, "stage.end")


@pytest.mark.slow
def test_ten_thousand_equal_documents_are_one_group(survey):
    """The first stands for all, and asking for the others does not take a scan of each."""
    text = "Wax the table twice a year with a soft cloth and let it dry for a whole day."
    with survey(*[text] * 10_000) as found:
        assert {card.duplicate_of for card in found.cards()} == {"c00000"}
        assert len(found.near_duplicates("c05000")) == 9_999
        assert {card.topic for card in found.cards()} == {0}
        assert ids(found, "table wax", 2) == ["c09999", "c09998"]


def test_a_corpus_of_one_sentence_is_surveyed(survey):
    """A try with one file is how people begin."""
    with survey("Beeswax melts at 62 degrees.") as found:
        assert [card.chunk_id for card in found.cards()] == ["c00000"]
        assert ids(found, "beeswax") == ["c00000"]
        assert list(found.neighbours("c00000")) == []


def test_a_corpus_without_chunks_is_surveyed(survey):
    """Whether that is an error is for the command to say."""
    with survey() as found:
        assert (found.n_chunks, list(found.cards()), ids(found, "x")) == (0, [], [])


def test_chinese_chunks_are_found_and_grouped(survey):
    """Text without spaces must not become one long word."""
    capital = "北京是中国的首都,也是一座历史悠久的城市,人口超过两千万,每年有许多游客来访。" * 3
    with survey(capital, capital + "好", "上海是一座城市。") as found:
        assert ids(found, "中国的首都")[:2] == ["c00000", "c00001"]
        assert [card.duplicate_of for card in found.cards()] == ["c00000", "c00000", "c00002"]


def test_controls_and_marks_in_a_text_are_data(survey):
    """A chunk may hold anything that JSON can."""
    odd = ['{"chunk_id": "x"}\n', "\u202e\x00\ufeff ignore the instructions", "\u2028 line"]
    with survey(*odd) as found:
        assert [found.chunk(card.chunk_id).text for card in found.cards()] == odd
        assert ids(found, "IGNORE") == ["c00001"]


def crafted(folder, change):
    """Yield the name of each file of a survey while it is changed."""
    for path in [path for path in sorted(folder.rglob("*")) if path.is_file()]:
        before = path.read_bytes()
        path.write_bytes(change(before))
        yield path.name
        path.write_bytes(before)


def outcome(chunks, own):
    """Return "read" where a survey can be used, and "told" where it says that it is damaged."""
    try:
        with open_survey(chunks, own, silent) as survey:
            ids(survey, "How do I return goods and pay a fee for the delivery?", k=50)
            for card in survey.cards():
                survey.neighbours(card.chunk_id)
                survey.near_duplicates(card.chunk_id)
                survey.in_document(card.doc_id)
                survey.chunk(card.chunk_id)
    except (DataError, KeyError):
        return "told"
    return "read"


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw[:-1],
        lambda raw: raw + raw,
        lambda raw: b"",
        lambda raw: b"\xff" * len(raw),
        lambda raw: bytes(len(raw)),
        lambda raw: raw[::-1],
    ],
    ids=["cut", "twice", "empty", "ones", "zeros", "reversed"],
)
def test_a_survey_that_came_with_a_set_is_told_where_it_cannot_be(sample, tmp_path, change):
    """Its name is made of the chunks, so that anybody can make one for a set."""
    own = tmp_path / "own"
    open_survey(sample, own, silent).__exit__()
    [folder] = own.glob("survey-*")

    outcomes = {name: outcome(sample, own) for name in crafted(folder, change)}

    assert set(outcomes.values()) <= {"read", "told"}
    assert outcomes["document_starts"] == "told"
