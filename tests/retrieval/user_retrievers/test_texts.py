"""Tests of hits that are texts of another splitter, or offsets, and no chunks of the set."""

import math
import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest

from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import Document
from ragforge.corpus.file_text_locator import FileTextLocator
from ragforge.corpus.file_texts import file_texts
from ragforge.corpus.markdown_reading import read_markdown
from ragforge.corpus.text_locations import TextLocator, documents_of
from ragforge.errors import DataError
from ragforge.records import Chunk, Ranking, Span, text_id
from ragforge.retrieval.corpus_documents import CorpusDocuments
from ragforge.retrieval.retrieved_texts import RetrievedTexts
from ragforge.retrieval.user_retrievers import ResultReader

APPLES = "Apples are grown in orchards, and are picked by hand in autumn. "
PEARS = "Pears ripen off the tree, which is why they are picked while hard."
QUINCES = "Quinces are too hard to eat raw, and are cooked into jam."


@pytest.fixture
def corpus():
    return [
        Chunk(chunk_id="c1", doc_id="fruit/a.md", text=APPLES, start=0, end=64),
        Chunk(chunk_id="c2", doc_id="fruit/a.md", text=PEARS, start=64, end=130),
        Chunk(chunk_id="c3", doc_id="fruit/b.md", text=QUINCES, start=0, end=57),
    ]


@pytest.fixture
def taken(corpus):
    return RetrievedTexts(CorpusDocuments(corpus, documents_of, FileTextLocator))


@pytest.fixture
def notes():
    return []


@pytest.fixture
def reader(corpus, taken, notes):
    return ResultReader("it", corpus, notes.append, taken)


def ids(reader, result):
    return [hit.chunk_id for hit in reader.read(result, "q", 10)]


def settled(reader, taken, result):
    [ranking] = taken.settle([Ranking(query_id="q", ranking=reader.read(result, "q", 10))])
    return [hit.chunk_id for hit in ranking.ranking]


def located(taken):
    [text] = taken.located(taken.ids)
    return [(span.doc_id, span.start, span.end) for span in text.places]


PART = "picked by hand in autumn. Pears ripen off the tree"


@pytest.mark.parametrize(
    "hit",
    [
        PART,
        {"text": PART},
        {"id": "0b5e", "content": PART},
        {"id": 7, "payload": {"page_content": PART}},
        SimpleNamespace(page_content=PART, metadata={"source": "/srv/me/fruit/a.md"}, id=None),
        SimpleNamespace(node=SimpleNamespace(id_="x", text=PART, metadata={}), score=1.0),
        SimpleNamespace(id="9f", content=PART, meta={"file_path": "a.md"}, score=0.5),
    ],
)
def test_a_text_that_is_no_chunk_is_that_text(reader, taken, hit):
    """Whoever has an index has chunks of his own, and they can be judged all the same."""
    assert settled(reader, taken, [hit]) == [text_id(PART)]
    assert located(taken) == [("fruit/a.md", 38, 88)]


@pytest.mark.parametrize("text", ["号许可证的费用为121元整", "渔船可以停泊在港口两小时不收费"])
def test_a_bare_text_without_blanks_is_a_text(text):
    """Chinese, Japanese and Thai put none between words."""
    whole = f"第3{text}。孩子钓鱼不用许可证。"
    chunks = [Chunk(chunk_id="第3号", doc_id="费用.md", text=whole, start=0, end=len(whole))]
    taken = RetrievedTexts(CorpusDocuments(chunks, documents_of, FileTextLocator))
    reader = ResultReader("it", chunks, texts=taken)

    assert settled(reader, taken, ["第3号", text, "第4号"]) == ["第3号", text_id(text), "第4号"]
    assert located(taken) == [("费用.md", 2, 2 + len(text))]


MARKUP = "Write <b>big</b> words as &lt;b&gt; &amp; close them; <i>small</i> ones need none."
PLAIN = "Plain words stand alone & need no tag, as 1 < 2 and 3 > 2 do in sums."


@pytest.fixture
def about_markup():
    """Two chunks, of which one is about tags and entities, cut from one document."""
    return [
        Chunk(chunk_id="tags", doc_id="html.txt", text=MARKUP, start=0, end=len(MARKUP)),
        Chunk(
            chunk_id="plain",
            doc_id="html.txt",
            text=PLAIN,
            start=len(MARKUP) + 1,
            end=len(MARKUP) + 1 + len(PLAIN),
        ),
    ]


@pytest.fixture
def marked(about_markup):
    """What hits are settled to in the documents about tags."""
    taken = RetrievedTexts(CorpusDocuments(about_markup, documents_of, FileTextLocator))
    reader = ResultReader("it", about_markup, texts=taken)
    return lambda *hits: settled(reader, taken, [*hits])


@pytest.mark.parametrize(
    "text",
    [
        "Plain <em>words</em> stand alone & need no <em>tag</em>, as 1 < 2 and 3 > 2 do in sums.",
        '<p class="hit">Plain <mark data-n="1">words</mark> stand alone &amp; need no tag,<br/>'
        "as 1 &lt; 2 and 3 &gt; 2 do in sums.</p>",
        "<div>Plain <B>words</B> stand alone &#38; need no tag,</div><div>as 1 &#x3C; 2 and 3 &gt; "
        "2 do in sums.</div>",
    ],
)
@pytest.mark.parametrize("name", [{}, {"document": "html.txt"}])
def test_a_chunk_with_markup_of_a_service_is_that_chunk(marked, text, name):
    """Search engines highlight what they find, and escape it: that makes no other ranking."""
    assert marked({"text": text, **name}) == ["plain"]


