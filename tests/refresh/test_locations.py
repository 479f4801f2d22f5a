from random import Random

import pytest
from changed_corpora import Change, chunks_of, evidence
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.config import RefreshSettings
from ragforge.records import Evidence, Query, Review

FILLER = "\n\n".join(
    f"Paragraph {number} speaks of matter {number * 7} and of nothing else that anybody asked for."
    for number in range(30)
)
QUOTE = "The default timeout of a client is 5 seconds."
PAGE = (
    f"{FILLER}\n\nClients wait for a while. {QUOTE} Pass None to wait for ever.\n\n{FILLER[:900]}"
)
OTHER = "An unrelated page on the colours of ducks, which are many and bright, and on their ponds."


def located(tmp_path, now, quote=QUOTE, *, before=None, doc_id="a.md", options=None, **query):
    change = Change(tmp_path, before or {"a.md": PAGE, "z.md": OTHER}, now)
    return change.located(quote, doc_id, options, **query)


def test_quote_of_a_document_that_did_not_change_is_kept_unread(tmp_path):
    """What did not change must cost nothing."""
    found = located(tmp_path, {"a.md": PAGE, "z.md": OTHER + " More."})

    assert (found.state, found.placement, found.causes) == ("kept", None, ())


def test_nothing_is_read_where_no_document_with_evidence_changed(tmp_path):
    """The cost must grow with what changed: the files may as well be gone."""
    change = Change(tmp_path, {"a.md": PAGE, "z.md": OTHER}, {"a.md": PAGE, "z.md": "New."})
    query = Query(
        query_id="q", query="?", evidence=(evidence(chunks_of(change.before), QUOTE, "a.md"),)
    )
    change.sight_all([query])
    change.parent.chunks_path.write_bytes(b"no chunk")

    assert change.sight_all([query])[0].state == "kept"


def test_quote_in_an_unchanged_chunk_is_kept(tmp_path):
    """An edit behind its chunk leaves all that the set says of it true."""
    found = located(tmp_path, {"a.md": f"{PAGE}\n\nAn end.", "z.md": OTHER})

    assert (found.state, found.causes) == ("kept", ())


def test_quote_in_a_chunk_at_another_offset_is_moved(tmp_path):
    """The same chunk further down needs new offsets, and no check."""
    found = located(tmp_path, {"a.md": f"A new beginning of it.\n\n{PAGE}", "z.md": OTHER})

    assert found.state == "moved"
    assert found.placement.start == len("A new beginning of it.\n\n") + PAGE.index(QUOTE)


def test_quote_with_the_same_text_around_it_is_moved(tmp_path):
    """An edit far away in the same chunk changes its id and nothing that was asked."""
    text = f"{'Word ' * 60}end. {QUOTE} And on."
    now = text.replace("Word Word", "Wort Word", 1)
    options = RefreshSettings(near_chars=40)
    found = located(tmp_path, {"a.md": now}, before={"a.md": text}, options=options)

    assert (found.state, [cause.kind for cause in found.causes]) == ("moved", ["document changed"])


def test_change_beside_a_quote_is_told(tmp_path):
    """A sentence beside it may take the answer back."""
    now = PAGE.replace("Pass None", "Since 2.0 this is ignored. Pass None")
    found = located(tmp_path, {"a.md": now, "z.md": OTHER})

    assert found.state == "nearby change"
    assert found.causes[0].detail == "the text within 300 characters of the quote changed"


def test_causes_name_the_digests_of_both_texts(tmp_path):
    """A reader of the diff must find the two texts."""
    found = located(tmp_path, {"a.md": PAGE.replace("Pass None", "Pass 0"), "z.md": OTHER})

    assert [len(digest) for digest in (found.causes[0].before, found.causes[0].after)] == [16, 16]


def test_change_just_beyond_the_reach_is_no_nearby_change(tmp_path):
    """The setting says exactly how far a change counts."""
    text, now = f"xy {QUOTE}", f"zy {QUOTE}"
    found = located(
        tmp_path, {"a.md": now}, before={"a.md": text}, options=RefreshSettings(near_chars=2)
    )

    assert found.state == "moved"


