"""How many calls a set takes; money is what keeps people from making the set they need."""

import json

import pytest
from pipeline.generation.making import accepted, at, endpoint, generate, stages

from ragforge.files.shipped_folders import shipped

WORDS = (
    "copper lantern harbour meadow violin orchard compass granite saffron pavilion thimble "
    "walnut beacon cinnamon trellis almanac quarry lagoon parchment anvil bramble cobalt drizzle"
).split()


def text(number):
    """Return a passage that is unlike the others."""
    picked = [WORDS[(number * step + step) % len(WORDS)] for step in (1, 3, 5, 7)]
    return (
        f"The {picked[0]} office {number} keeps {number + 17} boxes of {picked[1]} for visitors. "
        f"Whoever needs a {picked[2]} asks the warden before {1 + number % 11} o'clock in the "
        f"morning, because the {picked[3]} store closes early on days of heavy rain."
    )


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    """A file of a thousand chunks in a hundred documents."""
    path = tmp_path_factory.mktemp("corpus") / "chunks.jsonl"
    rows = [
        {"chunk_id": f"c{at:04}", "doc_id": f"d{at // 10:03}", "text": text(at)}
        for at in range(1000)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_ten_of_a_thousand_chunks_take_sixty_calls_at_most(thousand, tmp_path):
    """What a set costs follows from its size, not from that of the corpus."""
    from pipeline.generation.making import run

    words = ["generate", "--chunks", str(thousand), "-n", "10", "--out", str(tmp_path / "set")]
    with endpoint() as running:
        done = run([*words, *at(running), "--complete", "off"])
        assert "judge" not in stages(running)
        asked = len(running.seen)

    assert (done.code, len(accepted(tmp_path / "set"))) == (0, 10)
    assert asked <= 60


def test_all_in_a_query_takes_six_calls_at_most(tmp_path):
    """Written, checked and with its pool judged, on a corpus like the sample."""
    documents = shipped("datasets") / "helpcentre" / "documents"
    with endpoint() as running:
        done = generate(tmp_path / "set", *at(running), n=50, documents=documents)
        asked = len(running.seen)

    assert (done.code, len(accepted(tmp_path / "set"))) == (0, 50)
    assert asked <= 6 * 50
