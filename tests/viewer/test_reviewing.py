import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from html import unescape
from http.client import HTTPConnection
from textwrap import dedent

import pytest
from label_samples import HOSTILE, JUDGE
from versioned_sets import make_set, refreshed

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.pipeline.intake.review_states import state_of
from ragforge.records import Chunk, Evidence, Judgment, Query, Review
from ragforge.viewer.access import Person, SiteAccess
from ragforge.viewer.server import serving

pytestmark = pytest.mark.slow
TOKEN = "a-token-for-reading-it"
ANN = Person("Ann", "a-token-that-only-ann-has")
BO = Person("Bo", "a-token-that-only-bo-has")
PEOPLE = (ANN, BO)
PATH = "/datasets/first/decisions"


@pytest.fixture
def dataset(tmp_path):
    """A dataset of four queries, one of them unanswerable, each with a judge's grade."""
    made = create_dataset(tmp_path / "first", {})
    made.write_chunks(Chunk(chunk_id=f"c{k}", doc_id="d.md", text=f"It is {k}.") for k in range(4))
    made.write_queries(
        Query(
            query_id=f"q{k}",
            query=f"What is {k}?",
            expected_answer=f"It is {k}." if k else None,
            answerable=bool(k),
            evidence=(Evidence(doc_id="d.md", chunk_id=f"c{k}", quote=f"is {k}"),) if k else (),
        )
        for k in range(4)
    )
    made.write_judgments(
        Judgment(query_id=f"q{k}", chunk_id=f"c{k}", grade=3, provenance=JUDGE) for k in range(4)
    )
    return made


@contextmanager
def served(dataset, **more):
    with serving([dataset.path], lambda made: "report", TOKEN, people=PEOPLE, **more) as access:
        yield access


@pytest.fixture
def access(dataset):
    """The site on which Ann and Bo review it."""
    with served(dataset) as found:
        yield found


