from hypothesis import given
from hypothesis import strategies as st

from ragforge.files.formats import seen_pairs
from ragforge.files.formats.seen_pairs import Seen, SeenPairs

PAIRS = st.lists(
    st.tuples(
        st.sampled_from("pqrst"), st.sampled_from("abc"), st.sampled_from([None, 0, 1, 2, 3])
    ),
    max_size=40,
)


@given(pairs=PAIRS, n=st.integers(1, 3))
def test_pairs_are_known_as_a_dict_of_all_knows_them(pairs, n):
    """However few queries are at hand, and in whatever order they come."""
    known = {}
    before = seen_pairs._AT_HAND
    seen_pairs._AT_HAND = n
    try:
        seen = SeenPairs()
        for query_id, chunk_id, grade in pairs:
            key = query_id, chunk_id
            first = key not in known
            known.setdefault(key, grade)
            wanted = Seen.NEW if first else Seen.ALIKE if known[key] == grade else Seen.OTHERWISE
            assert seen.take(query_id, chunk_id, grade) is wanted
        assert bool(seen) is bool(pairs)
    finally:
        seen_pairs._AT_HAND = before
