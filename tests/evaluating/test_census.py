from ragforge.evaluating.summary import take_census


def test_only_what_is_asked_for_is_kept(dataset):
    """A corpus may be larger than memory."""
    found = take_census(dataset, {"c2": ()}, {"c3"})

    assert (found.n_chunks, found.n_documents) == (6, 2)
    assert (list(found.starts), found.documents) == (["c2"], {"c3": "d1"})


def test_a_dataset_without_a_corpus_has_no_chunks(new_dataset):
    """Qrels and runs are enough to measure."""
    found = take_census(new_dataset(), {"c2": ()}, set())

    assert (found.n_chunks, found.starts) == (0, {})


def test_others_see_every_chunk_in_the_same_pass(dataset):
    """A large corpus is read once."""
    seen = []
    take_census(dataset, {}, set(), [seen.append])

    assert [chunk.chunk_id for chunk in seen] == ["c1", "c2", "c3", "c4", "c5", "c6"]


def test_ids_of_neither_chunks_nor_documents_are_unknown(dataset):
    """No labels of the set speak of them."""
    assert take_census(dataset, {}, {"c3", "d1", "elsewhere"}).unknown == {"elsewhere"}


def test_without_a_corpus_no_id_is_unknown(new_dataset):
    """Nobody can tell there which ids are of chunks."""
    assert take_census(new_dataset(), {}, {"c3"}).unknown == frozenset()