@pytest.mark.parametrize(
    "text",
    [
        "need no tag, as <em>1</em> < 2 and 3 > 2",
        "need no <span style='x'>tag</span>, as 1 &lt; 2 and 3 &gt; 2",
        "<p>need no tag, as 1 < 2</p><p>and 3 > 2</p>",
    ],
)
def test_a_text_with_markup_of_a_service_is_that_text(marked, text):
    """The same stretch by whatever service has one id, and so one grade."""
    assert marked({"text": text, "document": "html.txt"}) == [
        text_id("need no tag, as 1 < 2 and 3 > 2")
    ]


def test_a_title_before_it_makes_no_other_text_of_one_with_markup(marked):
    """Services put a heading before what they highlight."""
    bare = "On words\n\nwords stand alone & need no tag, as 1 < 2 and 3 > 2 do in sums."
    assert marked({"text": bare.replace("tag", "<em>tag</em>")}) == marked({"text": bare})


@pytest.mark.parametrize(
    "text",
    [
        MARKUP,
        MARKUP.replace("words", "<em>words</em>"),
        MARKUP.replace("words", "<b>words</b>"),
        MARKUP.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
    ],
)
def test_a_chunk_about_markup_keeps_its_own(marked, text):
    """Code about HTML has tags, which are no highlights."""
    assert marked({"text": text}) == ["tags"]


def test_a_stretch_about_markup_keeps_its_own(marked):
    """What stands in the documents as it is needs no other reading."""
    part = "big</b> words as &lt;b&gt; &amp; close them"
    assert marked({"text": part}) == [text_id(part)]
    assert marked({"text": part.replace("close", "<em>close</em>")}) == [text_id(part)]


def test_tags_that_a_document_has_are_not_taken_out_for_another_chunk():
    """A stretch with tags is not the chunk that says the same without them."""
    texts = ["Use it as <b>bold</b> in HTML, and as **bold** in Markdown.", "Use it as bold"]
    chunks = [
        Chunk(chunk_id="c1", doc_id="a", text=texts[0], start=0, end=59),
        Chunk(chunk_id="c2", doc_id="a", text=texts[1], start=60, end=74),
    ]
    taken = RetrievedTexts(CorpusDocuments(chunks, documents_of, TextLocator))
    reader = ResultReader("it", chunks, texts=taken)

    assert settled(reader, taken, ["Use it as <b>bold</b>"]) == [text_id("Use it as <b>bold</b>")]


def test_a_text_with_markup_that_stands_nowhere_is_as_it_was(reader, taken):
    """Nothing tells there what is markup."""
    text = "Kumquats are <em>not</em> grown by any of these gardeners &amp; their friends."
    assert settled(reader, taken, [{"text": text}]) == [text_id(text)]


def test_one_text_with_and_without_markup_counts_once(marked):
    """It is one place of the documents, however often it comes."""
    part = "need no tag, as 1 < 2 and 3 > 2"
    found = marked({"text": part}, {"text": part.replace("tag", "<em>tag</em>")}, {"text": PLAIN})

    assert found == [text_id(part), "plain"]


def test_a_text_that_is_a_chunk_is_that_chunk(reader, taken):
    """Its grades are there already."""
    assert ids(reader, [{"id": "0b5e", "text": QUINCES}]) == ["c3"]
    assert not taken.ids


@pytest.mark.parametrize(
    "hit",
    [
        {"id": "c1", "text": QUINCES},
        SimpleNamespace(page_content=QUINCES, metadata={"chunk_id": "c1"}, id="0b5e"),
        SimpleNamespace(node=SimpleNamespace(id_="c1", text=QUINCES, metadata={}), score=1.0),
        ({"id": "c1", "text": QUINCES}, 0.5),
    ],
)
def test_an_id_with_the_text_of_another_chunk_is_that_chunk(reader, taken, hit):
    """An index that numbers its pieces itself has ids of the set by chance, and took its grades."""
    assert settled(reader, taken, [hit]) == ["c3"]
    assert (taken.n_misnamed, taken.misnamed[0]) == (1, "c1")


@pytest.mark.parametrize("text", [PART, "The one-gadget costs one dollar, as everybody knows."])
def test_an_id_with_a_text_that_is_no_chunk_is_that_text(reader, taken, text):
    """An index of yesterday has other texts under the ids of today."""
    assert settled(reader, taken, [{"id": "c1", "text": text}]) == [text_id(text)]
    assert (taken.n_misnamed, taken.misnamed) == (1, ("c1", text))


@pytest.mark.parametrize(
    "text",
    [
        APPLES,
        "Apples are grown in orch",
        "Apples are grown in orchards, and are picked…",
        "…grown in orchards, and are […] by hand in autumn.",
        f"Fruit > Apples\n\n{APPLES}",
        "Fruit > Apples: Apples are grown in orchards, and are picked by hand…",
        "**Apples** are grown in [orchards](https://orchard.example), and are picked by *hand*.",
        "Apples are grown in <em>orchards</em>, and are <em>picked</em> by hand in autumn.",
        " ".join(f"<em>{word}</em>" for word in APPLES.split()),
        f"This passage is about what a gardener does, and when. {APPLES} It is of a handbook.",
        "orchards",
        "?",
        "",
    ],
)
def test_an_id_counts_where_the_text_is_cut_or_written_otherwise(reader, taken, text):
    """Services cut texts short, put headings before them and mark what was found."""
    assert ids(reader, [{"id": "c1", "text": text}]) == ["c1"]
    assert not taken.n_misnamed


