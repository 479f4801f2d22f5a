"""Labels of whole documents, over nights in which their documents change, go and come back."""

import json

import pytest
from nights import WIDE, Night
from pipeline.generation.making import run

GOLDEN = [
    {"query": "When is the store open?", "relevant": ["store.md"]},
    {"query": "What does service take, by the faq?", "relevant": ["service.md", "faq.md"]},
]
OPEN, REPAIRS = "When is the store open?", "What does service take, by the faq?"


def text(word, *parts):
    said = [
        f"## About {word}, {part}\n\nThe {word} is told of in {part}, at length and with care."
        for part in parts
    ]
    return f"# {word}\n\n" + "\n\n".join(said) + "\n"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A set of two queries whose labels name documents of several chunks."""
    flags = ("--max-chars", "100", "--churn-most", "1", *WIDE)
    night = Night(tmp_path_factory.mktemp("labelled") / "base", flags)
    night.docs.mkdir(parents=True)
    for word in ("store", "service", "faq", "tea"):
        (night.docs / f"{word}.md").write_text(text(word, "one", "two"), encoding="utf-8")
    path = night.folder / "golden.json"
    path.write_text(json.dumps(GOLDEN), encoding="utf-8")
    words = ["import", str(path), "--documents", str(night.docs), "--out", str(night.set)]
    assert run([*words, "--max-chars", "100", "-q"]).code == 0
    return night


@pytest.fixture
def night(tmp_path, base):
    """The set, to be changed."""
    return base.copy(tmp_path / "night")


def labels(night):
    """Return the documents that are labelled, by question."""
    texts = {query.query_id: query.query for query in night.dataset.all_queries()}
    found = {}
    for one in night.dataset.judgments():
        assert (one.level, one.grade, one.source) == ("document", 2, "human")
        found.setdefault(texts[one.query_id], []).append(one.chunk_id)
    return found


def status(night):
    return {query.query: query.status for query in night.queries.values()}


def test_an_edited_document_keeps_its_label(night):
    """The author labelled the document, whatever stands in it tonight."""
    (night.docs / "store.md").write_text(text("store", "three", "four"), encoding="utf-8")

    assert night.refresh().code == 0

    assert labels(night) == {OPEN: ["store.md"], REPAIRS: ["faq.md", "service.md"]}
    assert night.dataset.manifest.version == 2


def test_a_label_goes_with_a_document_that_is_renamed(night):
    """A moved file is the same answer under another name."""
    (night.docs / "help").mkdir()
    (night.docs / "store.md").rename(night.docs / "help" / "shop.md")

    assert night.refresh().code == 0

    assert labels(night)[OPEN] == ["help/shop.md"]
    assert night.dataset.past.moved_chunks()["store.md"] == ("help/shop.md",)


def test_a_label_of_a_document_that_is_gone_is_in_no_denominator(night):
    """What nobody can find any more must not lower recall; the other label stands."""
    (night.docs / "service.md").unlink()

    done = night.json()

    assert labels(night)[REPAIRS] == ["faq.md"]
    assert done["judgments"]["dormant"] == 1
    assert status(night) == {OPEN: "accepted", REPAIRS: "accepted"}


def test_a_query_whose_only_document_is_gone_retires(night):
    """It would count 0 for ever."""
    (night.docs / "store.md").unlink()

    assert night.json()["items"] == {"kept": 1, "retired": 1}

    assert status(night) == {OPEN: "retired", REPAIRS: "accepted"}
    [change] = night.dataset.past.diff().changes
    assert [(one.kind, one.doc_id) for one in change.causes] == [("document removed", "store.md")]


def test_a_dry_run_says_that_it_will_retire(night):
    """A plan that keeps what it will not keep is no plan."""
    (night.docs / "store.md").unlink()

    planned = night.json("--dry-run")["plan"]["items"]

    assert (planned["kept"], planned["retired"]) == (1, 1)


def test_it_comes_back_with_its_document(night):
    """People's labels are not given up."""
    before = (night.docs / "store.md").read_text(encoding="utf-8")
    (night.docs / "store.md").unlink()
    assert night.refresh().code == 0
    (night.docs / "open.md").write_text(before, encoding="utf-8")

    assert night.json()["items"] == {"kept": 1, "revived": 1}

    assert labels(night)[OPEN] == ["open.md"]
    assert status(night) == {OPEN: "accepted", REPAIRS: "accepted"}
    assert night.dataset.past.dormant_grades() == []


def test_documents_that_are_cut_anew_keep_their_labels(night):
    """Labels of documents are what outlives other chunks."""
    assert run([*night.words("-q"), "--max-chars", "2000"]).code == 0

    assert labels(night) == {OPEN: ["store.md"], REPAIRS: ["faq.md", "service.md"]}


