import pytest
from refresh.two_versions import (
    JUDGE,
    OTHER,
    asking,
    diff_of,
    graded,
    id_of,
    make_parent,
    pooled,
    stage,
)

from ragforge.records import Cause, Evidence, ItemChange, Provenance, QuoteGrade, text_id
from ragforge.refresh.grades.carrying import carry_judgments
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery

FEES = "The fee is ten percent."
DAYS = "Parcels arrive in three days."
COLOURS = "Boxes are brown or white."
BEFORE = {"a": (FEES, DAYS), "b": (COLOURS,)}
QUERY = asking("q", "a", FEES, FEES)


class Carry:
    """Make a set, another corpus, and what is carried from one to the other."""

    def __init__(self, place):
        self.place = place

    def __call__(
        self,
        now,
        judgments=(),
        *,
        items=None,
        renamed=None,
        before=BEFORE,
        judges=(JUDGE,),
        pool=(),
    ):
        items = items or [UpdatedQuery(QUERY, QUERY)]
        self.parent = make_parent(
            self.place / "set", before, [item.before for item in items], judgments, pool
        )
        diff = diff_of(before, now, self.place / "diff", renamed)
        self.staged = stage(self.parent, self.place / "staged", diff)
        self.diff, self.updated, self.judges = diff, UpdatedQueries(items), judges
        return self.again()

    def again(self):
        return carry_judgments(self.staged, self.parent, self.diff, self.updated, self.judges)

    @property
    def grades(self):
        return {
            (one.query_id, one.chunk_id): (one.grade, one.source) for one in self.staged.judgments()
        }


@pytest.fixture
def carry(tmp_path):
    return Carry(tmp_path)


def changed(before, now, action="remapped", **fields):
    """Return an item as settling leaves it."""
    cause = Cause(kind="document changed", doc_id="a")
    change = ItemChange(
        version=2, query_id="q", action=action, revision=now.revision, causes=(cause,)
    )
    return UpdatedQuery(before, now, change, **fields)


def counts(found):
    return found.kept, found.carried, found.dropped


def test_grades_of_chunks_that_stay_are_left_to_the_byte(carry):
    """A file that changes where nothing did cannot be trusted to tell what did."""
    judgments = [
        graded("q", id_of("a", FEES), 3, "evidence"),
        graded("q", id_of("a", DAYS), 1),
        graded("q", id_of("b", COLOURS), None),
    ]

    found = carry({**BEFORE, "c": ("A new page.",)}, judgments)

    name = "judgments.jsonl"
    assert (carry.staged.path / name).read_bytes() == (carry.parent.path / name).read_bytes()
    assert counts(found) == (1, 0, 0)


def test_grade_of_a_chunk_that_is_gone_drops_out(carry):
    """A grade of a text that nobody can retrieve any more says nothing."""
    found = carry({"a": (FEES, DAYS)}, [graded("q", id_of("b", COLOURS), 2)])

    assert carry.grades == {}
    assert counts(found) == (0, 0, 1)


def test_grade_follows_its_text_into_a_renamed_document(carry):
    """To rename a page must not cost a call."""
    now = {"a": (FEES, DAYS), "z": (COLOURS,)}

    found = carry(now, [graded("q", id_of("b", COLOURS), 2)], renamed={"b": "z"})

    assert carry.grades == {("q", id_of("z", COLOURS)): (2, "carried")}
    assert counts(found) == (0, 1, 0)


def test_text_that_stands_twice_is_looked_for_at_home_first(carry):
    """A copy elsewhere is another chunk, which may come to the same text by chance."""
    now = {"a": (FEES, DAYS), "y": (COLOURS,), "z": (COLOURS,)}

    carry(now, [graded("q", id_of("b", COLOURS), 2)], renamed={"b": "z"})

    assert carry.grades == {("q", id_of("z", COLOURS)): (2, "carried")}


def test_text_is_found_in_another_document_too(carry):
    """A page that was split in two leaves its texts where the grades were not."""
    now = {"a": (FEES, DAYS), "y": (COLOURS, "More."), "z": (COLOURS, "And more.")}

    carry(now, [graded("q", id_of("b", COLOURS), 2)])

    assert carry.grades == {
        ("q", id_of("y", COLOURS)): (2, "carried"),
        ("q", id_of("z", COLOURS)): (2, "carried"),
    }


