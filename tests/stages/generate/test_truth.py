from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.records import Chunk, Evidence, Query
from ragforge.stages.generate.truth import derive

TEXT = "The Alpha costs 40 euros. It weighs 7 kg.\n\nThe Beta costs 40 euros. It weighs 9 kg."


def cut(*ends, text=TEXT):
    starts = [0, *ends[:-1]]
    return [
        Chunk(chunk_id=f"c{n}", doc_id="d", text=text[start:end], start=start, end=end)
        for n, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


def query(*evidence):
    return Query(query_id="q", query="What does it cost?", evidence=evidence)


def quote(text, hop=1, nth=0, **more):
    at = TEXT.find(text) if not nth else TEXT.find(text, TEXT.find(text) + 1)
    return Evidence(
        doc_id="d", chunk_id="old", quote=text, start=at, end=at + len(text), hop=hop, **more
    )


def grades(found):
    return {item.chunk_id: item.grade for item in found.judgments}


def test_a_chunk_with_all_of_the_evidence_answers_alone():
    """The quote is what proves the answer, so the chunk that holds it needs no other."""
    found = derive(query(quote("The Alpha costs 40 euros.")), ChunkIndex(cut(43, len(TEXT))))

    assert grades(found) == {"c0": 3}
    assert found.query.source_chunk_ids == ("c0",)


def test_a_chunk_with_one_hop_of_two_has_a_part():
    """With one of two hops nobody can answer."""
    both = query(quote("It weighs 7 kg."), quote("It weighs 9 kg.", hop=2))

    assert grades(derive(both, ChunkIndex(cut(43, len(TEXT))))) == {"c0": 2, "c1": 2}
    assert grades(derive(both, ChunkIndex(cut(len(TEXT))))) == {"c0": 3}


def test_a_quote_that_was_cut_gives_its_halves_a_part():
    """Neither half tells all, and both are wanted."""
    cut_through = TEXT.find("costs 40") + 2

    found = derive(
        query(quote("The Alpha costs 40 euros.")), ChunkIndex(cut(cut_through, len(TEXT)))
    )

    assert grades(found) == {"c0": 2, "c1": 2}
    assert found.lost == ()


def test_a_quote_over_many_small_chunks_marks_all_of_them():
    """Where no chunk has half of it, each has a share."""
    found = derive(query(quote(TEXT[:40])), ChunkIndex(cut(10, 20, 30, 40, len(TEXT))))

    assert grades(found) == {"c0": 2, "c1": 2, "c2": 2, "c3": 2}


def test_of_equal_quotes_the_one_at_its_offsets_is_meant():
    """`costs 40 euros` stands twice; only one of them is about the Beta."""
    again = quote("costs 40 euros", nth=1)

    found = derive(query(again), ChunkIndex(cut(43, len(TEXT))))

    assert grades(found) == {"c1": 3}


def test_of_equal_quotes_the_one_with_like_surroundings_is_meant():
    """Offsets move when a paragraph is put in front; what stands around a quote does not."""
    moved = Evidence(
        doc_id="d", chunk_id="old", quote="costs 40 euros", start=500, end=514, prefix="The Beta "
    )

    [item] = derive(query(moved), ChunkIndex(cut(43, len(TEXT)))).query.evidence

    assert (item.chunk_id, item.start, item.prefix[-9:]) == ("c1", TEXT.rfind("costs"), "The Beta ")


def test_overlapping_chunks_all_hold_the_quote():
    """A retriever that returns the other copy has found the answer as well."""
    chunks = [
        Chunk(chunk_id="a", doc_id="d", text=TEXT[:43], start=0, end=43),
        Chunk(chunk_id="b", doc_id="d", text=TEXT[20:], start=20, end=len(TEXT)),
    ]

    assert grades(derive(query(quote("It weighs 7 kg.")), ChunkIndex(chunks))) == {"a": 3, "b": 3}


def test_what_is_nowhere_is_lost_and_said():
    """A quote that the corpus no longer holds must not count as relevant anywhere."""
    gone = Evidence(doc_id="d", chunk_id="old", quote="The Gamma costs 1 euro.")

    found = derive(query(gone), ChunkIndex(cut(len(TEXT))))

    assert (found.judgments, found.lost, found.query.evidence) == ((), (gone,), (gone,))


def test_deriving_twice_changes_nothing():
    """A rerun must leave the files as they are."""
    index = ChunkIndex(cut(43, len(TEXT)))
    once = derive(query(quote("It weighs 9 kg.")), index).query

    assert derive(once, index).query == once


def test_the_judgments_name_the_evidence():
    """A reader of the qrels sees why a chunk is relevant."""
    [judgment] = derive(query(quote("It weighs 9 kg.")), ChunkIndex(cut(len(TEXT)))).judgments

    assert (judgment.source, judgment.evidence, judgment.contains_answer) == (
        "evidence",
        "It weighs 9 kg.",
        True,
    )


def test_a_quote_over_two_chunks_stays_as_the_document_has_it():
    """Between chunks the document may have blanks that no chunk tells of."""
    text = "The Alpha costs 40 euros.   It weighs 7 kg."
    chunks = [
        Chunk(chunk_id="a", doc_id="d", text=text[:25], start=0, end=25),
        Chunk(chunk_id="b", doc_id="d", text=text[28:], start=28, end=len(text)),
    ]
    over = Evidence(doc_id="d", chunk_id="old", quote=text[10:39], start=10, end=39)

    [item] = derive(query(over), ChunkIndex(chunks)).query.evidence

    assert (item.quote, item.start, item.end) == (text[10:39], 10, 39)
    assert item.prefix == text[:10]


BOTH = (quote("It weighs 7 kg."), quote("The Beta costs 40 euros."))


def test_a_chunk_with_one_statement_of_two_that_a_writer_quoted_has_a_part():
    """The answer needs both, though one passage had them when the query was written."""
    both = query(*BOTH)

    assert grades(derive(both, ChunkIndex(cut(43, len(TEXT))))) == {"c0": 2, "c1": 2}
    assert grades(derive(both, ChunkIndex(cut(len(TEXT))))) == {"c0": 3}


def test_a_chunk_with_one_of_two_quotes_of_people_may_answer_alone():
    """People quote the same answer at several places."""
    both = query(*BOTH).model_copy(update={"origin": "human"})

    assert grades(derive(both, ChunkIndex(cut(43, len(TEXT))))) == {"c0": 3, "c1": 3}
