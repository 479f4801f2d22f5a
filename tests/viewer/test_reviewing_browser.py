from contextlib import contextmanager

import pytest
from devtools import FLAGS, NEEDS_BROWSER, opened, until

from ragforge.files.formats.review_sheet import SheetDecision
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.intake.review_states import state_of
from ragforge.pipeline.intake.reviewing import decide
from ragforge.records import Chunk, Query
from ragforge.viewer.access import Person
from ragforge.viewer.server import serving

pytestmark = [*NEEDS_BROWSER, pytest.mark.slow]
TOKEN = "a-token-for-reading-it"
PEOPLE = (Person("Ann", "a-token-that-only-ann-has"), Person("Bo", "a-token-that-only-bo-has"))
AT = "document.activeElement.closest('article')?.dataset.queryId"
DONE = "document.getElementById('done').textContent"
IDS = "[...document.querySelectorAll('article')].map((item) => item.dataset.queryId)"


def article(query_id, rest=""):
    return f"document.querySelector('[data-query-id={query_id}]'){rest}"


def fault(query_id):
    return article(query_id, ".querySelector('.fault').textContent")


@pytest.fixture
def dataset(tmp_path):
    """A dataset of four queries."""
    made = create_dataset(tmp_path / "first", {})
    made.write_chunks([Chunk(chunk_id="c", doc_id="d", text="It is so.")])
    made.write_queries(
        Query(query_id=f"q{k}", query=f"What is {k}?", expected_answer=f"{k}.") for k in range(4)
    )
    return made


@pytest.fixture
def access(dataset):
    """The site on which Ann and Bo review it."""
    with serving([dataset.path], lambda made: "report", TOKEN, people=PEOPLE) as found:
        yield found


@pytest.fixture
def page(access, tmp_path):
    """Ann's browser on the review page."""
    with reviewing(access, tmp_path) as found:
        yield found


@contextmanager
def reviewing(access, tmp_path, asked="order=random", person=PEOPLE[0]):
    blank = tmp_path / "blank.html"
    blank.write_text("<!DOCTYPE html>", encoding="utf-8")
    with opened(blank, tmp_path / f"profile-{person.name}", FLAGS) as found:
        found.call("Log.enable")
        found.call("Runtime.enable")
        place = access.address_for(person.token).replace("/?", f"/datasets/first/review?{asked}&")
        found.call("Page.navigate", url=place)
        loaded(found)
        yield found


def loaded(page):
    page.value(
        "new Promise((done) => document.readyState === 'complete' && location.protocol === 'http:'"
        " ? done(1) : addEventListener('load', () => done(1)))"
    )


def reopen(page):
    """Load the page anew, a moment later: a busy browser writes what is kept behind its back."""
    page.value("new Promise((done) => setTimeout(done, 500))")
    page.call("Page.navigate", url=page.value("location.href"))
    loaded(page)


def reviews(dataset):
    return {
        q.query_id: q.reviewed and (q.reviewed.decision, q.reviewed.by)
        for q in dataset.all_queries()
    }


def by_another(dataset, query_id, decision, new_query=""):
    """Have Bo decide from elsewhere."""
    [query] = [query for query in dataset.all_queries() if query.query_id == query_id]
    row = SheetDecision(
        "x", query_id, query.revision, False, "", decision, new_query, "", "", "", None, None
    )
    decide(dataset.path, row, "Bo", state_of(query))


def ctrl_enter(page):
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", modifiers=2)


def test_decisions_by_key_are_kept_at_once_and_go_on(page, dataset):
    """Who decides fifty presses fifty keys, and saves no file."""
    order = page.value(IDS)
    for key in "jarp":
        page.press(key)
    until(page, f"{DONE}.startsWith('3 of 4')")

    found = reviews(dataset)
    assert [found[query_id] for query_id in order] == [
        ("approve", "Ann"), ("reject", "Ann"), ("approve", "Ann"), None
    ]  # fmt: skip
    assert page.value(AT) == order[3]
    assert page.complaints() == []


