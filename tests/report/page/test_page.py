import re
from html.parser import HTMLParser

import pytest

from ragforge.evaluating.formatting import MISSING
from ragforge.evaluating.summary import summarise
from ragforge.records import Answer, Judgment, Provenance, Query
from ragforge.report.page.page import render_html

pytestmark = pytest.mark.slow


ALLOWED = set(
    "html head meta title style body a header p h1 h2 h3 h4 div strong nav ul ol li main section "
    "table thead tbody tr th td span bdi svg desc rect line text figure figcaption details summary "
    "code blockquote dl dt dd footer polyline polygon circle script noscript dialog label input "
    "select option button small mark tspan".split()
)


class Page(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.ids, self.texts, self.scripts = [], [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.scripts += attrs if tag == "script" else []
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return "\n".join(self.texts)


@pytest.fixture
def page(dataset):
    return Page(render_html(summarise(dataset)))


@pytest.fixture
def hostile_page(hostile_dataset):
    return Page(render_html(summarise(hostile_dataset)))


def test_hostile_text_makes_no_element(hostile_page):
    """Text of a corpus, a query or a judge is data and never becomes markup."""
    runs = [value for name, value in hostile_page.scripts if name == "type"]

    assert set(hostile_page.tags) <= ALLOWED
    assert hostile_page.tags.count("style") == 1
    assert hostile_page.tags.count("script") - len(runs) == 1
    assert set(runs) == {"application/zlib"}


def test_hostile_text_makes_no_attribute(hostile_page):
    """An event handler is an attribute."""
    allowed = set(
        "charset http-equiv content name lang href class id role tabindex aria-label scope title "
        "viewbox preserveaspectratio aria-labelledby aria-hidden x y x1 x2 y1 y2 width height dir "
        "type value hidden autocomplete name colspan data-sort points cx cy r open".split()
    )  # fmt: skip

    assert {name for name, _ in hostile_page.attributes} <= allowed


def test_hostile_text_is_shown_as_it_is(hostile_page):
    """What cannot act may be read: the reader has to see what is in the corpus."""
    assert "<script>document.title='owned'</script>" in hostile_page.text
    assert r"\u202egnitirw\u2066" in hostile_page.text


def test_no_hidden_character_reaches_the_page(hostile_dataset):
    """Bidirectional marks reorder, escapes steer a terminal that shows the source."""
    text = render_html(summarise(hostile_dataset))

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", text)


def test_long_texts_are_cut_with_a_note(hostile_dataset):
    """100 kB of one chunk, shown 70 times, would make a page nobody can open."""
    text = render_html(summarise(hostile_dataset))

    assert "first 600 of 100,000 characters" in text
    assert "x" * 2000 not in text
    assert len(text) < 500_000


def test_page_leads_nowhere_and_loads_nothing(page, dataset):
    """It is mailed and opened without a network."""
    hrefs = [value for name, value in page.attributes if name == "href"]

    assert all(value.startswith("#") for value in hrefs)
    assert not re.search(r"https?://|src=|url\(|@import", render_html(summarise(dataset)))


def test_policy_allows_its_own_style_and_script_only(page):
    """Were an escape ever forgotten, the browser still would not run it."""
    [policy] = [value for _, value in page.attributes if value and "default-src" in value]

    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]{44}'; script-src 'sha256-[\w+/=]{44}'; "
        r"base-uri 'none'; form-action 'none'",
        policy,
    )


def test_same_dataset_gives_the_same_bytes(dataset):
    """A report that differs without a cause cannot be compared or cached."""
    assert render_html(summarise(dataset)) == render_html(summarise(dataset))


def test_ids_are_unique_and_links_arrive(page):
    """Contents and descriptions of charts refer by id."""
    hrefs = {value[1:] for name, value in page.attributes if name == "href"}
    named = {value for value in hrefs if not value.startswith("q=")}
    described = {
        part
        for name, value in page.attributes
        if name == "aria-labelledby"
        for part in value.split()
    }

    assert len(page.ids) == len(set(page.ids))
    assert named | described <= set(page.ids)


def test_charts_have_titles_and_descriptions(page):
    """A chart that only eyes can read leaves people out."""
    images = [value for name, value in page.attributes if (name, value) == ("role", "img")]

    assert len(images) == page.tags.count("desc") == page.tags.count("title") - 1 == 5
    assert "Queries by rank of the first relevant chunk by bucket: 1: 1, 2: 0" in page.text


def test_bounds_stand_below_the_mean(dataset):
    """What failures could change belongs beside the number."""
    page = Page(render_html(summarise(dataset, measures=["Success@5"])))

    assert {"0.500", "[0.333, 1.000]"} <= set(page.texts)


def test_missing_mean_is_a_dash_with_its_counts(dataset):
    """All judgments failed: that is neither 0 nor NaN."""
    dataset.write_judgments(
        Judgment(query_id=q, chunk_id="c1", grade=None, failure="error") for q in ("q1", "q2", "q3")
    )

    text = render_html(summarise(dataset, measures=["RR"]))
    row = re.search(r'id="retrieval".*?(<tr><th scope="row">.*?</tr>)', text).group(1)

    assert re.findall(r'class="(?:bounds|mean)">(.*?)<', row)[:2] == [
        "n 0, 3 with failures, unjudged@10: 100 %",
        MISSING,
    ]
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)


