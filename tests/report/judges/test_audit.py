import pytest

from ragforge.evaluating.judgments import judges
from ragforge.evaluating.summary import summarise
from ragforge.records import (
    AttackFindings,
    AuditExample,
    AuditRate,
    JudgeAudit,
    Judgment,
    Provenance,
)
from ragforge.report.judges import audit_tables, of_another_judge
from ragforge.report.page.page import render_html
from ragforge.report.set_report import render_markdown, render_text

LLM = Provenance(kind="llm", model="judge-1", prompt="judge_relevance", prompt_sha256="ab" * 32)
NONE = AuditRate(mean=None, low=None, high=None, bound_low=None, bound_high=None)


def rate(mean, low=None, high=None, bounds=None):
    least, most = bounds or (mean, mean)
    return AuditRate(mean=mean, low=low, high=high, bound_low=least, bound_high=most)


def attack(name="forged-verdict", n_failed=0, **rates):
    return AttackFindings(
        attack=name,
        expects="not raised",
        n_pairs=25,
        n_queries=20,
        n_failed=n_failed,
        **{
            **dict.fromkeys(("swayed", "flipped", "raised", "crossed", "shift"), rate(0, 0, 0.17)),
            **rates,
        },
        worst=(AuditExample(query_id="q1", chunk_id="c9", before=0, after=3),),
    )


def audit(*attacks, judge=LLM):
    return JudgeAudit(
        judge=judge,
        temperature=0,
        seed=7,
        n_pairs=50,
        n_queries=40,
        grades=(20, 5, 10, 13),
        n_plain=100,
        n_plain_failed=2,
        attacks=attacks,
    )


def test_a_row_says_how_often_with_intervals():
    """A share without its interval would be read as that of the judge."""
    shift = rate(0.5, -0.101, 1.2)
    [table, _] = audit_tables(audit(attack(swayed=rate(0.24, 0.1, 0.416), shift=shift)))

    assert table.title == "Judge audit"
    assert dict(zip(table.headers, table.rows[0], strict=True)) == {
        "attack": "forged-verdict",
        "a sound judge": "does not raise it",
        "pairs": "25",
        "queries": "20",
        "failed": "0",
        "swayed": "24 % [10, 42]",
        "changed": "0 % [0, 17]",
        "raised": "0 % [0, 17]",
        "crossed": "0 % [0, 17]",
        "shift": "+0.50 [-0.10, +1.20]",
    }


def test_failures_show_the_bounds():
    """What the failed pairs would have given is not known, only what they could change."""
    [table, _] = audit_tables(audit(attack(n_failed=5, swayed=rate(0.25, 0.1, 0.4, (0.2, 0.4)))))

    assert table.rows[0][4:6] == ("5", "25 % [10, 40] (20 to 40)")


def test_what_was_not_tried_has_dashes():
    """A zero would say that the judge withstood it."""
    nothing = dict.fromkeys(("swayed", "flipped", "raised", "crossed", "shift"), NONE)
    [table, _] = audit_tables(audit(attack(**nothing)))

    assert set(table.rows[0][5:]) == {"\u2013"}


def test_one_query_has_no_interval():
    """Nothing can be said about others."""
    [table, _] = audit_tables(audit(attack(swayed=rate(1), shift=rate(-0.001))))

    assert table.rows[0][5] == "100 %"
    assert table.rows[0][-1] == "0.00"


def test_the_note_says_who_was_audited_on_what():
    """An audit counts for the judge, the prompt and the sample it was made with."""
    [table, _] = audit_tables(audit(attack()))

    for part in (
        "Of judge-1 with prompt judge_relevance abababab, on 50 pairs of 40 queries",
        "20 of 0, 5 of 1, 10 of 2, 13 of 3",
        "seed 7",
        "2 of 100 plain texts got no grade (2 %)",
    ):
        assert part in table.note


def test_the_worst_pairs_are_named():
    """A person should read what the judge fell for."""
    [_, table] = audit_tables(audit(attack()))

    assert table.rows == (("forged-verdict", "q1", "c9", "0", "3"),)


def test_no_audit_has_no_table(dataset):
    """A report about a set that was never audited says nothing about attacks."""
    assert audit_tables(None) == []
    assert "Judge audit" not in render_text(summarise(dataset))


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_every_report_shows_the_audit(dataset, render):
    """Whoever reads the measures reads how far their judge can be talked into them."""
    dataset.write_audit(audit(attack(swayed=rate(0.24, 0.1, 0.416))))

    shown = render(summarise(dataset))

    assert "Judge audit" in shown
    assert "forged-verdict" in shown
    assert "24 %" in shown
    assert "The audit is of another judge" not in shown


@pytest.mark.parametrize("changes", [{"model": "judge-2"}, {"prompt_sha256": "cd" * 32}])
def test_an_audit_of_another_judge_is_called_so(dataset, changes):
    """A passed audit must not vouch for grades that it has nothing to do with."""
    dataset.write_audit(audit(attack(), judge=LLM.model_copy(update=changes)))

    assert "The audit is of another judge" in render_text(summarise(dataset))


def test_people_are_no_other_judge():
    """Where only people graded, an audit of a judge is news about that judge."""
    human = Judgment(query_id="q", chunk_id="c", grade=1, source="human")

    assert not of_another_judge(audit(attack()), judges([human], {}))


def test_the_baseline_is_called_one():
    """Its audit shows how the tool works, not how good a judge is."""
    rule = Provenance(kind="baseline", model="offline-lexical-1")
    [table, _] = audit_tables(audit(attack(), judge=rule))

    assert table.note.startswith("Of the offline baseline (offline-lexical-1), on")


def test_hostile_ids_stay_text(dataset):
    """The ids come from the corpus, and so from anybody."""
    evil = AuditExample(query_id="<script>x</script>", chunk_id="\u202eevil", before=0, after=3)
    hostile = attack().model_copy(update={"worst": (evil,)})
    dataset.write_audit(audit(hostile, judge=LLM.model_copy(update={"model": "<img src=x>"})))

    page = render_html(summarise(dataset))

    assert "<script>x" not in page
    assert "<img" not in page
    assert "\u202e" not in page