def test_an_edit_is_kept_when_it_is_said_to_be(page, dataset):
    """Not at every letter; and what is shown is the new wording."""
    first = page.value(IDS)[0]
    page.press("j")
    page.press("e")
    page.value("document.activeElement.select()")
    page.call("Input.insertText", text="What else?")
    before = reviews(dataset)[first]
    ctrl_enter(page)
    until(page, f"{DONE}.startsWith('1 of 4')")

    [query] = [query for query in dataset.all_queries() if query.query_id == first]
    assert (before, query.query, query.revision) == (None, "What else?", 2)
    assert page.value(article(first, ".querySelector('h2 span').textContent")) == "What else?"
    assert page.value(AT) == page.value(IDS)[1]


def test_a_decision_is_changed_by_who_made_it(page, dataset):
    """A wrong key is put right by the right one."""
    first = page.value(IDS)[0]
    page.press("j")
    page.press("r")
    page.press("k")
    page.press("a")
    until(page, f"{article(first)}.dataset.decision === 'approve'")

    assert reviews(dataset)[first] == ("approve", "Ann")
    assert page.value(DONE) == "1 of 4 decided"


def test_a_decision_is_taken_back_by_who_made_it(page, dataset):
    """The query is as it was, and stands among the open ones again."""
    before = dataset.all_queries()
    first = page.value(IDS)[0]
    page.press("j")
    page.press("r")
    until(page, f"{DONE} === '1 of 4 decided'")
    page.press("k")
    page.press("u")
    until(page, f"{article(first)}.dataset.decision === 'undecided'")
    told, at = page.value(DONE), page.value(AT)
    reopen(page)

    assert (told, at, dataset.all_queries()) == ("0 of 4 decided", first, before)
    assert set(page.value(IDS)) == {query.query_id for query in before}
    assert page.complaints() == []


def test_an_edit_that_is_taken_back_shows_the_former_wording(page, dataset):
    """What was typed stays in its field, for another try."""
    first = page.value(IDS)[0]
    shown = page.value(article(first, ".querySelector('h2 span').textContent"))
    page.press("j")
    page.press("e")
    page.value("document.activeElement.select()")
    page.call("Input.insertText", text="What else?")
    ctrl_enter(page)
    until(page, f"{article(first)}.dataset.decision === 'edit'")
    page.press("k")
    page.press("u")
    until(page, f"{article(first)}.dataset.decision === 'undecided'")

    [query] = [query for query in dataset.all_queries() if query.query_id == first]
    assert (query.query, query.revision, query.reviewed) == (shown, 3, None)
    assert page.value(article(first, ".querySelector('h2 span').textContent")) == shown
    assert page.value(article(first, ".querySelector('[name=new_query]').value")) == "What else?"


def test_a_decision_of_another_is_taken_back_by_a_second_key(page, dataset):
    """Nobody's word is taken from a set unasked."""
    first = page.value(IDS)[0]
    by_another(dataset, first, "approve")
    page.call("Page.navigate", url=page.value(f"location.href.split('?')[0] + '?q={first}'"))
    loaded(page)
    page.press("j")
    page.press("u")
    until(page, f"{fault(first)}.startsWith('Not kept: Bo decided approve')")
    stood = reviews(dataset)[first]
    page.value(f"{article(first)}.querySelector('.overrule').click()")
    until(page, f"{article(first)}.dataset.decision === 'undecided'")

    assert (stood, reviews(dataset)[first]) == (("approve", "Bo"), None)


def test_a_note_goes_along_also_when_it_comes_later(page, dataset):
    """The reason is written after the decision as often as before."""
    first = page.value(IDS)[0]
    page.press("j")
    page.press("a")
    until(page, f"{DONE}.startsWith('1 of 4')")
    page.value(f"{article(first)}.querySelector('[name=note]').focus()")
    page.call("Input.insertText", text="checked")
    page.press("Escape")
    # The reply to the second time is another one.
    state = page.value(f"{article(first)}.dataset.state")
    until(page, f"{article(first)}.dataset.state !== '{state}' || {DONE}.includes('1 of 4')")
    until(page, f"!{DONE}.includes('not kept')")

    [query] = [query for query in dataset.all_queries() if query.query_id == first]
    assert query.reviewed.note == "checked"


def test_what_is_typed_and_where_one_was_survive_a_reload(page):
    """A browser may crash in the middle of a sentence."""
    first, second = page.value(IDS)[:2]
    page.press("j")
    page.press("j")
    page.press("e")
    page.call("Input.insertText", text=" Indeed")
    reopen(page)

    box = f"{article(second)}.querySelector('[name=new_query]').value"
    assert "Indeed" in page.value(box)
    assert page.value(AT) == second
    assert page.value(f"{article(first)}.querySelector('input:checked')") is None