def test_earlier_evaluations_know_a_renamed_document(night):
    """The ranking is the same: the history must neither fall nor say that it does not know."""
    retrieve = ["retrieve", "--dataset", str(night.set), "--retriever", "bm25", "-q"]
    measure = ["evaluate", "--dataset", str(night.set), "-m", "RR", "-q"]
    assert run(retrieve).code == run(measure).code == 0
    (night.docs / "store.md").rename(night.docs / "shop.md")
    assert night.refresh().code == 0
    assert run(retrieve).code == run(measure).code == 0

    told = run(["history", "--dataset", str(night.set), "--json"]).json

    [trend] = told["datasets"][0]["runs"][0]["trends"]
    assert (trend["n"], trend["diff"]) == (2, 0.0)


def shift(night):
    """Put a preface before numbered pages: each page goes by the number of the next."""
    pages = sorted(night.docs.glob("*.md"))
    texts = [page.read_text(encoding="utf-8") for page in pages]
    for page, before in zip(pages, ["# preface\n\nWritten in Oslo.\n", *texts[:-1]], strict=True):
        page.write_text(before, encoding="utf-8")
    (night.docs / "zz.md").write_text(texts[-1], encoding="utf-8")


def test_a_label_goes_with_its_text_where_names_move_up(night):
    """No word changed; all labels stood on other texts, and RR fell from 1.00 to 0.18."""
    shift(night)

    assert night.refresh().code == 0

    # faq, service, store, tea: each went to the next one's name.
    assert labels(night) == {OPEN: ["tea.md"], REPAIRS: ["service.md", "store.md"]}


def test_a_label_goes_with_its_text_where_that_is_edited_too(night):
    """Each chapter holds its number: labels were kept on other texts, and RR fell to 0.02."""
    shift(night)
    for page in night.docs.glob("*.md"):
        before = page.read_text(encoding="utf-8")
        page.write_text(before.replace("at length", f"for {page.stem}"), encoding="utf-8")

    assert night.refresh("--accept-churn").code == 0

    assert labels(night) == {OPEN: ["tea.md"], REPAIRS: ["service.md", "store.md"]}


def test_a_label_waits_where_its_document_was_rewritten(night):
    """Not one word of what people labelled is there, until it is again."""
    page = night.docs / "store.md"
    before = page.read_text(encoding="utf-8")
    page.write_text("Forty people in Oslo.\n", encoding="utf-8")

    assert night.json()["items"] == {"kept": 1, "retired": 1}
    assert OPEN not in labels(night)

    page.write_text(before, encoding="utf-8")

    assert night.json()["items"] == {"kept": 1, "revived": 1}
    assert labels(night)[OPEN] == ["store.md"]


def test_a_label_does_not_stay_with_another_document_under_its_name(night):
    """One page is removed, the next is edited and goes by its name."""
    text = (night.docs / "faq.md").read_text(encoding="utf-8")
    (night.docs / "faq.md").unlink()
    (night.docs / "store.md").write_text(f"{text}\nAsk at the desk.\n", encoding="utf-8")

    assert night.json()["items"] == {"kept": 1, "retired": 1}

    assert labels(night) == {REPAIRS: ["service.md", "store.md"]}


def test_a_label_leaves_a_name_that_another_text_has(night):
    """The page was moved away; an imprint stands under its name."""
    before = (night.docs / "store.md").read_text(encoding="utf-8")
    (night.docs / "old").mkdir()
    (night.docs / "old" / "store.md").write_text(before, encoding="utf-8")
    (night.docs / "store.md").write_text("# Imprint\n\nForty people in Oslo.\n", encoding="utf-8")

    assert night.refresh().code == 0

    assert labels(night)[OPEN] == ["old/store.md"]


def test_a_label_stays_with_a_page_whose_old_version_is_archived(night):
    """It is the page that is edited on."""
    before = (night.docs / "store.md").read_text(encoding="utf-8")
    (night.docs / "archive.md").write_text(before, encoding="utf-8")
    (night.docs / "store.md").write_text(before.replace("with care", "gladly"), encoding="utf-8")

    assert night.refresh().code == 0

    assert labels(night)[OPEN] == ["store.md"]


def test_another_text_under_its_name_brings_no_label_back(night):
    """What people labelled is not what stands there now."""
    (night.docs / "store.md").unlink()
    assert night.refresh().code == 0
    (night.docs / "store.md").write_text("# Imprint\n\nForty people in Oslo.\n", encoding="utf-8")

    assert night.json()["items"] == {"kept": 1}

    assert OPEN not in labels(night)
    assert len(night.dataset.past.dormant_grades()) == 1


def test_a_page_that_was_copied_before_it_went_is_renamed(night):
    """Its text was there all the time."""
    before = (night.docs / "store.md").read_text(encoding="utf-8")
    (night.docs / "shop.md").write_text(before, encoding="utf-8")
    assert night.refresh().code == 0
    (night.docs / "store.md").unlink()

    assert night.json()["items"] == {"kept": 2}

    assert labels(night)[OPEN] == ["shop.md"]


def test_a_run_of_documents_goes_along_with_them(night):
    """Runs of chunks did: the worse one won by half of RR."""
    rows = [f"{one} Q0 store.md 1 2 x\n{one} Q0 faq.md 2 1 x\n" for one in night.queries]
    path = night.folder / "docs.trec"
    path.write_text("".join(rows), encoding="utf-8")
    assert run(["import", "--run", str(path), "--dataset", str(night.set), "-q"]).code == 0
    shift(night)

    assert night.refresh().code == 0

    [ranking, _] = night.dataset.each_ranking("docs")
    assert [hit.chunk_id for hit in ranking.ranking] == ["tea.md", "service.md"]


