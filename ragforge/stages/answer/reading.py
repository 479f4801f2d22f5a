"""A language model that answers a question from contexts it is given: one call an answer."""

from collections.abc import Sequence
from typing import Annotated, Final

from ragforge.deferred import dataclass
from ragforge.records.model import ConfigDict, Model
from ragforge.stages.asking import Asker, quoted, quoted_list, upto

PROMPT: Final = "read_contexts"


class ReadingReply(Model):
    """What the model is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    answer: Annotated[str, upto(2000)]


@dataclass(frozen=True, slots=True)
class ModelReader:
    """Answers from contexts by asking a model.

    Args:
        asker: A model with the prompt for it.
    """

    asker: Asker

    async def read(self, query: str, contexts: Sequence[str]) -> str:
        """Return the answer; see `ContextReader`."""
        holes = {"question": quoted(query), "passages": quoted_list(list(contexts))}
        answered = await self.asker.ask(holes, ReadingReply, _broken_rule)
        return answered.value.answer


def _broken_rule(reply: ReadingReply) -> str | None:
    if any(map(str.isalnum, reply.answer)):
        return None
    return "the answer is empty; if the passages do not give it, say that you do not know"
