import pytest

from ragforge.corpus.staleness import member_of, mentioned_version, version_order


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("0.9", "0.10"), ("1", "2"), ("1.0rc1", "1.0"), ("1.0a2", "1.0b1"), ("1.0", "1.0.1"),
        ("2.0-dev", "2.0-alpha"), ("1.9.9", "2.0rc1"), ("2024-02", "2024-11"), ("1.0rc1", "1.0rc2"),
    ],
)  # fmt: skip
def test_versions_come_in_their_order(older, newer):
    """0.9 is not newer than 0.10, though it sorts behind it."""
    assert version_order(older) < version_order(newer)


def test_zeros_at_the_end_say_nothing():
    """1.2 and 1.2.0 are one release."""
    assert version_order("1.2") == version_order("1.2.0")


@pytest.mark.parametrize(
    ("doc_id", "family", "version"),
    [
        ("0.27.0/api.md", "*/api.md", "0.27.0"),
        ("docs/v2/api.md", "docs/*/api.md", "2"),
        ("version-3/a.md", "*/a.md", "3"),
        ("manual-1.4.pdf", "manual-*.pdf", "1.4"),
        ("1.0rc1/a.md", "*/a.md", "1.0rc1"),
    ],
)
def test_version_in_an_id_names_the_family(doc_id, family, version):
    """Documents that differ in the version only are versions of one."""
    member = member_of(doc_id)

    assert (member.family, member.version.text) == (family, version)


@pytest.mark.parametrize(
    "doc_id",
    [
        "a.md", "api-2.md", "rfc-7230.md", "chapter_3.md", "2023-05-01-hello.md", "blog/2024/x.md",
        "minutes/2023-05.md", "python3.11.md", "goods.csv#12",
    ],
)  # fmt: skip
def test_other_numbers_in_an_id_are_no_version(doc_id):
    """Chapter 3 does not replace chapter 2, nor the minutes of May those of April."""
    assert member_of(doc_id) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("since version 0.28.0 and v0.1", "0.28.0"), ("release 3", "3"),
        ("as of 2024-03-01", "2024-03-01"),
        ("in 2023-01 and 2024-02", "2024-02"),
    ],
)  # fmt: skip
def test_latest_version_in_a_text_counts(text, version):
    """A text that names several is as new as the newest."""
    assert mentioned_version(text).text == version


@pytest.mark.parametrize("text", ["pi is 3.14", "host 10.0.0.1", "HTTP/1.1", "in 2024 we"])
def test_other_numbers_in_a_text_are_no_version(text):
    """Else every price list would be stale."""
    assert mentioned_version(text) is None