def test_one_of_several_texts_is_enough_for_an_id(reader):
    """A store holds a title, or a summary, beside the text."""
    hit = {"id": "c1", "text": "What a gardener should know.", "metadata": {"content": APPLES}}

    assert ids(reader, [hit]) == ["c1"]


def test_another_text_of_one_id_is_another_hit(reader, taken):
    """Ids of an index may count within a document."""
    hits = [{"id": "c1", "text": APPLES}, {"id": "c1", "text": QUINCES}, {"id": "c1"}]

    assert settled(reader, taken, hits) == ["c1", "c3"]


def test_a_document_is_retrieved_for_its_text_alone(corpus):
    """Where labels name documents, an id with the text of another one is none of it."""
    taken = RetrievedTexts(CorpusDocuments(corpus, documents_of, TextLocator, names_documents=True))
    reader = ResultReader("it", corpus, texts=taken)
    hits = [{"id": "fruit/a.md", "text": PEARS}, {"id": "fruit/b.md", "text": APPLES}]

    assert ids(reader, hits) == ["fruit/a.md", "c1"]
    assert taken.n_misnamed == 1


def test_a_hit_that_names_its_document_too_is_not_told_to_be_misnamed(corpus):
    """It counts as one of that document, whatever is shown of it."""
    taken = RetrievedTexts(CorpusDocuments(corpus, documents_of, TextLocator, names_documents=True))
    reader = ResultReader("it", corpus, texts=taken)
    hit = {"id": "fruit/a.md", "document": "fruit/a.md", "text": "No preview of this page."}
    reader.read([hit], "q", 10)
    [text] = taken.located(taken.ids)

    assert (text.doc_ids, taken.n_misnamed) == (("fruit/a.md",), 0)


def test_what_was_cut_for_a_sweep_is_known_by_its_id(corpus):
    """It was handed over with that; only the text of another chunk says otherwise."""
    reader = ResultReader("it", corpus)

    assert ids(reader, [{"id": "c1", "text": "About apples."}]) == ["c1"]
    assert ids(reader, [{"id": "c1", "text": QUINCES}]) == ["c3"]


def test_blanks_make_no_other_text(reader):
    """A splitter that joins lines cuts the same piece."""
    assert ids(reader, [{"text": "picked  by\nhand in autumn"}]) == [
        text_id("picked by hand in autumn")
    ]


LAW = "허가증 수수료는 창구에서 내며, 서류는 반드시 우편으로 보낸다. Café français où l'on paie."
RULE = "신청은 매월 첫째 주에 받고, 결과는 다음 달에 알린다. Réponse après un mois."
FORMS = ["NFC", "NFD"]


def in_form(form, *texts):
    """Return a reader of the hits of a set with one document in a normal form, and its texts."""
    return of_chunks([unicodedata.normalize(form, text) for text in texts])