def test_change_just_within_the_reach_is_a_nearby_change(tmp_path):
    """The setting says exactly how far a change counts."""
    text, now = f"xy {QUOTE}", f"zy {QUOTE}"
    found = located(
        tmp_path, {"a.md": now}, before={"a.md": text}, options=RefreshSettings(near_chars=3)
    )

    assert found.state == "nearby change"


def test_surroundings_of_no_length_never_change(tmp_path):
    """Who sets 0 wants a check of lost quotes alone."""
    now = PAGE.replace("Clients wait for a while.", "Rewritten.").replace("Pass None", "Pass 0")
    found = located(tmp_path, {"a.md": now, "z.md": OTHER}, options=RefreshSettings(near_chars=0))

    assert found.state == "moved"


def test_other_blanks_are_no_change_around_a_quote(tmp_path):
    """A reflow of the whole document says nothing new."""
    now = PAGE.replace(". ", ".\n").replace("of ", "of  ")
    found = located(tmp_path, {"a.md": now, "z.md": OTHER})

    assert (found.state, found.placement.text) == ("moved", QUOTE.replace("of ", "of  "))


def test_quote_under_a_renamed_heading_far_above_is_moved(tmp_path):
    """Headings are text: far from the quote they are as far as any."""
    before = f"# Timeouts\n\n{PAGE}"
    found = located(tmp_path, {"a.md": f"# Limits\n\n{PAGE}"}, before={"a.md": before})

    assert found.state == "moved"


def test_quote_under_a_renamed_heading_is_a_nearby_change(tmp_path):
    """A title right above a sentence can change what it speaks of."""
    before = f"{FILLER}\n\n# Clients\n\n{QUOTE}\n"
    now = f"{FILLER}\n\n# Servers\n\n{QUOTE}\n"
    found = located(tmp_path, {"a.md": now}, before={"a.md": before})

    assert found.state == "nearby change"


def test_quotes_of_a_corpus_that_was_cut_anew_are_moved(tmp_path):
    """Another chunk size changes no word."""
    texts = {"a.md": PAGE, "z.md": OTHER}
    found = Change(tmp_path, texts, texts, max_chars_now=60).located(QUOTE, "a.md")

    assert (found.state, found.causes[0].kind) == ("moved", "document cut anew")


def test_quote_over_a_border_of_chunks_is_found_in_all_of_them(tmp_path):
    """Evidence may run from the end of one chunk into the next."""
    quote = "Clients wait for a while. The default timeout of a client is 5 seconds."
    texts = {"a.md": PAGE, "z.md": OTHER}
    found = Change(tmp_path, texts, texts, max_chars_now=50).located(quote, "a.md")

    assert (found.state, len(found.placement.chunks)) == ("moved", 2)


def test_quote_over_a_border_is_moved_where_its_second_chunk_changed(tmp_path):
    """The grades of all chunks that hold it must be told anew."""
    quote = FILLER[330:420]
    before = {"a.md": FILLER}
    now = {"a.md": FILLER.replace("Paragraph 8 speaks", "Paragraph 8 tells")}
    found = located(tmp_path, now, quote, before=before, options=RefreshSettings(near_chars=30))

    assert found.state == "moved"


def test_quote_of_a_renamed_document_is_moved_to_its_new_id(tmp_path):
    """A document whose text is the same is the same."""
    change = Change(tmp_path, {"a.md": PAGE}, {"b.md": PAGE}, renamed={"a.md": "b.md"})
    found = change.located(QUOTE, "a.md")
    [cause] = found.causes

    assert (found.state, found.doc_id) == ("moved", "b.md")
    assert (cause.kind, cause.before, cause.after) == ("document renamed", "a.md", "b.md")


@pytest.mark.parametrize(("quote", "doc_id"), [(QUOTE, "b.md"), ("of matter 7 and", "a.md")])
def test_quotes_of_a_document_split_in_two_are_found_in_the_part_that_has_them(
    tmp_path, quote, doc_id
):
    """A split loses no sentence."""
    half = PAGE.index("Clients wait")
    now = {"a.md": PAGE[:half], "b.md": PAGE[half:]}
    found = located(tmp_path, now, quote, before={"a.md": PAGE})

    assert (found.state in {"kept", "elsewhere"}, found.doc_id) == (True, doc_id)