def ask(access, path, token=TOKEN, method="GET", body=None, **headers):
    """Return the reply to somebody's browser; a header that is None is not sent."""
    connection = HTTPConnection("127.0.0.1", access.port, timeout=30)
    usual = {
        "Cookie": f"{access.cookie}={token}",
        "Origin": f"http://127.0.0.1:{access.port}",
        "Content-Type": "application/json",
    }
    given = {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request(method, path, body, {k: v for k, v in given.items() if v is not None})
    reply = connection.getresponse()
    reply.text = reply.read().decode()
    connection.close()
    return reply


def row_of(dataset, query_id, decision, **fields):
    """Return a decision about a query as it stands now."""
    [query] = [
        query for query in open_dataset(dataset.path).all_queries() if query.query_id == query_id
    ]
    row = {"query_id": query_id, "revision": query.revision, "decision": decision}
    return {**row, "random": "", "state": state_of(query), "open": [], **fields}


def decide(access, row, person=ANN, path=PATH, **headers):
    """Send a decision."""
    body = row if isinstance(row, str) else json.dumps(row)
    return ask(access, path, person.token, "POST", body, **headers)


def query_of(dataset, query_id="q1"):
    return next(q for q in open_dataset(dataset.path).all_queries() if q.query_id == query_id)


@pytest.mark.parametrize(
    ("decision", "status"),
    [("approve", "accepted"), ("reject", "retired"), ("pin", "accepted")],
)
def test_a_decision_is_kept_at_once_under_the_name_of_its_token(access, dataset, decision, status):
    """Who closes the window loses nothing, and nobody decides as another."""
    row = row_of(dataset, "q1", decision, note="so", reviewer="Mallory")
    reply = decide(access, {**row, "reviewer": ""})

    found = query_of(dataset)
    assert (reply.status, found.reviewed.by, found.reviewed.note) == (200, "Ann", "so")
    assert (found.status, found.pinned is not None) == (status, decision == "pin")


def test_an_edit_is_the_next_revision_without_grades_of_the_former_wording(access, dataset):
    """A grade is of a question; of another one it is none."""
    row = row_of(dataset, "q1", "edit", new_query="What is one?", new_answer="One.")
    reply = decide(access, row)

    found = query_of(dataset)
    assert (found.query, found.expected_answer, found.revision) == ("What is one?", "One.", 2)
    assert json.loads(reply.text)["state"] == state_of(found)
    assert "q1" not in {item.query_id for item in dataset.judgments()}


def test_an_edit_tells_how_many_grades_of_people_it_sets_aside(access, dataset):
    """Whoever mends a question learns what it costs."""
    dataset.write_judgments(
        item.model_copy(update={"source": "human"}) for item in list(dataset.judgments())
    )
    reply = decide(access, row_of(dataset, "q1", "edit", new_query="Who is one?"))

    assert json.loads(reply.text)["former_grades"] == 1


def test_the_share_that_was_right_goes_into_the_manifest(access, dataset):
    """It is what review is for."""
    decide(access, row_of(dataset, "q1", "approve", random="random"))

    assert dataset.manifest.audit.n_right == 1
    assert dataset.manifest.audit.reviewers == ("Ann",)


def test_a_query_that_is_not_as_it_was_shown_is_not_decided_about(access, dataset):
    """Bo would approve a wording that he never saw."""
    seen = row_of(dataset, "q1", "approve")
    decide(access, row_of(dataset, "q1", "edit", new_query="What is one?"))
    reply = decide(access, seen, BO)

    assert (reply.status, json.loads(reply.text)["changed"]) == (409, True)
    assert "revision 2; edited by Ann" in reply.text
    assert query_of(dataset).reviewed == Review(decision="edit", by="Ann")


def test_a_decision_stands_until_somebody_overrules_it(access, dataset):
    """Two people may disagree; neither is written over unasked."""
    decide(access, row_of(dataset, "q1", "approve"))
    first = decide(access, row_of(dataset, "q1", "reject"), BO)
    stood = query_of(dataset).reviewed
    second = decide(access, row_of(dataset, "q1", "reject", overrule=True), BO)

    assert (first.status, json.loads(first.text)["contradicted"]) == (409, True)
    assert (stood.by, second.status) == ("Ann", 200)
    assert query_of(dataset).reviewed == Review(decision="reject", by="Bo")


def test_a_decision_that_is_taken_back_twice_is_taken_back_once(access, dataset):
    """The reply to the first time may get lost on its way."""
    before = query_of(dataset)
    decide(access, row_of(dataset, "q1", "reject"))
    row = row_of(dataset, "q1", "undecided")
    replies = [decide(access, row) for _ in range(2)]

    assert [reply.status for reply in replies] == [200, 200]
    assert json.loads(replies[1].text)["state"] == state_of(before)
    assert query_of(dataset) == before
    assert len((dataset.path / "reviews.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("decision", "more"),
    [("approve", {}), ("reject", {}), ("edit", {"new_answer": "One."})],
)
def test_a_decision_that_is_sent_again_is_known(access, dataset, decision, more):
    """The reply to the first time may get lost on its way."""
    row = row_of(dataset, "q1", decision, **more)
    replies = [decide(access, row).status for _ in range(2)]

    assert (replies, query_of(dataset).revision) == ([200, 200], 2 if more else 1)


def put_out(dataset, **fields):
    """Change the first query as a refresh does."""
    queries = open_dataset(dataset.path).all_queries()
    update = {"status": "quarantined", **fields}
    dataset.write_queries(q.model_copy(update=update) if q.query_id == "q1" else q for q in queries)


def test_an_approval_of_what_a_refresh_put_out_since_is_not_known(access, dataset):
    """The page would show as kept what counts for nothing."""
    row = row_of(dataset, "q1", "approve")
    decide(access, row)
    put_out(dataset)
    reply = decide(access, row)

    assert (reply.status, json.loads(reply.text)["changed"]) == (409, True)
    assert "it is quarantined, revision 1; approved by Ann" in reply.text


@pytest.mark.parametrize("decision", ["approve", "pin"])
def test_a_query_whose_evidence_is_gone_is_not_accepted(access, dataset, decision):
    """The set would be invalid, and no refresh would look at it again."""
    gone = Evidence(doc_id="d.md", chunk_id="c9", quote="It was 1.")
    put_out(dataset, evidence=(gone,))
    reply = decide(access, row_of(dataset, "q1", decision))

    assert (reply.status, query_of(dataset).status) == (400, "quarantined")
    assert "stands in 'd.md' no more" in unescape(reply.text)
    decide(access, row_of(dataset, "q1", "edit", new_answer="One."))
    assert (query_of(dataset).status, query_of(dataset).evidence) == ("accepted", ())


def test_what_others_decided_meanwhile_is_told(access, dataset):
    """Two people on one batch pass over what the other did."""
    decide(access, row_of(dataset, "q2", "approve"), BO)
    reply = decide(access, row_of(dataset, "q1", "approve", open=["q2", "q3"]))

    assert json.loads(reply.text)["others"] == {"q2": "approved by Bo"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Cookie": None}, 401),
        ({"Cookie": "ragforge_view_1=no"}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": None}, 405),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Host": "evil.example"}, 421),
    ],
)
def test_other_sites_and_strangers_decide_nothing(access, dataset, headers, status):
    """A page elsewhere in the browser must not write in the user's name."""
    assert decide(access, row_of(dataset, "q1", "reject"), **headers).status == status
    assert query_of(dataset).reviewed is None


