"""Who made a record, and where a query comes from."""

from ragforge.records.record import JudgeKind, Record


class Provenance(Record):
    """Who made a record: enough to tell whether two records are comparable."""

    kind: JudgeKind
    model: str = ""
    prompt: str = ""
    prompt_sha256: str = ""
    call_key: str = ""
    """Key of the reply in the call store; "" where no call was made, or several were."""
    protocol: str = ""
    """How the model was asked where it was not by one call with one reply, such as "votes 5"."""


class Lineage(Provenance):
    """Where a query comes from: who wrote it, as what, and after which calls."""

    seed: int | None = None
    """Of the plan; None where there was none."""
    slot: str = ""
    """Of the plan, see `Slot`; "" where there was none."""
    call_keys: tuple[str, ...] = ()
    """Keys of the replies that checked it, sorted."""
