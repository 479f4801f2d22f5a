"""The changelog of a set."""

from ragforge.report.versions import with_entry


def test_the_newest_version_comes_first(diff):
    """People look for what happened last night."""
    older = with_entry("", diff)
    both = with_entry(older, diff.model_copy(update={"version": 5, "parent": 4}))
    assert both.index("## Version 5 (after 4)") < both.index("## Version 4 (after 3)")


def test_an_older_entry_stays_as_it_was(diff):
    """A changelog that changes is none."""
    older = with_entry("", diff)
    both = with_entry(older, diff.model_copy(update={"version": 5, "parent": 4}))
    assert both.endswith(older.removeprefix("# Changelog\n\n"))


def test_each_change_is_named_with_its_cause(diff):
    """That a query changed is half of what there is to know."""
    told = with_entry("", diff)
    assert (
        "- q\\_1: document changed docs/timeouts.md: the text within 300 characters of the quote "
        "changed\n"
    ) in told


def test_texts_of_documents_are_no_markup(diff):
    """A file's name must not become a link or a heading on the page of a repository."""
    told = with_entry("", diff)
    assert "\x1b" not in told
    assert "&lt;b&gt;\\[x\\](y)" in told


def test_the_list_of_an_action_ends(diff):
    """A changelog of ten thousand lines is read by nobody; diff.json has them all."""
    change = diff.changes[2]
    many = tuple(change.model_copy(update={"query_id": f"q_{at}"}) for at in range(40))
    told = with_entry("", diff.model_copy(update={"changes": many}))
    assert "- … and 15 more\n" in told
