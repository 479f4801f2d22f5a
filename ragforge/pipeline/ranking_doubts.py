"""What is odd about the rankings of a run that was just made."""

from collections.abc import Iterator, Sequence, Set

from ragforge.records import Ranking


def doubts_of(name: str, rankings: Sequence[Ranking], known: Set[str]) -> Iterator[str]:
    """Yield sentences on what a retriever found.

    Args:
        name: Of the run.
        rankings: What was found.
        known: The ids of all chunks.
    """
    if rankings and not any(item.ranking for item in rankings):
        yield f"run {name}: all {len(rankings)} rankings are empty; is there an index?"
    unknown = {hit.chunk_id for item in rankings for hit in item.ranking} - known
    if unknown:
        shown = ", ".join(sorted(unknown)[:3])
        yield (
            f"{len(unknown)} retrieved chunk ids are not in chunks.jsonl, such as {shown}; they "
            "can be neither judged nor relevant"
        )