def test_the_token_for_reading_changes_nothing(access, dataset):
    """Whoever may look may not decide, nor label, nor see the page for it."""
    reader = Person("", TOKEN)
    row = row_of(dataset, "q1", "reject")

    assert decide(access, row, reader).status == 403
    assert decide(access, row, reader, "/datasets/first/labels").status == 403
    assert ask(access, "/datasets/first/review").status == 403
    assert ask(access, "/datasets/first/label").status == 403
    assert query_of(dataset).reviewed is None


def test_who_labels_with_the_common_token_decides_nothing(dataset):
    """`--label` beside `--edit` gives no more than it did."""
    with served(dataset, labeller="Cyd") as access:
        reply = decide(access, row_of(dataset, "q1", "reject"), Person("Cyd", TOKEN))

    assert (reply.status, query_of(dataset).reviewed) == (403, None)


@pytest.mark.parametrize(
    "path", ["/", "/datasets/first", "/datasets/first/review", "/api/datasets"]
)
def test_nothing_else_takes_anything(access, dataset, path):
    """One address takes decisions."""
    assert decide(access, row_of(dataset, "q1", "reject"), path=path).status == 405


def test_a_site_without_people_takes_no_decision(dataset):
    """Reading is the usual case."""
    with serving([dataset.path], lambda made: "report", TOKEN) as access:
        reply = decide(access, row_of(dataset, "q1", "reject"), Person("", TOKEN))

    assert reply.status == 405


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"decision": "maybe"}, 400),
        ({"decision": ""}, 400),
        ({"decision": "edit"}, 400),
        ({"decision": "edit", "new_query": "What is 2?"}, 400),
        ({"decision": "edit", "new_query": "a\u202eb"}, 400),
        ({"decision": "approve", "new_query": "What else?"}, 400),
        ({"query_id": "q9"}, 409),
        ({"query_id": ""}, 400),
        ({"revision": "x"}, 400),
        ({"revision": 7}, 400),
        ({"state": "0"}, 409),
        ({"note": ["so"]}, 400),
        ({"note": "x" * 140_000}, 413),
    ],
)
def test_what_is_no_decision_is_refused(access, dataset, change, status):
    """Nothing else gets into the set."""
    before = (dataset.files / "queries.jsonl").read_bytes()
    row = row_of(dataset, "q1", "approve")

    assert decide(access, {**row, **change}).status == status
    assert (dataset.files / "queries.jsonl").read_bytes() == before


@pytest.mark.parametrize("body", ["[]", "{", "", "null", "[" * 50_000])
def test_what_is_no_object_is_refused(access, dataset, body):
    """Any program may send anything."""
    assert decide(access, body).status == 400
    assert query_of(dataset).reviewed is None


def test_tokens_must_be_told_apart():
    """A token that two have says nothing of who decided."""
    with pytest.raises(ValueError, match="that nobody else has"):
        SiteAccess("127.0.0.1", 1, TOKEN, people=(ANN, Person("Bo", ANN.token)))
    with pytest.raises(ValueError, match="that nobody else has"):
        SiteAccess("127.0.0.1", 1, TOKEN, people=(Person("Bo", TOKEN),))
    with pytest.raises(ValueError, match="with a token only"):
        SiteAccess("127.0.0.1", 1, "", people=(ANN,))