def test_of_several_that_become_one_a_persons_grade_stands(carry):
    """Two pages that are merged must not make what a person said depend on an order."""
    before = {"a": (FEES,), "b": (COLOURS,), "c": (COLOURS,)}
    judgments = [
        graded("q", id_of("b", COLOURS), 1, "human"),
        graded("q", id_of("c", COLOURS), 3),
    ]

    found = carry({"a": (FEES,), "z": (COLOURS,)}, judgments, before=before)

    assert carry.grades == {("q", id_of("z", COLOURS)): (1, "human")}
    assert counts(found) == (0, 1, 0)


def test_blanks_make_no_other_text(carry):
    """A reflowed page reads the same."""
    now = {"a": (FEES, DAYS), "z": (COLOURS.replace(" ", "\n"),)}

    carry(now, [graded("q", id_of("b", COLOURS), 2)], renamed={"b": "z"})

    assert carry.grades == {("q", id_of("z", COLOURS)): (2, "carried")}


def test_graded_quote_of_a_person_follows_the_quote(carry):
    """What a person said of two sentences holds when the page around them is edited."""
    before = {"a": (FEES,), "b": (f"{COLOURS} {DAYS}",)}
    human = graded("q", id_of("b", before["b"][0]), 3, "human", None, DAYS)
    now = {"a": (FEES,), "z": ("Boxes are gone.", f"Mind: {DAYS}")}

    found = carry(now, [human], before=before, renamed={"b": "z"})

    assert carry.grades == {("q", id_of("z", f"Mind: {DAYS}")): (3, "human")}
    assert counts(found) == (0, 1, 0)


def test_persons_grade_of_a_chunk_follows_the_evidence_in_it(carry):
    """A chunk that was edited beside its quote is no longer there by its id, and says the same."""
    longer = f"{FEES} It is due at once."
    human = graded("q", id_of("a", FEES), 2, "human", None)

    found = carry({**BEFORE, "a": (longer, DAYS)}, [human], items=[reverified(longer, FEES)])

    assert carry.grades == {("q", id_of("a", longer)): (2, "human")}
    assert counts(found) == (0, 1, 0)


def reverified(text, quote):
    """Return the query with a quote in another chunk, as a check found it."""
    evidence = (Evidence(doc_id="a", chunk_id=id_of("a", text), quote=quote),)
    return changed(QUERY, QUERY.model_copy(update={"evidence": evidence}), "reverified")


def test_persons_grade_does_not_hold_for_another_answer(carry):
    """What a person said of ten percent says nothing of twelve."""
    twelve = FEES.replace("ten", "twelve")
    now = asking("q", "a", twelve, twelve, revision=2)
    human = graded("q", id_of("a", FEES), 2, "human", None, FEES)

    found = carry(
        {**BEFORE, "a": (twelve, DAYS)}, [human], items=[changed(QUERY, now, "answer_changed")]
    )

    assert carry.grades == {("q", id_of("a", twelve)): (3, "evidence")}
    assert (found.dropped, found.dormant) == (1, 1)


def test_a_text_that_a_judge_graded_keeps_its_grade_beside_a_quote_that_went(carry):
    """Nothing happened to it; the query just rests on it now."""
    before = {"a": (FEES, DAYS), "b": (f"{FEES} {COLOURS}",)}
    there = id_of("b", before["b"][0])
    moved = QUERY.model_copy(
        update={"evidence": (Evidence(doc_id="b", chunk_id=there, quote=FEES),)}
    )
    judgments = [graded("q", id_of("a", FEES), 3, "human", None, FEES), graded("q", there, 2)]

    found = carry(
        {**before, "a": (DAYS,)},
        judgments,
        items=[changed(QUERY, moved, "reverified", is_moved=True)],
        before=before,
    )

    assert carry.grades == {("q", there): (2, "judge")}
    assert (found.dropped, found.dormant) == (1, 1)


def test_evidence_of_a_moved_query_is_told_anew(carry):
    """Its old chunk is gone, and the new one holds the answer by its quote."""
    longer = f"{FEES} It is due at once."
    moved = QUERY.model_copy(
        update={"evidence": (Evidence(doc_id="a", chunk_id=id_of("a", longer), quote=FEES),)}
    )
    item = changed(QUERY, moved, is_moved=True)
    own = graded("q", id_of("a", FEES), 3, "evidence")

    found = carry({**BEFORE, "a": (longer, DAYS)}, [own], items=[item])

    assert carry.grades == {("q", id_of("a", longer)): (3, "evidence")}
    assert counts(found) == (0, 0, 0)