def test_quote_of_a_document_merged_into_another_stands_elsewhere(tmp_path):
    """A merge loses no sentence; the other page may speak of something else, so it is checked."""
    found = located(tmp_path, {"z.md": f"{OTHER}\n\n{PAGE}"})
    [cause] = found.causes

    assert (found.state, found.doc_id) == ("elsewhere", "z.md")
    assert (cause.kind, cause.detail) == ("document removed", "the quote stands in z.md now")


def test_quote_that_also_stands_in_an_unchanged_document_is_found_there(tmp_path):
    """All documents count, not only those that changed."""
    before = {"a.md": PAGE, "z.md": f"{OTHER} {QUOTE}"}
    found = located(tmp_path, {"a.md": FILLER, "z.md": before["z.md"]}, before=before)

    assert (found.state, found.doc_id) == ("elsewhere", "z.md")


def test_quote_over_a_border_is_found_in_another_document(tmp_path):
    """The chunks of the other document may cut it."""
    sentence = "Many a long sentence of evidence runs over the border that a chunker draws. " * 4
    quote = f"{sentence.strip()} It ends {QUOTE}"
    found = Change(
        tmp_path, {"a.md": quote}, {"b.md": f"{FILLER[:200]}\n\n{quote}"}, max_chars_now=150
    ).located(quote, "a.md")

    assert (found.state, found.doc_id, len(found.placement.chunks) > 1) == (
        "elsewhere",
        "b.md",
        True,
    )


def test_of_several_documents_the_one_with_the_same_surroundings_is_taken(tmp_path):
    """Equal sentences speak of different things; those around them tell which."""
    before = {"a.md": f"Of clients. {QUOTE} So wait."}
    now = {"b.md": f"Of servers. {QUOTE} So go.", "c.md": f"Of clients. {QUOTE} So wait."}

    assert located(tmp_path, now, before=before).doc_id == "c.md"


def test_of_equal_documents_the_first_by_id_is_taken(tmp_path):
    """Same inputs, same bytes."""
    now = {"c.md": f"Of servers. {QUOTE}", "b.md": f"Of servers. {QUOTE}"}

    assert located(tmp_path, now).doc_id == "b.md"


def test_of_equal_quotes_the_one_in_the_same_surroundings_is_taken(tmp_path):
    """The second of two equal sentences stays the second."""
    text = f"One. {QUOTE} Two.\n\n{FILLER}\n\nThree. {QUOTE} Four.\n\n{FILLER[:500]}"
    item = evidence(chunks_of({"a.md": text}), f"Three. {QUOTE}", "a.md")
    second = item.model_copy(
        update={"quote": QUOTE, "start": item.start + 7, "prefix": "\nThree. ", "suffix": " Four."}
    )
    now = f"New here.\n\n{text}"
    change = Change(tmp_path, {"a.md": text}, {"a.md": now})
    [found] = change.sight_all([Query(query_id="q", query="?", evidence=(second,))])[0].quotes

    assert found.placement.start == now.rindex(QUOTE)


def test_one_of_places_that_read_alike_is_checked_where_another_one_is_gone(tmp_path):
    """What stands around them does not tell whether this is the one that was meant."""
    section = f"{FILLER[:600]}\n\n{QUOTE}\n\n{FILLER[:600]}"
    text = f"# Redis\n\n{section}\n\n# Kafka\n\n{section}"
    now = text.replace("is 5 seconds", "is 9 seconds", 1)

    assert located(tmp_path, {"a.md": now}, before={"a.md": text}).state == "nearby change"


def test_places_that_read_alike_move_together_without_a_check(tmp_path):
    """As many as before say the same."""
    section = f"{FILLER[:600]}\n\n{QUOTE}\n\n{FILLER[:600]}"
    text = f"# Redis\n\n{section}\n\n# Kafka\n\n{section}"
    now = f"A new beginning of it.\n\n{text}"

    assert located(tmp_path, {"a.md": now}, before={"a.md": text}).state == "moved"