def test_tokens_are_in_no_repr():
    """It may end in a log."""
    shown = repr(SiteAccess("127.0.0.1", 1, TOKEN, people=PEOPLE))

    assert (TOKEN in shown, ANN.token in shown, "Ann" in shown) == (False, False, True)


def test_an_own_address_goes_before_the_cookie_of_another(access):
    """Ann opens her address where Bo's was opened before, and decides as Ann."""
    reply = ask(access, f"/datasets/first?token={ANN.token}", BO.token)

    assert reply.status == 303
    assert reply.getheader("Set-Cookie").startswith(f"{access.cookie}={ANN.token};")


def test_the_page_of_a_dataset_leads_who_may_to_review(access):
    """All is reached by clicking."""
    mine = ask(access, "/datasets/first", ANN.token).text
    theirs = ask(access, "/datasets/first").text

    assert ('href="first/review?order=document"' in mine, "as Ann" in mine) == (True, True)
    assert "first/review" not in theirs


def test_a_review_page_shows_batches_and_the_nearest_of_what_has_no_answer(access):
    """Who says that nothing answers it has to have seen what comes nearest."""
    page = ask(access, "/datasets/first/review?order=random&part=1/1", ANN.token)

    assert (page.status, page.text.count('class="item"')) == (200, 4)
    assert "Near, and should not answer it" in page.text
    assert "connect-src 'self'" in page.getheader("Content-Security-Policy")
    assert "frame-ancestors 'none'" in page.getheader("Content-Security-Policy")


def test_parts_share_no_query(access):
    """Two people at once do not do the same work."""
    parts = [ask(access, f"/datasets/first/review?part={k}/2", ANN.token).text for k in (1, 2)]
    ids = [set(re.findall(r'data-query-id="(q\d)"', part)) for part in parts]

    assert (ids[0] & ids[1], len(ids[0] | ids[1])) == (set(), 4)


@pytest.mark.parametrize("asked", ["order=best", "part=0/2", "part=3/2", "part=x", "q=none"])
def test_a_batch_that_is_none_is_an_error_page(access, asked):
    """The address may be typed by hand."""
    assert ask(access, f"/datasets/first/review?{asked}", ANN.token).status == 409


def test_one_query_is_decided_about_whatever_was_before(access, dataset):
    """From the page of any query one comes here."""
    decide(access, row_of(dataset, "q1", "reject"))
    page = ask(access, "/datasets/first/review?q=q1", ANN.token)

    assert (page.status, page.text.count('class="item"')) == (200, 1)
    assert "rejected by Ann" in page.text


def test_hostile_texts_are_texts_on_the_review_page(tmp_path):
    """Corpus and models write them."""
    made = create_dataset(tmp_path / "first", {})
    made.write_queries([Query(query_id="q1", query=HOSTILE, expected_answer=HOSTILE)])
    with served(made) as access:
        page = ask(access, "/datasets/first/review", ANN.token).text

    assert ("<img" in page, "\u202e" in page) == (False, False)


def test_decisions_of_two_at_once_are_all_kept(access, dataset):
    """Each of them reads, changes and writes the same file."""
    rows = [
        (row_of(dataset, "q0", "approve"), ANN),
        (row_of(dataset, "q1", "reject"), BO),
        (row_of(dataset, "q2", "pin"), ANN),
        (row_of(dataset, "q3", "approve"), BO),
    ]
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda one: decide(access, *one).status, rows))

    reviews = [query.reviewed for query in dataset.all_queries()]
    assert replies == [200] * 4
    assert [review.by for review in reviews] == ["Ann", "Bo", "Ann", "Bo"]


def test_of_two_at_once_on_one_query_one_is_told(access, dataset):
    """Neither is written over, whoever was first."""
    row = row_of(dataset, "q1", "approve")
    with ThreadPoolExecutor(2) as pool:
        sent = [(row, ANN), ({**row, "decision": "reject"}, BO)]
        replies = list(pool.map(lambda one: decide(access, *one), sent))

    [winner] = [who.name for who, reply in zip(PEOPLE, replies, strict=True) if reply.status == 200]
    assert sorted(reply.status for reply in replies) == [200, 409]
    assert query_of(dataset).reviewed.by == winner


