"""Connections need file descriptors, and a process may have few."""

from ragforge.config import ModelSettings
from ragforge.observe import Event, Observer

_KEPT_FREE = 48
"""For files, the store, the terminal and whatever else a run opens."""


def fitting(model: ModelSettings, observer: Observer) -> ModelSettings:
    """Return settings whose calls in flight the process has descriptors for.

    The process's own limit is raised where it may be.

    Args:
        model: As the user wants it.
        observer: Told where fewer calls than wanted can be in flight.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return model
    wanted = model.concurrency + _KEPT_FREE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return model
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if allowed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed >= wanted:
        return model
    fits = max(1, allowed - _KEPT_FREE)
    observer(
        Event(
            "note",
            message=f"--concurrency {model.concurrency} needs more open files than this process "
            f"may have ({allowed}); {fits} calls at once instead",
        )
    )
    return model.model_copy(update={"concurrency": fits})