@pytest.mark.parametrize(
    ("old", "new"),
    [("5 seconds", "10 seconds"), ("default", "present"), ("is 5", "is not 5")],
)
def test_quote_in_other_words_is_similar_and_no_more(tmp_path, old, new):
    """A number or a "not" turns an answer round, whatever the likeness: it must be read."""
    quote = f"{QUOTE} It counts for each of the phases of a request on its own, as you would think."
    before, now = f"{FILLER}\n\n{quote}", f"{FILLER}\n\n{quote.replace(old, new)}"
    found = located(tmp_path, {"a.md": now}, quote, before={"a.md": before})

    assert (found.state, found.placement.text) == ("similar", quote.replace(old, new))
    assert 0.9 <= found.likeness < 1


def test_quote_in_other_words_of_another_document_is_similar(tmp_path):
    """A page may be moved and touched up at once."""
    quote = f"{QUOTE} It counts for each of the phases of a request on its own, as you would think."
    other = f"{OTHER}\n\n{quote.replace('as you', 'as one')}"
    found = located(tmp_path, {"z.md": other}, quote, before={"a.md": f"{FILLER}\n\n{quote}"})

    assert (found.state, found.doc_id) == ("similar", "z.md")
    assert found.causes[0].detail == "98 % of the quote stands in z.md now"


def test_quote_that_stands_nowhere_is_gone(tmp_path):
    """What cannot be found must never stay as evidence."""
    found = located(tmp_path, {"a.md": FILLER, "z.md": OTHER})

    assert (found.state, found.doc_id, found.placement, found.likeness) == ("gone", "a.md", None, 0)
    assert found.causes[0].detail == "the quote stands nowhere now"


def test_verbatim_elsewhere_goes_before_other_words_at_home(tmp_path):
    """Nothing about the wording is then in doubt."""
    now = {"a.md": PAGE.replace("5 seconds", "6 seconds"), "z.md": f"{OTHER} {QUOTE}"}
    found = located(tmp_path, now, options=RefreshSettings(similar_least=0.8))

    assert (found.state, found.doc_id) == ("elsewhere", "z.md")


@pytest.mark.parametrize(
    "quote",
    [
        "客户端的默认超时时间为五秒钟,可以通过参数修改。",
        "E\u0301te\u0301 : le de\u0301lai est de 5\u202fs.",
        r"Use ^(a|b)+$ or [x-z]{2,}\d* \\ (twice).",
        "각 클라이언트의 기본 제한 시간은 5초입니다.",
    ],
)
@pytest.mark.parametrize("doc_id", ["a.md", "b.md"])
def test_quotes_of_any_script_are_found(tmp_path, quote, doc_id):
    """Blanks between words and plain letters are no rule of the world."""
    now = {doc_id: f"{OTHER}\n\n{quote} {OTHER}", "c.md": OTHER}
    found = located(tmp_path, now, quote, before={"a.md": f"{FILLER}\n\n{quote}"})

    assert (found.doc_id, quote in found.placement.text) == (doc_id, True)


def test_line_of_a_megabyte_without_blanks_is_searched(tmp_path):
    """Hostile documents must not stop the night."""
    signs = [chr(0x4E00 + number) for number in range(20_000)]
    line = "".join(Random(1).choices(signs, k=1_000_000))
    now = f"{line[:500_000]}X{line[500_000:]}"
    found = located(tmp_path, {"a.md": now}, line[499_950:500_050], before={"a.md": line})

    assert (found.state, "X" in found.placement.text) == ("similar", True)


def test_each_quote_of_a_query_stands_for_itself(tmp_path):
    """A query of several hops is as its worst quote."""
    chunks = chunks_of({"a.md": PAGE, "z.md": OTHER})
    items = (evidence(chunks, QUOTE, "a.md"), evidence(chunks, "the colours of ducks", "z.md"))
    change = Change(tmp_path, {"a.md": PAGE, "z.md": OTHER}, {"a.md": FILLER, "z.md": OTHER})
    [found] = change.sight_all([Query(query_id="q", query="?", evidence=items)])

    assert [quote.state for quote in found.quotes] == ["gone", "kept"]
    assert found.state == "gone"


def test_queries_come_back_in_their_order(tmp_path):
    """Sights are told apart by their place; queries without evidence have none of their own."""
    queries = [Query(query_id=name, query="?", source_chunk_ids=("c",)) for name in "cab"]
    found = Change(tmp_path, {"a.md": PAGE}, {"a.md": FILLER}).sight_all(queries)

    assert [(item.query.query_id, item.state) for item in found] == [
        ("c", "kept"), ("a", "kept"), ("b", "kept"),
    ]  # fmt: skip