def of_chunks(texts):
    chunks, start = [], 0
    for number, text in enumerate(texts):
        place = {"start": start, "end": start + len(text)}
        chunks.append(Chunk(chunk_id=f"c{number}", doc_id="법.md", text=text, **place))
        start += len(text) + 1
    taken = RetrievedTexts(CorpusDocuments(chunks, documents_of, FileTextLocator))
    return ResultReader("it", chunks, texts=taken), taken


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("of_set", FORMS)
def test_a_text_is_the_same_in_any_normal_form(of_set, form):
    """Files of PDF and of macOS have NFD: such a run had TokenP 0.21 where the same had 0.39."""
    reader, taken = in_form(of_set, LAW, RULE)
    hit = {"text": unicodedata.normalize(form, LAW[4:-6]), "source": "법.md"}

    assert settled(reader, taken, [hit]) == [text_id(unicodedata.normalize(of_set, LAW[4:-6]))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("of_set", FORMS)
def test_a_chunk_is_the_same_in_any_normal_form(of_set, form):
    """By its text alone, with marks of a service, and where its document has another name."""
    reader, _ = in_form(of_set, LAW, RULE)
    told = unicodedata.normalize(form, RULE)
    marked = told.replace("매월", "<em>매월</em>").replace(
        unicodedata.normalize("NFD", "매월"), "<em>매월</em>"
    )

    assert [ids(reader, [text]) for text in (told, marked)] == [["c1"], ["c1"]]


def test_a_text_has_the_form_of_its_place_where_a_set_has_several():
    """A chunk file may be made of PDF and of pages."""
    reader, taken = of_chunks([LAW, unicodedata.normalize("NFD", RULE)])
    texts = (LAW[4:-6], unicodedata.normalize("NFD", RULE[3:-6]))
    hits = [unicodedata.normalize(form, text) for text in texts for form in FORMS]

    assert settled(reader, taken, hits) == [*map(text_id, texts)]


def test_line_ends_and_control_characters_make_no_other_text(reader, taken):
    """Documents are read without them, so that no text of theirs has any."""
    hit = "\ufeffpicked by hand\r\nin autumn.\x0c Pears\x00 ripen off the tree"
    [chunk_id] = settled(reader, taken, [hit])

    assert chunk_id == text_id("picked by hand in autumn. Pears ripen off the tree")
    assert len(taken.text(chunk_id)) == len(hit) - 3


def test_a_text_of_control_characters_alone_is_as_it_was(reader, taken):
    """It is no empty text, which no file may hold."""
    [chunk_id] = settled(reader, taken, ["\x00\ufeff \x00"])

    assert taken.text(chunk_id) == "\x00\ufeff \x00"


@pytest.mark.parametrize("end", [32, 33])
@pytest.mark.parametrize("start", [11, 12])
def test_a_stretch_has_the_place_of_its_words(reader, taken, start, end):
    """Given as a text it has no other; of two places each run would be measured otherwise."""
    hits = [{"doc_id": "fruit/b.md", "start": start, "end": end}, {"text": QUINCES[start:end]}]
    together = [
        Ranking(query_id=f"q{at}", ranking=reader.read([hit], "q", 10))
        for at, hit in enumerate(hits)
    ]
    taken.settle(together)

    assert located(taken) == [("fruit/b.md", 12, 32)]


def test_a_stretch_and_a_text_at_one_place_of_several_are_one():
    """A blank before it would make a place, and an id, of its own."""
    line = "Press the button and wait for the light."
    chunks = [Chunk(chunk_id="c", doc_id="d", text=f"{line} {line}", start=0, end=81)]
    taken = RetrievedTexts(CorpusDocuments(chunks, documents_of, FileTextLocator))
    reader = ResultReader("it", chunks, texts=taken)
    stretch = {"doc_id": "d", "start": 40, "end": 81}
    text = {"text": f" {line}", "metadata": {"source": "d", "start_index": 40}}

    assert len(settled(reader, taken, [stretch, text])) == 1


def test_offsets_are_that_stretch_of_the_document(reader, taken):
    """An index may hold nothing but where its pieces stand."""
    hit = {"doc_id": "fruit/b.md", "start": 12, "end": 31}

    assert settled(reader, taken, [hit]) == [text_id(QUINCES[12:31])]
    assert located(taken) == [("fruit/b.md", 12, 31)]


@pytest.mark.parametrize(
    ("start", "end"), [(12.0, 31.0), ("12", "31"), ("12.0", " 31 "), (np.float32(12), np.int32(31))]
)
def test_whole_offsets_are_read_whatever_their_type(reader, taken, start, end):
    """Tables with an empty cell hold floats, and some vector stores nothing but texts."""
    hit = {"doc_id": "fruit/b.md", "start": start, "end": end}

    assert settled(reader, taken, [hit]) == [text_id(QUINCES[12:31])]


def test_offsets_of_a_chunk_are_that_chunk(reader):
    """However it is named."""
    assert ids(reader, [{"doc_id": "b.md", "start": 0, "end": 500}]) == ["c3"]


def test_a_document_without_offsets_is_no_hit(reader):
    """There is nothing to judge."""
    with pytest.raises(DataError, match="cannot tell which chunk"):
        reader.read([{"doc_id": "b.md"}], "q", 10)


@pytest.mark.parametrize(
    ("hit", "expected"),
    [
        ({"doc_id": "b.md", "start": 70, "end": 90}, "b.md[70:90]"),
        ({"doc_id": "b.md", "start": 10**7, "end": 10**7 + 9}, "b.md[10000000:10000009]"),
        ({"doc_id": "b.md", "start": 9, "end": 3}, "b.md[9:3]"),
        ({"doc_id": "b.md", "start": -9, "end": 3}, "b.md[-9:3]"),
        ({"doc_id": "b.md", "start": 1.0, "end": 9.5}, "b.md[1.0:9.5]"),
        ({"doc_id": "b.md", "start": "one", "end": "9"}, "b.md[one:9]"),
        ({"doc_id": "b.md", "start": "1.5", "end": "9"}, "b.md[1.5:9]"),
        ({"doc_id": "b.md", "start": True, "end": 9}, "b.md[True:9]"),
        ({"doc_id": "b.md", "start": 1, "end": math.nan}, "b.md[1:nan]"),
        ({"doc_id": "b.md", "start": 1, "end": math.inf}, "b.md[1:inf]"),
        ({"doc_id": "b.md", "start": 1}, "b.md[1:]"),
        ({"doc_id": "z.md", "start": 1, "end": 9}, "z.md[1:9]"),
        ({"start": 1, "end": 9}, "no document[1:9]"),
    ],
)
def test_a_hit_with_offsets_that_hold_nothing_keeps_its_rank_alone(reader, notes, hit, expected):
    """The other hits of the query are as good as before."""
    assert ids(reader, ["c1", hit, "c3"]) == ["c1", expected, "c3"]
    assert f"a hit is the stretch {expected}, which no document" in notes[0]


def test_an_unknown_id_without_text_is_kept(reader, taken):
    """It may be a chunk of an index that is some documents ahead."""
    assert ids(reader, ["gone", {"id": "gone too"}]) == ["gone", "gone too"]
    assert not taken.ids


def test_hits_without_any_text_are_left_out_and_told(reader, notes):
    """They fill no prompt."""
    assert ids(reader, [{"text": " "}, {"text": PART}, {"page_content": ""}]) == [text_id(PART)]
    assert notes == [
        "it: a hit has neither an id nor any text, for the query 'q'; such are left out (said once)"
    ]


@pytest.mark.parametrize(("text", "expected"), [(PART, text_id(PART)), (QUINCES, "c3")])
def test_a_text_of_one_place_that_comes_twice_counts_once(reader, taken, text, expected):
    """An index that holds a document twice retrieves its pieces twice."""
    assert settled(reader, taken, [{"id": "1", "text": text}, {"id": "2", "text": text}]) == [
        expected
    ]
    assert taken.n_repeated == 1


def test_a_text_of_several_documents_is_told_apart_by_the_one_that_is_named(corpus):
    """Boilerplate stands everywhere."""
    same = "This page was reviewed by the fruit council of the valley."
    chunks = [
        Chunk(chunk_id=f"c{n}", doc_id=f"{n}.md", text=f"{n} {same} {n}", end=len(same) + 4)
        for n in (1, 2)
    ]
    taken = RetrievedTexts(CorpusDocuments(chunks, documents_of, TextLocator))
    reader = ResultReader("it", chunks, texts=taken)
    reader.read([{"text": same, "metadata": {"url": "https://fruit.example/2/"}}], "q", 10)

    assert located(taken) == [("2.md", 2, 2 + len(same))]


def test_a_text_that_stands_nowhere_keeps_the_document_that_it_came_with(reader, taken):
    """A summary that a model wrote is of that document all the same."""
    reader.read([{"text": "What a gardener should know.", "source": "b.md"}], "q", 10)
    [text] = taken.located(taken.ids)

    assert (text.places, text.doc_ids) == ((), ("fruit/b.md",))


def test_whatever_comes_first_the_same_text_is_written(corpus):
    """Queries are asked beside each other, and a rerun must write the same bytes."""
    spellings = ["picked by hand", "picked  by hand"]
    written = []
    for order in (spellings, spellings[::-1]):
        taken = RetrievedTexts(CorpusDocuments(corpus, documents_of, TextLocator))
        reader = ResultReader("it", corpus, texts=taken)
        for spelling in order:
            reader.read([{"text": spelling}], "q", 10)
        written.append([text.model_dump_json() for text in taken.located(taken.ids)])

    assert written[0] == written[1]


def test_a_lone_surrogate_is_replaced(reader, taken):
    """No file can hold it."""
    reader.read([{"text": "a broken \ud800 piece of text"}], "q", 10)
    [text] = taken.located(taken.ids)

    assert text.text == "a broken ? piece of text"


def test_a_whole_document_is_retrieved_by_its_name_where_labels_name_documents(corpus):
    """Its labels are measured on documents."""
    taken = RetrievedTexts(CorpusDocuments(corpus, documents_of, TextLocator, names_documents=True))
    reader = ResultReader("it", corpus, texts=taken)

    assert ids(reader, [{"id": "fruit/a.md", "text": APPLES + PEARS}]) == ["fruit/a.md"]


def test_an_id_of_its_own_takes_no_hit_from_the_document_that_it_names(corpus):
    """Indexes number what they hold, and labels that name documents ask for no more."""
    taken = RetrievedTexts(CorpusDocuments(corpus, documents_of, TextLocator, names_documents=True))
    reader = ResultReader("it", corpus, texts=taken)
    hits = [{"id": "own-7", "document": "fruit/b.md"}, {"id": "own-8", "document": "unknown.md"}]

    assert ids(reader, hits) == ["fruit/b.md", "unknown.md"]


@pytest.mark.parametrize(
    ("hit", "expected"),
    [
        ({"document": "new.md"}, ["new.md"]),
        ({"metadata": {"source": "pages/new.md"}}, ["pages/new.md"]),
        ({"id": "own-1", "metadata": {"source": "confluence"}}, ["own-1"]),
        ({"id": "own-1", "document": "c1"}, ["own-1"]),
    ],
)
def test_a_hit_of_a_document_that_the_set_lacks_is_that_document(corpus, hit, expected):
    """It fills a rank as any other; what it is called by must be a name of one."""
    chunks = [*corpus, corpus[0].model_copy(update={"chunk_id": "c1"})]
    taken = RetrievedTexts(CorpusDocuments(chunks, documents_of, TextLocator, names_documents=True))
    reader = ResultReader("it", chunks, texts=taken)

    assert ids(reader, [hit]) == expected


def test_a_text_of_a_document_that_the_set_lacks_keeps_its_name(corpus):
    """Several of its texts are one document where labels name documents."""
    taken = RetrievedTexts(CorpusDocuments(corpus, documents_of, TextLocator, names_documents=True))
    reader = ResultReader("it", corpus, texts=taken)
    hits = reader.read([{"document": "new.md", "text": "Bergen is where we move in May."}], "q", 9)
    taken.settle([Ranking(query_id="q", ranking=tuple(hits))])

    assert [text.doc_ids for text in taken.located(taken.ids)] == [("new.md",)]


def test_an_id_of_its_own_is_no_document_where_labels_name_chunks(corpus, reader):
    """A chunk that the set does not have is not all of its document."""
    assert ids(reader, [{"id": "own-7", "document": "fruit/b.md"}]) == ["own-7"]


def test_llama_index_names_the_document_of_a_node_in_its_relations(corpus, taken, reader):
    """Its metadata need not."""
    source = SimpleNamespace(node_id="fruit/a.md", metadata={})
    node = SimpleNamespace(id_="x", text="What nobody wrote.", metadata={})
    node.relationships = {"1": source, "2": [source]}
    reader.read([SimpleNamespace(node=node, score=1.0)], "q", 10)
    [text] = taken.located(taken.ids)

    assert text.doc_ids == ("fruit/a.md",)


def test_offsets_tell_places_of_one_document_apart():
    """A line that comes again and again is where the splitter says that it is."""
    line = "Press the button and wait for the light. "
    chunks = [Chunk(chunk_id="c", doc_id="d", text=line * 3, start=0, end=len(line) * 3)]
    taken = RetrievedTexts(CorpusDocuments(chunks, documents_of, TextLocator))
    hit = {"text": line, "metadata": {"source": "d", "start_index": len(line)}}
    ResultReader("it", chunks, texts=taken).read([hit], "q", 10)
    [text] = taken.located(taken.ids)

    assert text.places == (Span(doc_id="d", start=41, end=81),)


@pytest.fixture
def versions():
    """Five documents with one sentence, of which the last is a chunk by itself."""
    chunks = [
        Chunk(chunk_id=f"c{n}", doc_id=f"v{n}.md", text=f"{n} {BOILERPLATE} {n}", end=SIZE + 4)
        for n in range(4)
    ]
    return [*chunks, Chunk(chunk_id="c4", doc_id="v4.md", text=BOILERPLATE, end=SIZE)]


BOILERPLATE = "This page was reviewed by the fruit council of the valley."
SIZE = len(BOILERPLATE)


def hit_of(n):
    return {"text": BOILERPLATE, "metadata": {"source": f"/srv/v{n}.md"}}


def stretch_of(n):
    return {"doc_id": f"v{n}.md", "start": 2, "end": 2 + SIZE}


@pytest.mark.parametrize("make", [hit_of, stretch_of])
def test_one_text_of_several_documents_is_one_hit_of_each(versions, make):
    """What an index says of five versions takes five places, and the evidence is behind them."""
    taken = RetrievedTexts(CorpusDocuments(versions, documents_of, TextLocator))
    reader = ResultReader("it", versions, texts=taken)
    found = settled(reader, taken, [make(n) for n in range(4)])

    assert found == [text_id(BOILERPLATE, f"v{n}.md") for n in range(4)]
    assert {text.chunk_id: text.places for text in taken.located(taken.ids)} == {
        found[n]: (Span(doc_id=f"v{n}.md", start=2, end=2 + SIZE),) for n in range(4)
    }


def test_a_text_that_is_a_chunk_of_another_document_is_of_the_one_that_is_named(versions):
    """A copy elsewhere is another hit."""
    taken = RetrievedTexts(CorpusDocuments(versions, documents_of, TextLocator))
    reader = ResultReader("it", versions, texts=taken)

    assert settled(reader, taken, [hit_of(4), hit_of(1)]) == ["c4", text_id(BOILERPLATE, "v1.md")]


def test_of_equal_chunks_a_text_is_that_of_its_document():
    """An index that gives the set's own chunks gives the same run, by ids or by texts."""
    chunks = [
        Chunk(chunk_id=f"c{n}", doc_id=f"v{n}.md", text=BOILERPLATE, end=SIZE) for n in range(3)
    ]
    taken = RetrievedTexts(CorpusDocuments(chunks, documents_of, TextLocator))
    reader = ResultReader("it", chunks, texts=taken)

    assert settled(reader, taken, [hit_of(2), hit_of(0), hit_of(1)]) == ["c2", "c0", "c1"]


def test_one_text_at_several_places_of_a_document_is_told_apart_by_offsets():
    """Two rows of a log are two hits."""
    chunk = Chunk(chunk_id="c", doc_id="v1.md", text=f"- {BOILERPLATE}\n" * 3, end=3 * SIZE + 9)
    taken = RetrievedTexts(CorpusDocuments([chunk], documents_of, TextLocator))
    reader = ResultReader("it", [chunk], texts=taken)
    starts = [2, SIZE + 5, SIZE + 5]
    hits = [hit_of(1) | {"start": start} for start in starts]
    found = settled(reader, taken, [*hits, hit_of(1)])

    assert found == [
        *(text_id(BOILERPLATE, f"v1.md\n{start}") for start in starts[:2]),
        text_id(BOILERPLATE),
    ]


def test_one_text_under_names_that_do_not_tell_counts_once(reader, taken):
    """It has one place, whatever a retriever calls that."""
    hits = [{"text": PART}, {"text": PART, "source": "a.md"}, {"text": PART, "source": "b.md"}]

    assert settled(reader, taken, hits) == [text_id(PART)]


@pytest.mark.parametrize("text", ["Use port 8443.", "Use\nport"])
def test_a_bare_string_with_a_blank_is_a_text(reader, taken, text):
    """Ids have none, unless they are known."""
    assert ids(reader, [text]) == [text_id(text)]
    assert taken.text(text_id(text)) == text


def test_a_bare_blank_string_is_left_out(reader, notes):
    """It is neither an id nor a text."""
    assert ids(reader, [" ", "\n", "c1"]) == ["c1"]
    assert "neither an id nor any text" in notes[0]


@pytest.mark.parametrize("near", [{}, {"start": 2}, {"start": "2"}, {"start": 10.0**18}])
@pytest.mark.parametrize("n_hits", [1, 3, 5, 7])
def test_hits_of_one_text_without_names_are_as_many_as_the_documents_hold(versions, near, n_hits):
    """Whether or not an index names documents, what it returns first is in the way of the rest."""
    taken = RetrievedTexts(CorpusDocuments(versions, documents_of, TextLocator))
    reader = ResultReader("it", versions, texts=taken)
    ranking = reader.read([{"text": BOILERPLATE} | near] * n_hits + ["c0"], "q", 10)
    [kept] = taken.settle([Ranking(query_id="q", ranking=ranking)])
    found = [hit.chunk_id for hit in kept.ranking]

    again = [text_id(BOILERPLATE, f"hit {number}") for number in (2, 3, 4)]
    assert found == [*["c4", text_id(BOILERPLATE), *again][:n_hits], "c0"]
    assert {len(text.places) for text in taken.located(set(found))} <= {5}


def test_equal_chunks_are_a_hit_each_where_no_document_is_named():
    """An index without names gives as many hits as one that gives ids."""
    chunks = [
        Chunk(chunk_id=f"c{n}", doc_id=f"v{n}.md", text=BOILERPLATE, end=SIZE) for n in range(3)
    ]
    taken = RetrievedTexts(CorpusDocuments(chunks, documents_of, TextLocator))
    reader = ResultReader("it", chunks, texts=taken)

    assert settled(reader, taken, [BOILERPLATE] * 5) == ["c0", "c1", "c2"]


GRADED = {"copies?": {"c1": (True, 1), "c2": (False, 3)}, "documents?": {"v2.md": (True, 2)}}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("form", [str, str.upper])
@pytest.mark.parametrize(
    ("question", "expected"),
    [("copies?", ["c1", "c2", "c0"]), ("documents?", ["c2"]), ("others?", [])],
)
def test_a_text_of_equal_chunks_is_first_the_one_that_people_graded(
    order, form, question, expected
):
    """An index without ids found the same words as one that gives the id of the labelled copy."""
    chunks = [
        Chunk(chunk_id=f"c{n}", doc_id=f"v{n}.md", text=BOILERPLATE, end=SIZE) for n in range(3)
    ][::order]
    documents = CorpusDocuments(chunks, documents_of, TextLocator)
    taken = RetrievedTexts(documents, lambda asked: GRADED.get(asked, {}))
    reader = ResultReader("it", chunks, texts=taken)
    read = reader.read([{"id": f"x{n}", "text": form(BOILERPLATE)} for n in range(3)], question, 10)
    found = [hit.chunk_id for hit in read]

    assert found[: len(expected)] == expected
    assert sorted(found) == ["c0", "c1", "c2"]


def test_a_document_that_is_named_goes_before_the_copy_that_people_graded():
    """Where it is known which copy was found, nothing is to be supposed."""
    chunks = [
        Chunk(chunk_id=f"c{n}", doc_id=f"v{n}.md", text=BOILERPLATE, end=SIZE) for n in range(3)
    ]
    documents = CorpusDocuments(chunks, documents_of, TextLocator)
    reader = ResultReader("it", chunks, texts=RetrievedTexts(documents, GRADED.__getitem__))
    hits = [{"text": BOILERPLATE, "source": "v0.md"}, {"id": "c2", "text": BOILERPLATE}]

    assert [hit.chunk_id for hit in reader.read(hits, "copies?", 10)] == ["c0", "c2"]


@pytest.mark.parametrize("text", ["Yes.", "A summary that nobody wrote into the documents."])
def test_a_text_that_is_not_found_is_a_hit_of_each_document_that_is_named(reader, taken, text):
    """It may be of two documents: what follows must not move up for that."""
    hits = [
        {"text": text},
        {"text": text, "source": "a.md"},
        {"text": text, "source": "b.md"},
        "c1",
    ]
    expected = [text_id(text), *(text_id(text, f"hit {number}") for number in (2, 3)), "c1"]

    assert settled(reader, taken, hits) == expected


@pytest.mark.parametrize("text", ["Yes.", "A summary that nobody wrote into the documents."])
def test_a_text_that_stands_nowhere_counts_once(reader, taken, text):
    """Its copies had its grade, and a run that returned it once lacked half of what is relevant."""
    assert settled(reader, taken, [{"text": text}] * 3 + ["c1"]) == [text_id(text), "c1"]
    named = {"text": text, "source": "a.md"}
    assert settled(reader, taken, [named, named | {"id": "copy"}, "c1"]) == [text_id(text), "c1"]


@pytest.mark.parametrize("text", ["No preview available.", "in autumn."])
def test_where_labels_name_documents_a_text_is_of_the_one_named_in_every_ranking(text):
    """Placeholders took each other's documents, and no hit was of any."""
    twice = "Picked in autumn. Sold in autumn. "
    chunks = [Chunk(chunk_id=f"c{n}", doc_id=f"{n}.md", text=f"{twice}{n}.") for n in range(3)]
    documents = CorpusDocuments(chunks, documents_of, FileTextLocator, names_documents=True)
    taken = RetrievedTexts(documents)
    reader = ResultReader("it", chunks, texts=taken)
    hits = [{"text": text, "source": f"{n}.md"} for n in range(3)]
    first, second = taken.settle(
        [
            Ranking(query_id="p", ranking=reader.read(hits, "p", 10)),
            Ranking(query_id="q", ranking=reader.read(hits[::-1], "q", 10)),
        ]
    )
    ids = [hit.chunk_id for hit in first.ranking]
    of_text = {
        each.chunk_id: {*each.doc_ids, *(place.doc_id for place in each.places)}
        for each in taken.located({*ids})
    }

    assert [of_text[chunk_id] for chunk_id in ids] == [{f"{n}.md"} for n in range(3)]
    assert [hit.chunk_id for hit in second.ranking] == ids[::-1]


@pytest.mark.parametrize("hit", ["fruit/a.md", "a.md", ("fruit/a.md", 0.5), {"id": "fruit/a.md"}])
def test_the_id_of_a_document_is_its_whole_text(reader, taken, notes, hit):
    """A retriever of documents is measured by what it puts into a prompt."""
    assert settled(reader, taken, [hit, "c1"]) == [text_id(APPLES + PEARS), "c1"]
    assert located(taken) == [("fruit/a.md", 0, 130)]
    assert "count as the whole text" in notes[0]


@pytest.mark.parametrize("hit", ["md", "z.md", "a", {"id": "a.md", "text": " "}])
def test_an_id_of_no_document_is_as_it_was(reader, taken, hit):
    """Chunks of an index that is ahead may be called anything."""
    assert settled(reader, taken, [hit, "c1"])[-1] == "c1"
    assert not taken.ids


def test_a_document_of_one_chunk_is_that_chunk(reader, taken):
    """Its grade is there."""
    assert settled(reader, taken, ["fruit/b.md"]) == ["c3"]


LINKED = "# Pears\n\n" + "\n\n".join(
    f"Pears of [tree {n}](https://orchard.example/pears/tree-{n}), picked **while hard**, ripen "
    f"in [room {n}](https://orchard.example/rooms/{n}) within {n + 3} days.\n\n<!-- counted -->"
    for n in range(6)
)


@pytest.fixture
def linked():
    """The chunks of a document whose links a reader does not see."""
    seen = read_markdown(LINKED, is_mdx=False)
    document = Document("fruit/pears.md", "Pears", seen.text, "markdown", seen, LINKED)
    return chunk_document(document, max_chars=200, min_chars=0)


@pytest.fixture
def of_linked(linked):
    return RetrievedTexts(CorpusDocuments(linked, file_texts, TextLocator))


def offsets(first, last):
    return {"doc_id": "fruit/pears.md", "start": first.start, "end": last.end}


def test_the_offsets_of_a_chunk_are_that_chunk(linked, of_linked):
    """A system that returns what chunks.jsonl says has retrieved the chunks of the set."""
    reader = ResultReader("it", linked, texts=of_linked)
    found = settled(reader, of_linked, [offsets(chunk, chunk) for chunk in linked])

    assert found == [chunk.chunk_id for chunk in linked]


def test_a_stretch_has_the_text_that_a_reader_sees(linked, of_linked):
    """What stands for hidden markup is no text: a judge would read it, a prompt pay for it."""
    reader = ResultReader("it", linked, texts=of_linked)
    settled(reader, of_linked, [offsets(linked[0], linked[1])])
    [text] = of_linked.located(of_linked.ids)

    assert "tree 0, picked while hard, ripen in room 0 within 3 days." in text.text
    assert "  " not in text.text
    assert text.places == (Span(doc_id="fruit/pears.md", start=linked[0].start, end=linked[1].end),)


def test_a_stretch_may_begin_and_end_amid_what_is_hidden(linked, of_linked):
    """Offsets that a splitter of files tells may lie anywhere."""
    documents = of_linked.documents
    start, end = LINKED.index("https://"), LINKED.index("orchard.example/rooms/0")

    assert documents.seen("fruit/pears.md", start, end) == (", picked while hard, ripen in room 0")


def test_a_document_is_named_though_its_links_are_not_seen(linked, of_linked):
    """A text of it that spans links is in it, and in no copy elsewhere."""
    assert "Pears of tree 5, picked while hard," in of_linked.documents.folded("fruit/pears.md")


@pytest.mark.parametrize(
    ("there", "text"),
    [
        ("set to -11 degrees", "set to 11 degrees"),
        ("set to x <= 12 now", "set to x >= 12 now"),
        ("set to $5 a day", "set to \u20ac5 a day"),
        ("written in C++ today", "written in C today"),
    ],
)
@pytest.mark.parametrize("chunk_id", ["c1", None])
def test_a_text_with_another_sign_is_not_the_chunk(notes, there, text, chunk_id):
    """A stale index says otherwise than the documents do."""
    words = "The limit of this part of the service is {} for all who pay."
    said = words.format(there)
    chunk = Chunk(chunk_id="c1", doc_id="a.md", text=said, start=0, end=len(said))
    taken = RetrievedTexts(CorpusDocuments([chunk], documents_of, FileTextLocator))
    reader = ResultReader("it", [chunk], notes.append, taken)

    hits = [
        {"id": chunk_id, "text": each} if chunk_id else each
        for each in (f"**{said.upper()}**", words.format(text))
    ]
    [same, other] = [reader.read([hit], "q", 10)[0].chunk_id for hit in hits]
    assert same == "c1"
    assert other != "c1"