def test_a_decision_during_a_refresh_goes_into_the_version_that_is_published(tmp_path):
    """Neither the night nor the decision is lost."""
    path = make_set(tmp_path / "first").path
    dataset = Dataset(path)
    with served(dataset) as access:
        refreshed(path, "b")
        reply = decide(access, row_of(dataset, "q01", "approve"))

    found = query_of(open_dataset(path), "q01")
    assert (reply.status, found.query, found.reviewed.by) == (200, "What is b of 01?", "Ann")


def test_a_decision_on_the_version_before_is_told(tmp_path):
    """The refresh gave it another wording than the one on the screen."""
    path = make_set(tmp_path / "first").path
    with served(Dataset(path)) as access:
        row = row_of(Dataset(path), "q01", "approve")
        refreshed(path, "b")
        reply = decide(access, row)

    assert (reply.status, query_of(open_dataset(path), "q01").reviewed) == (409, None)


REFRESHES = dedent("""
    import sys
    from pathlib import Path
    from ragforge.errors import ChangedMeanwhileError
    from ragforge.files.set.opening import open_dataset
    from ragforge.files.set.versions import next_version, publish, refresh_lock, stage_version

    path, published = Path(sys.argv[1]), 0
    while published < int(sys.argv[2]):
        with refresh_lock(path):
            parent = open_dataset(path)
            with stage_version(parent, next_version(path)) as staged:
                staged.past.write_changelog(f"night {published}\\n")
                try:
                    publish(staged, path)
                    published += 1
                except ChangedMeanwhileError:
                    pass
        print(published, flush=True)
""")


def test_nights_and_decisions_at_once_lose_nothing(tmp_path):
    """Versions are published by another process while people decide as fast as they can."""
    path = make_set(tmp_path / "first").path
    night = subprocess.Popen([sys.executable, "-c", REFRESHES, str(path), "6"])
    statuses = []
    with served(Dataset(path)) as access:
        for k in range(40):
            statuses.append(decide(access, row_of(Dataset(path), f"q{k:02}", "approve")).status)
    code = night.wait(60)

    last = open_dataset(path)
    assert (statuses, code) == ([200] * 40, 0)
    assert last.manifest.version == 7
    assert [query.query_id for query in last.all_queries() if query.reviewed is None] == []


DECIDES = dedent("""
    import sys
    from pathlib import Path
    from ragforge.files.formats.review_sheet import SheetDecision
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.intake.reviewing import decide, state_of

    path = Path(sys.argv[1])
    for query in open_dataset(path).all_queries():
        new = query.query.replace("What", "Which")
        row = SheetDecision(
            "page", query.query_id, 1, False, "", "edit", new, "", "", "", None, None
        )
        decide(path, row, "Ann", state_of(query))
        print(query.query_id, flush=True)
""")


@pytest.mark.parametrize("after", [1, 4, 9, 15])
def test_a_killed_decision_is_there_whole_or_not_at_all(tmp_path, after):
    """What was told to be kept is, and no grade stays that is of a former wording."""
    path = make_set(tmp_path / "first").path
    dataset = Dataset(path)
    dataset.write_judgments(
        item.model_copy(update={"source": "judge"}) for item in dataset.judgments()
    )
    process = subprocess.Popen(
        [sys.executable, "-c", DECIDES, str(path)], stdout=subprocess.PIPE, text=True
    )
    told = [process.stdout.readline().strip() for _ in range(after)]
    process.kill()
    process.communicate()

    queries = {query.query_id: query for query in dataset.all_queries()}
    graded = {item.query_id for item in dataset.judgments()}
    edited = {name for name, query in queries.items() if query.revision == 2}
    assert set(told) <= edited
    assert edited & graded == set()
    assert decide_next(path, queries) == 200


def decide_next(path, queries):
    """Return what becomes of a decision after that."""
    name = next(name for name, query in queries.items() if query.reviewed is None)
    with served(Dataset(path)) as access:
        return decide(access, row_of(Dataset(path), name, "approve")).status
