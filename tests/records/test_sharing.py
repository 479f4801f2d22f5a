import pytest

from ragforge.records import Judgment, Provenance, Vote
from ragforge.records.sharing import Sharing


def judgment(number, call_key=""):
    """Return a judgment as it comes from a line."""
    return Judgment.model_validate_json(
        Judgment(
            query_id=f"q{number}",
            chunk_id="c",
            grade=1,
            votes=(Vote(model="m", grade=1), Vote(model="n", grade=None, failure="error")),
            provenance=Provenance(kind="llm", model="m", call_key=call_key),
        ).model_dump_json()
    )


@pytest.mark.parametrize("call_key", ["", "k"])
def test_shared_records_say_what_they_said(call_key):
    """To share is no change."""
    sharing = Sharing()
    read = [judgment(n, call_key) for n in range(3)]

    shared = [sharing.shared(judgment(n, call_key)) for n in range(3)]

    assert shared == read
    assert [one.model_dump_json() for one in shared] == [one.model_dump_json() for one in read]
    fields = [one.model_fields_set for one in shared]
    assert fields == [one.model_fields_set for one in read]


def test_a_provenance_of_many_is_held_once():
    """Thousands of grades of one model come of one prompt."""
    sharing = Sharing()
    one, other = sharing.shared(judgment(1)), sharing.shared(judgment(2))

    assert one.provenance is other.provenance


def test_provenances_of_two_calls_stay_two():
    """Each leads to a reply of its own."""
    sharing = Sharing()
    one, other = sharing.shared(judgment(1, "a")), sharing.shared(judgment(2, "b"))

    assert one.provenance.call_key == "a"
    assert other.provenance.call_key == "b"


def test_a_copy_of_a_shared_record_leaves_the_others_alone():
    """The names of given fields are one set for all of them."""
    sharing = Sharing()
    one, other = sharing.shared(judgment(1)), sharing.shared(judgment(2))
    before = set(other.model_fields_set)

    changed = one.model_copy(update={"relevant": True, "grade": None})

    assert changed.grade is None
    assert other.model_fields_set == before
    assert other.grade == 1


def test_the_id_of_a_chunk_is_held_once():
    """A chunk is judged for many queries, and retrieved by several runs."""
    sharing = Sharing()
    one, other = sharing.shared(judgment(1)), sharing.shared(judgment(2))

    assert one.chunk_id is other.chunk_id
