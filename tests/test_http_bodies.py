import gzip
import zlib

import pytest

from ragforge.http_service import MAX_VALUES, Body, BodyError, read_json


def unpacked(body, *pieces):
    return b"".join(part for piece in pieces for part in body.unpacked(piece))


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("", bytes), ("identity", bytes), ("GZIP", gzip.compress), ("deflate", zlib.compress)],
)
def test_a_body_is_unpacked_as_its_header_says(encoding, pack):
    """Piece by piece, wherever it was cut on the way."""
    packed = pack(b"some text " * 20_000)
    pieces = [packed[at : at + 97] for at in range(0, len(packed), 97)]

    assert unpacked(Body(encoding, "", 1_000_000), *pieces) == b"some text " * 20_000


def test_no_more_is_unpacked_than_is_taken():
    """One small piece may hold a gigabyte."""
    body = Body("gzip", "", 1000)

    with pytest.raises(BodyError, match="longer than 1,000 bytes"):
        unpacked(body, gzip.compress(b" " * 100_000))


def test_what_is_packed_and_holds_nothing_ends_too():
    """Empty blocks can follow each other for ever."""
    start = gzip.compress(b"")[:10]
    nothing = b"\0\0\0\xff\xff" * 100

    with pytest.raises(BodyError, match="longer than 1,000 bytes"):
        unpacked(Body("gzip", "", 1000), start, nothing, nothing)


@pytest.mark.parametrize("announced", ["1001", "9" * 19])
def test_a_length_that_is_announced_is_believed_when_it_is_too_long(announced):
    """Then nothing of it needs to be read."""
    with pytest.raises(BodyError, match="longer than 1,000 bytes"):
        Body("", announced, 1000)


@pytest.mark.parametrize("announced", ["-5", "x", "10, 10", "9" * 5000])
def test_a_length_that_makes_no_sense_says_nothing(announced):
    """What comes in is counted all the same."""
    assert unpacked(Body("", announced, 1000), b"text") == b"text"


def test_what_follows_the_packed_body_is_left():
    """Some servers send padding."""
    assert unpacked(Body("gzip", "", 1000), gzip.compress(b"text") + b"rest", b"more") == b"text"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 1_000_000, "nested too deep"),
        ("[" + "0," * MAX_VALUES + "0]", "more than 2,000,000 values"),
        ("{", "Expecting"),
    ],
)
def test_json_that_would_fill_stack_or_memory_is_named(text, reason):
    """It must not come out as a bug of the program."""
    with pytest.raises(ValueError, match=reason):
        read_json(text)