def beside_a_copy(carry, item, text):
    """Carry the evidence of a page that changes, and of a copy of its chunk that does not."""
    own = graded("q", id_of("a", FEES), 3, "evidence")
    copy = own.model_copy(update={"chunk_id": id_of("b", FEES), "copied_from": own.chunk_id})
    before = {"a": (FEES,), "b": (FEES,)}
    carry({**before, "a": (text,)}, [own, copy], before=before, items=[item])
    return carry.grades


def test_a_copy_keeps_what_evidence_says_where_the_page_beside_it_changes(carry):
    """Nobody looks at it again, and without a grade it is a hole in its pool."""
    longer = f"{FEES} It is due at once."

    assert beside_a_copy(carry, reverified(longer, FEES), longer) == {
        ("q", id_of("a", longer)): (3, "evidence"),
        ("q", id_of("b", FEES)): (3, "evidence"),
    }


def test_a_copy_of_what_proved_another_answer_proves_nothing(carry):
    """Its pool is judged anew."""
    twelve = FEES.replace("ten", "twelve")
    item = changed(QUERY, asking("q", "a", twelve, twelve, revision=2), "answer_changed")

    assert beside_a_copy(carry, item, twelve) == {("q", id_of("a", twelve)): (3, "evidence")}


@pytest.mark.parametrize("grade", [1, 2])
def test_judges_grade_stands_beside_evidence_that_it_saw(carry, grade):
    """A section put on top of a page moves offsets, and must not turn verdicts into claims."""
    moved = QUERY.model_copy(
        update={"evidence": (QUERY.evidence[0].model_copy(update={"start": 40, "end": 60}),)}
    )
    item = changed(QUERY, moved, is_moved=True)

    carry({"a": ("New on top.", FEES, DAYS)}, [graded("q", id_of("a", FEES), grade)], items=[item])

    assert carry.grades == {("q", id_of("a", FEES)): (grade, "judge")}


def test_evidence_stands_that_moves_to_a_text_of_a_lower_grade(carry):
    """What proved the query goes on to do so where its chunk becomes one with another."""
    before = {"a": (FEES,), "b": (FEES,)}
    own = graded("q", id_of("a", FEES), 3, "evidence")
    item = changed(QUERY, asking("q", "z", FEES, FEES), is_moved=True)

    carry({"z": (FEES,)}, [own, graded("q", id_of("b", FEES), 1)], before=before, items=[item])

    assert carry.grades == {("q", id_of("z", FEES)): (3, "evidence")}


@pytest.mark.parametrize("source", ["human", "judge"])
def test_text_is_open_whose_evidence_was_found_not_relevant(carry, source):
    """Nobody saw what was added, and whoever saw the evidence said that it answers nothing."""
    longer = f"{FEES} It is due at once."
    refuted = graded("q", id_of("a", FEES), 0, source, None if source == "human" else JUDGE)

    found = carry({**BEFORE, "a": (longer, DAYS)}, [refuted], items=[reverified(longer, FEES)])

    assert carry.grades == {}
    assert (found.dropped, found.dormant) == (1, source == "human")


def test_grades_of_judges_outlive_an_answer_and_its_evidence_does_not(carry):
    """Relevance is judged against the question; evidence is of the answer."""
    now = QUERY.model_copy(update={"answerable": False, "evidence": ()})
    judgments = [graded("q", id_of("a", FEES), 3, "evidence"), graded("q", id_of("a", DAYS), 1)]

    carry(BEFORE, judgments, items=[changed(QUERY, now, "converted")])

    assert carry.grades == {("q", id_of("a", DAYS)): (1, "judge")}


def of_two_steps(**fields):
    """Return a query whose answer stands in two documents."""
    parts = (("a", FEES), ("b", COLOURS))
    evidence = tuple(
        Evidence(doc_id=doc_id, chunk_id=id_of(doc_id, text), quote=text, hop=hop)
        for hop, (doc_id, text) in enumerate(parts, 1)
    )
    return QUERY.model_copy(update={"evidence": evidence, **fields})


def test_what_stands_of_a_retired_query_stays_graded(carry):
    """A person may bring it back any day, and nothing tells the grades anew then."""
    query = of_two_steps()
    judgments = [
        graded("q", id_of("a", FEES), 2, "evidence"),
        graded("q", id_of("b", COLOURS), 2, "evidence"),
    ]
    retired = changed(query, of_two_steps(status="retired"), "retired")

    carry({"a": (FEES, DAYS)}, judgments, items=[retired])

    assert carry.grades == {("q", id_of("a", FEES)): (2, "evidence")}