def test_baseline_judge_is_announced_before_any_number(dataset):
    """Rules are no judge, and whoever gets the page by mail does not know."""
    rule = Provenance(kind="baseline", model="offline")
    dataset.write_judgments([Judgment(query_id="q1", chunk_id="c1", grade=3, provenance=rule)])

    text = render_html(summarise(dataset))

    assert 0 < text.index("Judged by the offline baseline") < text.index("<main")


def test_made_up_grades_are_announced_before_any_number(dataset):
    """A rehearsal's page looks like a real one."""
    mock = Provenance(kind="mock", model="m")
    dataset.write_judgments([Judgment(query_id="q1", chunk_id="c1", grade=3, provenance=mock)])

    text = render_html(summarise(dataset))

    assert 0 < text.index("ragforge mock in the place of m: 1") < text.index("<main")
    assert 0 < text.index("Made-up grades") < text.index("<main")


def test_a_part_judged_by_rule_is_told_from_the_whole(dataset):
    """A rule beside a model's grades is a remark, not the end of the measurement."""
    rule = Provenance(kind="baseline", model="offline")
    first, *others = dataset.judgments()
    by_rule = first.model_copy(update={"provenance": rule, "source": "judge"})
    dataset.write_judgments([by_rule, *others])

    text = render_html(summarise(dataset))

    assert "1 judgment of relevance comes from a lexical rule" in text
    assert "No language model judged" not in text


def test_where_quotes_stand_is_no_judgment_of_the_baseline(dataset):
    """It is counted; a page that takes back its own decision for it helps nobody."""
    rule = Provenance(kind="baseline", model="offline-rules-3")
    dataset.write_answer_grades("own", [])
    dataset.write_judgments(
        [Judgment(query_id="q1", chunk_id="c1", grade=3, source="evidence", provenance=rule)]
    )

    assert "Judged by the offline baseline" not in render_html(summarise(dataset))


def test_measures_of_evidence_need_nobody_who_judges_chunks(dataset):
    """Holes and rules change nothing of what is found of the quotes."""
    rule = Provenance(kind="baseline", model="offline")
    dataset.write_answer_grades("own", [])
    dataset.write_judgments(
        [Judgment(query_id="q1", chunk_id="c2", grade=0, source="judge", provenance=rule)]
    )

    text = render_html(summarise(dataset, measures=("EvidenceR@10",)))

    assert "Judged by the offline baseline" not in text
    assert "Judge them before you trust a comparison" not in text
    assert "Judged by the offline baseline" in render_html(summarise(dataset))


def test_a_decision_about_runs_names_who_graded_chunks(many_queries, make_grade):
    """Made-up grades of answers take nothing from it."""
    made = many_queries(30)
    human = Provenance(kind="human", model="Ann")
    made.write_judgments(
        item.model_copy(update={"source": "human", "provenance": human})
        for item in made.judgments()
    )
    mock = Provenance(kind="mock", model="m")
    made.write_answers("own", [Answer(query_id="q0000", answer="1")])
    grade = make_grade("q0000", "correct").model_copy(update={"provenance": mock})
    made.write_answer_grades("own", [grade])

    text = render_html(summarise(made))

    card = text[text.index('class="decision') :].partition("</section>")[0]
    assert "by people (Ann): 30" in card.partition("Chance")[0]
    assert "ragforge mock" not in card.partition("Chance")[0]
    assert "for answers. What it says of them is made up" in text


def test_language_model_judge_brings_no_baseline_notice(page):
    """A warning that is always there is no warning."""
    assert "Judged by the offline baseline" not in page.text


def test_worst_query_opens_to_its_chunks(page):
    """The number says that something is wrong, the chunks say what."""
    for text in ("What is two?", "Text of chunk 3.", "Half.", "judging failed", "not judged"):
        assert text in page.text or text in {value for _, value in page.attributes}


def test_page_of_an_unfinished_dataset_says_what_is_missing(new_dataset):
    """No runs and no answers is a state on the way, and no reason for an error."""
    made = new_dataset()
    made.write_queries([Query(query_id="q", query="?")])

    page = Page(render_html(summarise(made)))

    assert "There is no run yet; " in page.texts
    assert "ragforge retrieve" in page.texts
    assert "Nothing is judged yet." in page.texts


def test_run_without_bad_queries_does_not_claim_that_all_are_perfect(dataset):
    """Where nothing is relevant no query can be shown, whatever its value."""
    dataset.write_judgments([Judgment(query_id="q1", chunk_id="c1", grade=0)])

    text = render_html(summarise(dataset))

    assert "Of the queries that were measured and have a known relevant chunk, none is" in text


def test_short_slices_go_before_long_ones(dataset):
    """The page fills columns in this order, and a long table first would leave a hole."""
    given = (("q1", "easy", "log"), ("q2", "medium", "log"), ("q3", "hard", "synthetic"))
    dataset.write_queries(
        Query(query_id=query_id, query="?", difficulty=difficulty, origin=origin)
        for query_id, difficulty, origin in given
    )
    page = Page(render_html(summarise(dataset)))

    headings = [text for text in page.texts if text.startswith("nDCG@10 by ")]

    assert headings == ["nDCG@10 by origin", "nDCG@10 by difficulty"]
