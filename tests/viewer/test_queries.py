import re
from urllib.parse import urlencode

import pytest
from label_samples import HOSTILE
from side_by_side import make_set

from ragforge.evaluating.graded_by import graded_line
from ragforge.evaluating.summary import summarise
from ragforge.files.set.opening import create_dataset
from ragforge.records import Grader, Provenance, Query, Review
from ragforge.viewer.measured import PAGE, ViewRequest, measured_set, view_of
from ragforge.viewer.measured import USUAL as SETTINGS

pytestmark = pytest.mark.slow


@pytest.fixture
def measured(folder):
    """A set named `pair` with the runs `bad` and `good`, by which `bad` is second on each query."""
    return make_set(folder / "pair")


def shown(page):
    """Return the ids of the queries that a page lists, in its order."""
    return re.findall(r"<code>([^<]*)</code></span></th>", page)


def ask(site, place="queries", name="pair", **asked):
    return site.ask(f"/datasets/{name}/{place}?{urlencode(asked)}")


def test_two_runs_stand_side_by_side_by_query(site, measured):
    """Which query moved is what a mean does not tell."""
    page = ask(site).text
    [row] = re.findall(r"<tr><th scope=\"row\">(?:(?!</tr>).)*q01</code>.*?</tr>", page)
    cells = re.findall(r"<td[^>]*>([^<]*)", row)

    assert cells[:5] == ["0.631", "2", "1.000", "1", "+0.369"]
    assert "is higher on 3, lower on 0, the same on 0" in page


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ({}, ["q03", "q00", "q01", "q02", "never"]),
        ({"sort": "-diff"}, ["q00", "q01", "q02", "q03", "never"]),
        ({"sort": "-query"}, ["q03", "q02", "q01", "q00", "never"]),
        ({"show": "better"}, ["q00", "q01", "q02"]),
        ({"show": "better", "run": "good", "with": "bad"}, []),
        ({"show": "worse", "run": "good", "with": "bad"}, ["q00", "q01", "q02"]),
        ({"show": "failed"}, ["q03"]),
        ({"show": "unanswerable"}, ["never"]),
        ({"show": "differ"}, ["q00"]),
        ({"show": "wrong"}, ["q00"]),
        ({"search": "FACT Q02"}, ["q02"]),
        ({"search": "nothing like it"}, []),
        ({"show": "better", "measure": "R@10"}, []),
        ({"measure": "RR", "sort": "b"}, ["q00", "q01", "q02", "q03", "never"]),
    ],
)
def test_the_address_says_what_is_shown(site, measured, asked, ids):
    """A link that is sent shows the same to everybody."""
    assert shown(ask(site, **asked).text) == ids


def test_undecided_queries_are_found(site, measured):
    """They are what is left to do."""
    decided = Review(decision="approve", by="Ann")
    measured.write_queries(
        query.model_copy(update={"reviewed": decided if query.query_id == "q01" else None})
        for query in measured.all_queries()
    )
    page = ask(site, show="undecided").text

    assert "q01" not in shown(page)
    assert "approved by Ann" in ask(site).text


def test_a_link_to_what_is_gone_says_so(site, measured):
    """Another run in its place, unsaid, would be read as the one of the link."""
    page = ask(site, run="gone", measure="nDCG@99").text

    assert "run gone, measure nDCG@99; others are shown instead" in page


@pytest.mark.parametrize("asked", [{"page": "9" * 7}, {"page": "-1"}, {"page": "x"}, {"sort": "x"}])
def test_an_address_typed_wrongly_shows_what_is_there(site, measured, asked):
    """Anybody may type one."""
    assert shown(ask(site, **asked).text) == ["q03", "q00", "q01", "q02", "never"]


def test_more_queries_than_a_page_holds_have_pages(folder):
    """A page of ten thousand rows is none."""
    measured = measured_set(make_set(folder / "many", PAGE + 20), SETTINGS)
    first, last = (view_of(measured, ViewRequest(page=page)) for page in (1, 7))

    assert (len(first.on_page), len(last.on_page), last.page) == (PAGE, 21, 2)


def test_a_query_shows_answers_beside_the_expected_one_with_facts_marked(site, measured):
    """What is said, in which words, and what is missing, is why a verdict is one."""
    page = ask(site, "query", q="q00").text

    assert "<mark>it is here</mark>" in page
    assert '<span class="status supported">said</span> <bdi>It is here.</bdi>' in page
    assert '<span class="status missing">missing</span> <bdi>It is blue.</bdi>' in page
    assert "Says what none of its chunks says:" in page
    assert page.index("Expected") < page.index("careful</bdi>") < page.index("hasty</bdi>")


