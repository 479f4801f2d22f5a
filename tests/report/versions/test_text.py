"""A refresh on the terminal."""

import pytest

from ragforge.evaluating.versions import RefreshPlan, RefreshSummary
from ragforge.files.manifest import Spent
from ragforge.records import VersionCheck
from ragforge.report.versions import refresh_text


def summary(status, **more):
    return RefreshSummary(status, "set", "help centre", 3, 4, **more)


@pytest.fixture
def published(diff):
    spent = Spent(calls=3, prompt_tokens=800, completion_tokens=100, cost_usd=0.0012)
    return refresh_text(summary("published", diff=diff, spent=spent, removed=(1,)))


@pytest.mark.parametrize(
    "line",
    [
        "help centre: version 4 is published (after 3)",
        "documents: 1 added, 1 changed, 1 renamed (10 before, 11 now); chunks: 90 kept, 4 added, "
        "3 gone",
        "queries: 17 kept, 1 remapped, 1 answer changed, 1 retired",
        "  q_1 answer changed (revision 2): document changed docs/timeouts.md: the text within 300 "
        "characters of the quote changed",
        "grades: 180 kept, 3 carried, 5 new, 40 from evidence, 1 failed (229 in all); 2 dropped "
        "with their chunks, 2 of people wait for theirs",
        "calls: 2 to verify, 1 to judge, 0 to look for conflicts, 0 to generate",
        "unchanged: 2 queries with the same question, answer, quotes and chunks graded above "
        "0, by one judge in both versions; `history` scores others anew on the grades of now, "
        "where it can",
        "  churn FAILED (0.25, limit 0.15): 5 of 20",
        "bought now: 3 calls, 900 tokens, 0.0012 USD",
        "old versions removed: 1",
    ],
)
def test_the_log_says(published, line):
    """A log of the night is what is looked at in the morning."""
    assert line in published.split("\n")


def test_what_was_only_remapped_is_counted_and_not_listed(published):
    """A chapter that moved remaps hundreds of queries, among which the three that matter drown."""
    assert "q_2" not in published


def test_texts_of_documents_cannot_steer_the_terminal(published):
    """A file's name is data."""
    assert "\x1b" not in published


def test_a_price_that_is_not_known_is_not_nought(diff):
    """A failure is never a value, nor is an unknown price; what was not bought has none."""
    found = summary("published", diff=diff, spent=Spent(calls=1))
    assert "tokens, cost unknown" in refresh_text(found)
    assert "0 tokens, 0.0000 USD" in refresh_text(summary("published", diff=diff))


def test_a_night_without_a_change_says_so():
    """Silence could as well mean that nothing ran."""
    expected = "help centre: nothing changed; version 3 stays, no call was made"
    assert refresh_text(summary("unchanged")) == expected


def test_failed_judgments_are_said_where_nothing_changed():
    """A hole in a pool stays until somebody asks for it to be judged again."""
    told = refresh_text(summary("unchanged", n_failed_judgments=7))

    assert told.split("\n")[1] == (
        "7 pairs have no grade, as their judgments failed; --retry-failed judges those in pools "
        "again, and `ragforge judge --retry-failed` those of runs"
    )


@pytest.mark.parametrize(
    ("failed", "told"),
    [
        (("churn",), "; what failed: churn; --accept-churn would publish it"),
        (
            ("accepted queries", "churn"),
            "; what failed: accepted queries, churn; a lower --accepted-least with --accept-churn "
            "would publish it",
        ),
        (("churn", "duplicates"), "; what failed: churn, duplicates"),
    ],
)
def test_what_rejected_a_version_is_named_and_what_would_publish_it(diff, failed, told):
    """A flag that does not help costs a night."""
    checks = tuple(VersionCheck(name=name, passed=False, limit=0) for name in failed)
    found = summary("rejected", diff=diff.model_copy(update={"checks": checks}))

    assert refresh_text(found).split("\n")[0] == (
        "help centre: version 4 was rejected, version 3 stays; look at it in rejected/" + told
    )


def test_a_plan_is_listed_figure_by_figure(diff):
    """What a night would cost is asked before the first one."""
    plan = RefreshPlan(
        documents=diff.documents,
        items={"kept": 9, "to_verify": 1, "to_search": 0},
        n_pairs=12,
        n_new=2,
        calls={"verify": 1, "judge": 4, "generate": 10},
        tokens={"low": 900.0, "expected": 1200.0, "high": 5000.0},
        cost_usd=None,
    )

    assert refresh_text(summary("planned", plan=plan)).split("\n")[2:] == [
        "queries: 9 kept, 1 to verify, 2 to generate",
        "to judge: 12 pairs of new chunks, more where pools grow; and checks of new relevant "
        "chunks",
        "calls: 15 (1 to verify, 4 to judge, 10 to generate)",
        "tokens: 1,200 expected (900 to 5,000)",
        "cost: unknown",
    ]
