"""Sending calls as the endpoint can take them."""

from dataclasses import dataclass

from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, estimate_tokens
from ragforge.llm.faults import AttemptError
from ragforge.llm.flow.pacer import Pacer


@dataclass(frozen=True, slots=True)
class PacedModel:
    """Sends a call when its turn has come, and tells the pacer how it ended.

    Args:
        inner: Makes the attempt.
        pacer: Shared by all that ask the same endpoint and model with the same key.
    """

    inner: ChatModel
    pacer: Pacer

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Make one attempt.

        Raises:
            AttemptError: It failed; while the endpoint is down, in a way that does not count.
        """
        pacer, prompt_tokens = self.pacer, float(estimate_tokens(request))
        ticket = await pacer.admit(prompt_tokens)
        try:
            reply = await self.inner.ask(request)
        except AttemptError as error:
            if error.fault == "rate":
                pacer.rejected(ticket, error.retry_after_s)
            elif error.fault == "transient":
                error.counted = not pacer.failed(ticket, str(error), unreachable=error.unreachable)
            else:
                pacer.answered(ticket)
            raise
        except Exception:
            pacer.answered(ticket)
            raise
        except BaseException:
            pacer.abandoned(ticket)
            raise
        usage = reply.usage
        used = float(usage.prompt_tokens + usage.completion_tokens)
        pacer.accepted(ticket, used, float(usage.completion_tokens))
        return reply