@pytest.mark.parametrize("status", ["accepted", "retired"])
def test_evidence_that_is_back_is_graded_again(carry, status):
    """A query that is revived must not be without the chunk that answers it."""
    was = of_two_steps(status="retired")
    now = was if status == "retired" else of_two_steps()
    item = UpdatedQuery(was, was) if status == "retired" else changed(was, now, "revived")
    judgments = [graded("q", id_of("a", FEES), 2, "evidence")]

    carry({**BEFORE}, judgments, items=[item], before={"a": (FEES, DAYS)})

    assert carry.grades == {
        ("q", id_of("a", FEES)): (2, "evidence"),
        ("q", id_of("b", COLOURS)): (2, "evidence"),
    }


@pytest.mark.parametrize(
    ("old", "stands"),
    [
        (graded("q", id_of("a", DAYS), 0), (3, "evidence")),
        (graded("q", id_of("a", DAYS), None), (3, "evidence")),
        (graded("q", id_of("a", DAYS), 3), (3, "judge")),
        (graded("q", id_of("a", DAYS), 1, "human"), (1, "human")),
    ],
)
def test_new_evidence_is_not_given_up_for_a_lower_grade_of_a_judge(carry, old, stands):
    """A query without a relevant chunk marks down every system, whatever it finds."""
    now = asking("q", "a", DAYS, DAYS, revision=2)

    carry(BEFORE, [old], items=[changed(QUERY, now, "answer_changed")])

    assert carry.grades == {("q", id_of("a", DAYS)): stands}


def test_grades_of_another_judge_are_marked(carry):
    """A set with grades of two judges must say which are of which."""
    judgments = [
        graded("q", id_of("a", DAYS), 2),
        graded("q", id_of("b", COLOURS), 1, "human"),
    ]

    found = carry({**BEFORE, "c": ("New.",)}, judgments, judges=(OTHER,))

    assert carry.grades == {
        ("q", id_of("a", DAYS)): (2, "carried"),
        ("q", id_of("b", COLOURS)): (1, "human"),
    }
    assert counts(found) == (1, 1, 0)


def test_a_baseline_that_judges_today_marks_nothing(carry):
    """Grades of a model are worth more than its own, and stay what they are."""
    baseline = Provenance(kind="baseline", model="offline")

    carry({**BEFORE, "c": ("New.",)}, [graded("q", id_of("a", DAYS), 2)], judges=(baseline,))

    assert carry.grades == {("q", id_of("a", DAYS)): (2, "judge")}


def test_pools_follow_their_chunks(carry):
    """A pool says what was looked at, and is told under the names of today."""
    pool = [pooled("q", id_of("a", FEES)), pooled("q", id_of("b", COLOURS), 2)]

    carry({"z": (COLOURS,)}, pool=pool, renamed={"b": "z"})

    assert carry.staged.pool() == [pooled("q", id_of("z", COLOURS), 2)]


def test_moves_are_told_over_several_versions(carry):
    """A ranking of three versions ago names chunks as they were called then."""
    now = {"a": (FEES, DAYS), "z": (COLOURS,)}
    carry(now, [graded("q", id_of("b", COLOURS), 2)], renamed={"b": "z"})
    assert carry.staged.past.moved_chunks() == {id_of("b", COLOURS): (id_of("z", COLOURS),)}

    later = diff_of(now, {"a": (FEES,), "y": (COLOURS,)}, carry.place / "later", {"z": "y"})
    third = stage(carry.staged, carry.place / "third", later)
    carry_judgments(third, carry.staged, later, carry.updated, (JUDGE,))

    assert third.past.moved_chunks() == {
        id_of("b", COLOURS): (id_of("y", COLOURS),),
        id_of("z", COLOURS): (id_of("y", COLOURS),),
    }


def test_doing_it_again_writes_the_same(carry):
    """A run that was killed is repeated, and comes to the same version."""
    now = {"a": (DAYS, FEES), "z": (COLOURS,)}
    judgments = [graded("q", id_of("b", COLOURS), 2), graded("q", id_of("a", FEES), 3, "evidence")]
    carry(now, judgments, renamed={"b": "z"}, pool=[pooled("q", id_of("b", COLOURS))])
    before = {path.name: path.read_bytes() for path in carry.staged.path.iterdir()}

    carry.again()

    assert {path.name: path.read_bytes() for path in carry.staged.path.iterdir()} == before