def test_another_persons_decision_is_told_and_overruled_on_purpose(page, dataset):
    """Nobody is written over unasked."""
    first = page.value(IDS)[0]
    by_another(dataset, first, "approve")
    reopen(page)
    page.value("document.activeElement.blur()")
    shown = page.value("document.body.textContent")
    by_this = page.value(IDS)
    page.call("Page.navigate", url=page.value(f"location.href.split('?')[0] + '?q={first}'"))
    loaded(page)
    page.press("j")
    page.press("r")
    until(page, f"{fault(first)}.startsWith('Not kept: Bo decided approve')")
    stood = reviews(dataset)[first]
    page.value(f"{article(first)}.querySelector('.overrule').click()")
    until(page, f"{article(first)}.dataset.decision === 'reject'")

    assert (stood, reviews(dataset)[first]) == (("approve", "Bo"), ("reject", "Ann"))
    assert first not in by_this or "approved by Bo" in shown


def test_a_query_that_changed_is_told_and_shown_anew(page, dataset):
    """Ann sees what Bo made of it before she decides."""
    first = page.value(IDS)[0]
    by_another(dataset, first, "edit", "What did Bo write?")
    page.press("j")
    page.press("a")
    until(page, f"{fault(first)}.includes('edited by Bo')")
    told = page.value(DONE)
    hidden = page.value(f"{article(first)}.querySelector('.overrule').hidden")

    assert ("not kept: query 1" in told, hidden) == (True, True)
    assert reviews(dataset)[first] == ("edit", "Bo")


def test_what_another_decided_meanwhile_is_passed_over(page, dataset):
    """Two people on one batch do not do the same work."""
    order = page.value(IDS)
    by_another(dataset, order[1], "approve")
    page.press("j")
    page.press("a")
    until(page, f"{fault(order[1])} === 'Meanwhile approved by Bo.'")
    page.press("k")
    page.press("a")

    assert page.value(AT) == order[2]
    assert page.value(DONE).startswith("2 of 4")


def test_arrow_keys_go_through_the_choices_and_enter_takes_one(page, dataset):
    """Choosing by arrow must not decide three times on the way."""
    first = page.value(IDS)[0]
    page.value(f"{article(first)}.querySelector('input[value=reject]').focus()")
    for kind in ("keyDown", "keyUp"):
        page.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key="ArrowRight",
            code="ArrowRight",
            windowsVirtualKeyCode=39,
        )
    on_the_way = (page.value("document.activeElement.value"), reviews(dataset)[first])
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter")
    until(page, f"{DONE}.startsWith('1 of 4')")

    assert on_the_way == ("pin", None)
    assert reviews(dataset)[first] == ("approve", "Ann")


def test_a_click_decides(page, dataset):
    """Not everybody uses keys."""
    first = page.value(IDS)[0]
    page.value(f"{article(first)}.querySelector('input[value=reject]').click()")
    until(page, f"{DONE}.startsWith('1 of 4')")

    assert reviews(dataset)[first] == ("reject", "Ann")


def test_decisions_wait_while_the_server_is_away(page, dataset):
    """It is started again at noon; nothing that was decided is lost."""
    page.value("window.real = window.fetch; window.fetch = () => Promise.reject(new TypeError())")
    page.press("j")
    page.press("a")
    page.press("r")
    until(page, f"{DONE}.includes('cannot be reached')")
    waiting = page.value(DONE)
    page.value("window.fetch = window.real")
    until(page, f"{DONE} === '2 of 4 decided'")

    assert "2 not kept yet" in waiting
    assert sum(review is not None for review in reviews(dataset).values()) == 2


def test_two_people_review_one_set_in_two_browsers(page, access, dataset, tmp_path):
    """Each in the own name, each the own part."""
    order = page.value(IDS)
    with reviewing(access, tmp_path, "order=random", PEOPLE[1]) as other:
        page.press("j")
        page.press("a")
        until(page, f"{DONE}.startsWith('1 of 4')")
        for key in "jjr":
            other.press(key)
        until(other, f"{DONE}.startsWith('2 of 4')")
        found = reviews(dataset)

    assert found[order[0]] == ("approve", "Ann")
    assert found[order[1]] == ("reject", "Bo")
    assert [page.complaints(), other.complaints()] == [[], []]
