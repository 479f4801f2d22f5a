"""What the checks of generated queries would ask about a query of a dataset."""

from ragforge.config import Settings
from ragforge.errors import DataError
from ragforge.pipeline.picking import Picked
from ragforge.stages.asking import Asker
from ragforge.stages.generate.checks.absence import DEPTH, search
from ragforge.stages.generate.checks.agreement import Given, agrees_by_rule, pair_entry, pair_form
from ragforge.stages.generate.checks.batches import ask_batch
from ragforge.stages.generate.checks.evidence import read_evidence
from ragforge.stages.generate.checks.items import Item, item_of_query
from ragforge.stages.generate.checks.questions import question_entry, question_form
from ragforge.stages.recheck.llm import LLMRecheck
from ragforge.stages.recheck.subject import Passage, Subject


async def question_alone(asker: Asker, picked: Picked, _settings: Settings) -> object:
    """Ask about the query without any text."""
    item = item_of_query(picked.query(), ())
    return await ask_batch([question_entry(item)], question_form(asker))


async def answer_from_evidence(asker: Asker, picked: Picked, _settings: Settings) -> object:
    """Ask for the answer that the query's evidence gives."""
    query = picked.query()
    assert picked.dataset is not None
    wanted = {evidence.chunk_id for evidence in query.evidence}
    chunks = [chunk for chunk in picked.dataset.chunks() if chunk.chunk_id in wanted]
    item = item_of_query(query, chunks)
    return await read_evidence(item, item.proofs, asker)


async def answers_compared(asker: Asker, picked: Picked, _settings: Settings) -> object:
    """Ask whether a system's answer says what the expected one says."""
    case = picked.case()
    given = Given(item_of_query(case.query, ()), case.answer)
    if agrees_by_rule(given):
        return None
    return await ask_batch([pair_entry(given)], pair_form(asker))


async def answer_looked_for(asker: Asker, picked: Picked, _settings: Settings) -> object:
    """Ask whether one of several chunks answers the query."""
    pairs = picked.slate(DEPTH).pairs
    first = pairs[0]
    item = Item(first.query_id, first.query, first.query, "", (), ())
    return await search(item, {pair.chunk_id: pair.text for pair in pairs}, asker)


async def answer_rechecked(asker: Asker, picked: Picked, _settings: Settings) -> object:
    """Ask whether the chunks of the query's evidence give the expected answer."""
    query = picked.query()
    assert picked.dataset is not None
    quotes = tuple(evidence.quote for evidence in query.evidence)
    if not quotes:
        raise DataError("the query has no evidence to check again")
    wanted = {evidence.chunk_id for evidence in query.evidence}
    chunks = [chunk for chunk in picked.dataset.chunks() if chunk.chunk_id in wanted]
    subject = Subject(
        key=query.query_id,
        question=query.asked,
        expected=query.expected_answer or " ".join(quotes),
        expects=query.expected_behaviour,
        language=query.language,
        quotes=quotes,
        others=(),
        passages=tuple(Passage(chunk.text, chunk.heading_path) for chunk in chunks),
    )
    return await LLMRecheck(asker).recheck(subject)