BOTH = f"{FEES} {DAYS}"


def of_person(text, grade, quote, *given):
    """Return a person's judgment of a text of `a`, by the quotes that it holds."""
    quotes = tuple(QuoteGrade(quote=quote, grade=grade) for quote, grade in given)
    judgment = graded("q", id_of("a", text), grade, "human", None, quote)
    return judgment.model_copy(update={"quote_grades": quotes})


def test_quotes_that_meet_in_one_chunk_keep_what_each_was_given(carry):
    """The chunk has the highest, and the others need theirs where they stand alone again."""
    given = [of_person(FEES, 1, FEES), of_person(DAYS, 3, DAYS)]

    carry({**BEFORE, "a": (BOTH,)}, given)

    assert carry.staged.judgments() == [of_person(BOTH, 3, DAYS, (DAYS, 3), (FEES, 1))]


def test_quotes_part_with_what_each_was_given(carry):
    """A person's 1 had become a 3 by rule."""
    given = of_person(BOTH, 3, DAYS, (DAYS, 3), (FEES, 1))
    together = asking("q", "a", BOTH, FEES)

    carry(
        {**BEFORE, "a": (FEES, DAYS)},
        [given],
        before={**BEFORE, "a": (BOTH,)},
        items=[changed(together, QUERY, is_moved=True)],
    )

    assert carry.grades == {
        ("q", id_of("a", FEES)): (1, "human"),
        ("q", id_of("a", DAYS)): (3, "human"),
    }


def test_chunk_that_holds_all_of_a_quote_again_has_the_grade_given(carry):
    """Its pieces had a part: that says nothing of the whole."""
    pieces = [of_person(text, 2, BOTH, (BOTH, 3)) for text in (FEES, DAYS)]

    carry({**BEFORE, "a": (f"{BOTH} {COLOURS}",)}, pieces)

    assert carry.grades == {("q", id_of("a", f"{BOTH} {COLOURS}")): (3, "human")}


def holding(*quotes):
    """Return the query with quotes of `a`, each as its text and what is quoted."""
    evidence = tuple(
        Evidence(doc_id="a", chunk_id=id_of("a", text), quote=quote) for text, quote in quotes
    )
    return QUERY.model_copy(update={"evidence": evidence})


def test_grades_of_chunks_follow_their_evidence_there_and_back(carry, tmp_path):
    """What met in one chunk is told apart by the evidence that each chunk held."""
    given = [of_person(FEES, 2, ""), of_person(DAYS, 3, "")]
    apart, together = holding((FEES, FEES), (DAYS, DAYS)), holding((BOTH, FEES), (BOTH, DAYS))
    carry({**BEFORE, "a": (BOTH,)}, given, items=[changed(apart, together, is_moved=True)])
    assert carry.grades == {("q", id_of("a", BOTH)): (3, "human")}
    back = Carry(tmp_path / "back")

    back(
        {**BEFORE, "a": (FEES, DAYS)},
        carry.staged.judgments(),
        before={**BEFORE, "a": (BOTH,)},
        items=[changed(together, apart, is_moved=True)],
    )

    assert back.grades == {
        ("q", id_of("a", FEES)): (2, "human"),
        ("q", id_of("a", DAYS)): (3, "human"),
    }


def test_a_quote_that_is_gone_waits_beside_one_that_stands(carry):
    """Two quotes of one chunk are not one."""
    given = of_person(BOTH, 3, DAYS, (DAYS, 3), (FEES, 1))

    found = carry({**BEFORE, "a": (DAYS,)}, [given], before={**BEFORE, "a": (BOTH,)})

    assert carry.grades == {("q", id_of("a", DAYS)): (3, "human")}
    assert found.dormant == 1


@pytest.mark.parametrize(("source", "now"), [("human", "human"), ("judge", "carried")])
def test_a_text_that_is_a_chunk_again_has_its_grade_again(carry, source, now):
    """`generate --rederive` leaves grades with texts; the next cut may be a refresh."""
    together = asking("q", "a", BOTH, FEES)
    waits = graded("q", text_id(FEES), 1, source)

    carry(
        {**BEFORE, "a": (FEES, DAYS)},
        [waits],
        before={**BEFORE, "a": (BOTH,)},
        items=[changed(together, QUERY, is_moved=True)],
    )

    assert carry.grades == {("q", id_of("a", FEES)): (1, now)}