def hits(night, name):
    """Return the documents that a run found for the first query."""
    ranking = next(night.dataset.each_ranking(name))
    documents = {chunk.chunk_id: chunk.doc_id for chunk in night.dataset.chunks()}
    return [documents.get(hit.chunk_id, hit.chunk_id) for hit in ranking.ranking]


def test_hits_stay_with_pages_of_one_chunk_whose_old_versions_are_archived(tmp_path):
    """The label stayed and the hit went to the archive: RR fell from 1.00 to 0."""
    night = Night(tmp_path, ("--max-chars", "2000", *WIDE))
    night.docs.mkdir()
    for word in ("store", "service", "faq"):
        (night.docs / f"{word}.md").write_text(text(word, "one"), encoding="utf-8")
    golden, docs = tmp_path / "golden.json", tmp_path / "docs.trec"
    golden.write_text(json.dumps(GOLDEN), encoding="utf-8")
    words = ["import", str(golden), "--documents", str(night.docs), "--out", str(night.set)]
    assert run([*words, "--max-chars", "2000", "-q"]).code == 0
    rows = [f"{one} Q0 store.md 1 2 x\n{one} Q0 faq.md 2 1 x\n" for one in night.queries]
    docs.write_text("".join(rows), encoding="utf-8")
    assert run(["import", "--run", str(docs), "--dataset", str(night.set), "-q"]).code == 0
    (night.docs / "archive").mkdir()
    for page in [*night.docs.glob("*.md")]:
        before = page.read_text(encoding="utf-8")
        (night.docs / "archive" / page.name).write_text(before, encoding="utf-8")
        page.write_text(before.replace("with care", "gladly"), encoding="utf-8")

    assert night.refresh("--accept-churn").code == 0

    assert labels(night)[OPEN] == ["store.md"]
    assert hits(night, "docs") == ["store.md", "faq.md"]


@pytest.fixture
def missing(night):
    """A run that found a document which is gone for a night, and the text of that."""
    rows = [f"{one} Q0 store.md 1 2 x\n{one} Q0 faq.md 2 1 x\n" for one in night.queries]
    path = night.folder / "docs.trec"
    path.write_text("".join(rows), encoding="utf-8")
    assert run(["import", "--run", str(path), "--dataset", str(night.set), "-q"]).code == 0
    before = (night.docs / "store.md").read_text(encoding="utf-8")
    (night.docs / "store.md").unlink()
    assert night.refresh().code == 0
    return before


def test_a_document_that_is_back_with_a_copy_has_its_label_and_hits(night, missing):
    """The label went to the copy, whose name comes first: RR 0.87 for 1.00."""
    (night.docs / "archive").mkdir()
    (night.docs / "archive" / "store.md").write_text(missing, encoding="utf-8")
    (night.docs / "store.md").write_text(missing, encoding="utf-8")

    assert night.refresh().code == 0

    assert labels(night)[OPEN] == ["store.md"]
    assert hits(night, "docs") == ["store.md", "faq.md"]


def test_hits_go_with_a_text_that_is_back_under_another_name(night, missing):
    """They counted for the new page under the old one: RR 0.87 for 1.00."""
    (night.docs / "renamed.md").write_text(missing, encoding="utf-8")
    (night.docs / "store.md").write_text("# Imprint\n\nForty people in Oslo.\n", encoding="utf-8")

    assert night.refresh().code == 0

    assert labels(night)[OPEN] == ["renamed.md"]
    assert hits(night, "docs") == ["renamed.md", "faq.md"]


def test_hits_on_a_text_that_is_gone_are_of_no_other_document(night, missing):
    """One has the name that they once got, and one the name of the text."""
    (night.docs / "former store.md").write_text("# Former\n\nShops close.\n", encoding="utf-8")
    (night.docs / "store.md").write_text("# Imprint\n\nForty people in Oslo.\n", encoding="utf-8")

    assert night.refresh().code == 0

    documents = {chunk.doc_id for chunk in night.dataset.chunks()}
    assert [name in documents for name in hits(night, "docs")] == [False, True]


def rederive(night):
    words = ["generate", "--rederive", "--documents", str(night.docs), "--out", str(night.set)]
    return run([*words, "--max-chars", "100", "-q"])


def test_labels_go_along_when_a_set_is_derived_anew(night):
    """The label of a renamed document was dropped."""
    (night.docs / "store.md").rename(night.docs / "shop.md")

    assert rederive(night).code == 0

    assert labels(night)[OPEN] == ["shop.md"]


def test_a_set_is_not_derived_anew_where_names_changed_hands(night):
    """Done again after a kill, a label would go one document too far."""
    shift(night)

    done = rederive(night)

    assert done.code == 2
    assert "faq.md, which a label names, has another text now" in done.err
    assert labels(night)[OPEN] == ["store.md"]
