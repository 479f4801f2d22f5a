"""What all judges have in common: those of relevance, answers, groundedness and old answers."""

from typing import Protocol, TypeVar

from ragforge.records import Provenance

U_contra = TypeVar("U_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Judge(Protocol[U_contra, R_co]):
    """Judges cases of one kind: a baseline by rule, or a model that is asked."""

    @property
    def provenance(self) -> Provenance:
        """Who judges, also for the cases that get no judgment."""

    async def judge(self, case: U_contra, /) -> R_co:
        """Return what the judge says of a case, never a blank that stands for a failure.

        Called concurrently from one event loop; must not block it.

        Raises:
            CallError: This case cannot be judged; it stays unjudged.
            EndpointError, BudgetError: No case can be judged any more.
        """