def test_a_query_shows_both_rankings_and_its_evidence(site, measured):
    """The text around a quote tells whether it answers."""
    page = ask(site, "query", q="q00", run="good", **{"with": "bad"}).text

    assert page.index("good</bdi>") < page.rindex("bad</bdi>")
    assert "<mark>Fact q00 is here.</mark> Behind it." in page
    assert 'href="document?doc=guide.md&amp;q=q00"' in page


def test_evidence_is_shown_in_its_document(site, measured):
    """Chunks stand where they were cut from, the evidence marked."""
    page = ask(site, "document", doc="guide.md", q="q00").text

    marked = '<mark id="evidence">Fact q00 is here.</mark>'
    assert f"The start.\nBefore it. {marked} Behind it." in page


def test_an_unanswerable_query_shows_what_comes_nearest(site, measured):
    """That nothing answers it is believed by what is near."""
    page = ask(site, "query", q="never").text

    assert ("Nearest chunks" in page, "by intent" in page) == (True, True)


def test_a_query_leads_to_those_beside_it_in_the_order_of_the_table(site, measured):
    """One goes through what a filter found, one by one."""
    page = ask(site, "query", q="q01", show="better").text
    ways = re.findall(r'href="query\?[^"]*q=(q\d\d)[^"]*" data-key="([jk])"', page)

    assert ways == [("q00", "k"), ("q02", "j")]


def test_what_is_not_there_is_said(site, measured):
    """A link may be older than the set."""
    assert "There is no such query" in ask(site, "query", q="q99").text
    assert "There is no such document" in ask(site, "document", doc="none.md").text


def test_a_query_that_is_out_of_the_set_says_what_became_of_it(site, measured):
    """A link to it was sent before it was rejected."""
    measured.write_queries(
        query.model_copy(update={"status": "retired" if query.query_id == "q01" else "accepted"})
        for query in measured.all_queries()
    )

    assert "It is retired" in ask(site, "query", q="q01").text


def test_a_set_without_runs_and_answers_has_its_queries(folder, site):
    """They are looked at before anything is measured."""
    made = create_dataset(folder / "bare", {})
    made.write_queries([Query(query_id="q1", query="Why?")])

    assert shown(ask(site, name="bare").text) == ["q1"]
    assert ask(site, "query", name="bare", q="q1").status == 200


def test_a_set_without_queries_says_so(site):
    """It may be young."""
    page = ask(site, name="first")

    assert (page.status, "has no queries" in page.text) == (409, True)


def test_texts_of_data_are_no_markup(folder, site):
    """Corpus, models and users write them."""
    made = create_dataset(folder / "bad", {})
    made.write_queries([Query(query_id=HOSTILE, query=HOSTILE, expected_answer=HOSTILE)])
    pages = ask(site, name="bad").text + ask(site, "query", name="bad", q=HOSTILE).text
    pages += ask(site, "document", name="bad", doc=HOSTILE, q=HOSTILE, search=HOSTILE).text

    assert ("<img" in pages, "\u202e" in pages, "\x1b" in pages) == (False, False, False)


def test_who_knows_the_page_is_told_that_it_is_the_same(site, measured):
    """A page left open asks every two seconds, and costs no measuring."""
    path = "/datasets/pair/queries?show=better"
    tag = site.ask(path).getheader("ETag")
    same = site.ask(path, If_None_Match=tag).status
    other = site.ask("/datasets/pair/queries", If_None_Match=tag).status
    measured.write_queries(measured.all_queries()[:-1])

    assert (same, other, site.ask(path, If_None_Match=tag).status) == (304, 200, 200)


def test_made_up_grades_are_told_wherever_a_mean_stands(site, measured, add, make_evaluation):
    """`ragforge mock` judges as fast as nobody does, and somebody decides on it."""
    mock = Provenance(kind="mock", model="m")
    measured.write_judgments(
        item.model_copy(update={"provenance": mock, "source": "judge"})
        for item in measured.judgments()
    )
    grader = Grader(kind="mock", model="m", prompt="", prompt_sha256="", count=4)
    add(measured, make_evaluation(graders=(grader,)))

    query_id = measured.queries()[0].query_id
    query = f"/datasets/pair/query?q={query_id}"
    for path in ("/", "/datasets/pair", "/datasets/pair/queries", query):
        assert "ragforge mock" in site.ask(path).text, path


def test_who_graded_is_told_as_in_the_report(measured):
    """Two counts of the same grades leave both in doubt."""
    first, *others = measured.queries()
    refused = first.model_copy(update={"answerable": False, "expected_behaviour": "abstain"})
    measured.write_queries([refused, *others])

    told = measured_set(measured, SETTINGS).graded

    assert told == graded_line(summarise(measured).graded_by)
