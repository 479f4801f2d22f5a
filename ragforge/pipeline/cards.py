"""The card of a dataset, written anew when people changed what it tells."""

from collections import Counter

from ragforge.files.set.dataset import Dataset


def renew_card(dataset: Dataset) -> bool:
    """Write the card of a generated dataset from what is in it now, and return whether it was.

    Counts, languages and the audit are those of the files; the funnel stays that of generation. A
    dataset that was not generated has no card, and one that a person edited is left alone.
    """
    report = dataset.generation()
    if report is None or dataset.changed_by_hand("README.md"):
        return False
    from ragforge.report.generation import render_card

    queries = dataset.queries()
    origins = Counter[str](query.origin for query in queries)
    languages = {query.language for query in queries}
    n_judgments = sum(not judgment.is_failed for judgment in dataset.each_judgment())
    dataset.write_card(render_card(dataset.manifest, report, languages, n_judgments, origins))
    return True