def test_what_a_person_rejected_is_not_looked_at(tmp_path):
    """Nothing brings it back."""
    review = Review(decision="reject", by="ann")
    found = located(tmp_path, {"a.md": FILLER}, status="retired", reviewed=review)

    assert found.state == "kept"


@pytest.mark.parametrize("status", ["retired", "quarantined"])
def test_quote_that_was_lost_before_stays_lost_in_an_unchanged_document(tmp_path, status):
    """A document that did not change since gives no query its quote back."""
    now = {"a.md": FILLER, "z.md": "New."}
    found = located(tmp_path, now, before={"a.md": FILLER, "z.md": OTHER}, status=status)

    assert found.state == "gone"


def test_quote_that_comes_back_is_found(tmp_path):
    """A query that had lost it can be revived; what stands around it was not known."""
    before = {"a.md": FILLER, "z.md": OTHER}
    found = located(tmp_path, {"a.md": PAGE, "z.md": OTHER}, before=before, status="retired")

    assert (found.state, found.placement.text) == ("nearby change", QUOTE)


def test_quote_that_comes_back_in_a_new_document_is_found(tmp_path):
    """The cause is the document that has it, as its own did not change."""
    before = {"a.md": FILLER}
    found = located(tmp_path, {"a.md": FILLER, "n.md": PAGE}, before=before, status="retired")

    assert (found.state, found.doc_id) == ("elsewhere", "n.md")
    assert (found.causes[0].kind, found.causes[0].doc_id) == ("document added", "n.md")


def test_quote_of_a_quarantined_query_that_still_stands_is_kept(tmp_path):
    """It was quarantined for something else."""
    found = located(tmp_path, {"a.md": PAGE, "z.md": "New."}, status="quarantined")

    assert (found.state, found.placement) == ("kept", None)


WORDS = st.text(alphabet="abc .\n5é客", min_size=1, max_size=40)


@settings(max_examples=40, deadline=None)
@given(edit=WORDS, place=st.integers(0, len(FILLER) - 320))
def test_edit_far_away_gives_nothing_worse_than_moved(tmp_path_factory, edit, place):
    """A refresh must ask no model about what nobody touched."""
    now = PAGE[:place] + edit + PAGE[place:]
    found = located(tmp_path_factory.mktemp("far"), {"a.md": now, "z.md": OTHER})

    assert found.state in {"kept", "moved"}


@settings(max_examples=40, deadline=None)
@given(start=st.integers(0, len(PAGE) - 60), size=st.integers(24, 50), cut=st.integers(20, 300))
def test_quote_that_stands_in_another_document_is_never_gone(tmp_path_factory, start, size, cut):
    """Whatever the chunks of that document, a text of some words that is there is found.

    Of a few characters over the border of two chunks, neither has enough to go by.
    """
    quote = PAGE[start : start + size].strip() or QUOTE
    now = {"n.md": f"{OTHER}\n\n{PAGE}"}
    change = Change(tmp_path_factory.mktemp("else"), {"a.md": PAGE}, now, max_chars_now=cut)
    found = change.located(quote, "a.md")

    assert found.state == "elsewhere"


@settings(max_examples=40, deadline=None)
@given(left=WORDS, right=WORDS)
def test_quote_that_was_deleted_never_stays(tmp_path_factory, left, right):
    """Evidence that is gone must never pass for true."""
    now = PAGE.replace(QUOTE, "").replace("Clients", left).replace("Pass", right)
    found = located(tmp_path_factory.mktemp("gone"), {"a.md": now, "z.md": OTHER})

    assert found.state == "gone"


def test_imported_evidence_in_an_unchanged_document_is_not_moved(tmp_path):
    """That it came without offsets is no change that could bring a quarantined query back."""
    bare = Evidence(doc_id="a.md", chunk_id="x", quote=QUOTE)
    query = Query(query_id="q", query="?", evidence=(bare,), status="quarantined")
    change = Change(tmp_path, {"a.md": PAGE, "z.md": OTHER}, {"a.md": PAGE, "z.md": "New."})
    [found] = change.sight_all([query])

    assert (found.state, found.causes) == ("kept", ())
