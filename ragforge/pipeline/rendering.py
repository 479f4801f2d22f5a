"""What a model would be asked about what a user picks, caught from the stage that asks it."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import field
from itertools import chain, islice
from pathlib import Path
from typing import Final

from ragforge.config import Settings
from ragforge.config.sections import is_offline
from ragforge.deferred import dataclass
from ragforge.errors import CallError, DataError, UsageError
from ragforge.files.formats.pairs import load_examples, read_pairs
from ragforge.files.set.dataset import Dataset
from ragforge.files.text import shown
from ragforge.llm.chat import ChatReply, ChatRequest
from ragforge.llm.connect import call_key_for
from ragforge.observe import silent
from ragforge.pipeline.backend import Backend
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judges import Judges
from ragforge.prompts import Prompt, load_prompt
from ragforge.records import Answer, Chunk, Query, QueryType, Slot
from ragforge.stages.answer.facts import with_facts
from ragforge.stages.answer.llm import FactJudge, LLMAnswerJudge
from ragforge.stages.answer.reading import ModelReader
from ragforge.stages.answer.stage import Case, cases
from ragforge.stages.asking import Asker
from ragforge.stages.generate.candidates import Brief
from ragforge.stages.generate.checks.absence import DEPTH, search
from ragforge.stages.generate.checks.batches import Item, ask_batch, item_of_query
from ragforge.stages.generate.checks.questions import (
    GivenAnswer,
    agrees_by_rule,
    pair_entry,
    pair_form,
    question_entry,
    question_form,
    read_evidence,
)
from ragforge.stages.generate.kinds import PROMPTS
from ragforge.stages.ground.llm import LLMGrounder
from ragforge.stages.ground.parts import Exchange
from ragforge.stages.ground.parts import Passage as AnsweredPassage
from ragforge.stages.judge.batches import Batch, batches
from ragforge.stages.judge.llm import refuse_shared_queries
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.recheck import LLMRecheck, Passage, Subject

PAIR = "--dataset DIR with --query QUERY_ID and --chunk CHUNK_ID, or --pairs FILE"
BATCH = (
    "--dataset DIR with --query QUERY_ID and --chunk CHUNK_ID twice or more, or --pairs FILE with "
    "--batch N"
)
QUERY = "--dataset DIR with --query QUERY_ID"
CHUNK = "--dataset DIR with --chunk CHUNK_ID"
ANSWER = "--dataset DIR with --query QUERY_ID and --answers NAME"


@dataclass(frozen=True, slots=True)
class PickedInput:
    """The flags that pick; what a stage has no use for may stay empty.

    All methods raise UsageError where a flag is missing or names nothing, and DataError where a
    file does not hold to its format.

    Args:
        dataset: Where the ids are looked up.
        query_id, chunk_ids: In the dataset.
        system: Whose answer in the dataset.
        pairs: A file of pairs, instead of a dataset.
        row: Which of its pairs, from 1.
    """

    dataset: Dataset | None = None
    query_id: str = ""
    chunk_ids: tuple[str, ...] = ()
    system: str = ""
    pairs: Path | None = None
    row: int = 1

    def pair(self) -> Pair:
        """Return the one pair."""
        if self.pairs is not None:
            return _pair_of(self.pairs, self.row)
        if self.dataset is None or not self.query_id or len(self.chunk_ids) != 1:
            raise _lacking(PAIR)
        [pair] = self._dataset_pairs()
        return pair

    def batch(self, batch: int) -> Batch:
        """Return the chunks of the dataset as one batch, or the batch of the file that has the row.

        Args:
            batch: Distinct texts in a batch of the file.
        """
        if self.pairs is not None and batch > 1:
            wanted = _pair_of(self.pairs, self.row)
            rows = (
                Pair(row.query_id, row.query, row.chunk_id, row.text)
                for row in read_pairs(self.pairs)
            )
            return next(batch for batch in batches(rows, batch) if wanted in batch.pairs)
        if self.dataset is None or not self.query_id or len(self.chunk_ids) < 2:
            raise _lacking(BATCH)
        return next(batches(self._dataset_pairs(), len(self.chunk_ids)))

    def query(self) -> Query:
        """Return the query."""
        if self.dataset is None or not self.query_id:
            raise _lacking(QUERY)
        queries = self.dataset.all_queries()
        picked = next((query for query in queries if query.query_id == self.query_id), None)
        if picked is None:
            such = f", such as {shown(queries[0].query_id)}" if queries else ""
            raise UsageError(
                f"--query: {self.dataset.path} has no {shown(self.query_id)}; it has "
                f"{len(queries)} queries{such}"
            )
        return picked

    def chunk(self) -> Chunk:
        """Return the one chunk."""
        if self.dataset is None or len(self.chunk_ids) != 1:
            raise _lacking(CHUNK)
        [chunk] = self._chunks()
        return chunk

    def case(self) -> Case:
        """Return the answer of the system to the query, to be held against the expected one."""
        query, answer = self._answered(), self._answer()
        found = next(cases([query], [answer], self._chunks_by_id(answer.chunk_ids)), None)
        if found is None:
            raise UsageError(f"--query: {shown(query.query_id)} has no expected answer")
        return found

    def exchange(self) -> Exchange:
        """Return the answer of the system to the query, to be held against its chunks."""
        query, answer = self._answered(), self._answer()
        there = self._chunks_by_id(answer.chunk_ids)
        return Exchange(
            query.query_id,
            query.asked,
            answer.answer,
            tuple(
                AnsweredPassage(name, there[name].text)
                for name in answer.chunk_ids
                if name in there
            ),
            tuple(name for name in answer.chunk_ids if name not in there),
        )

    def _answered(self) -> Query:
        if self.dataset is None or not self.query_id or not self.system:
            raise _lacking(ANSWER)
        return self.query()

    def _answer(self) -> Answer:
        assert self.dataset is not None
        answers = self.dataset.answers(self.system)
        found = next((answer for answer in answers if answer.query_id == self.query_id), None)
        if found is None:
            raise UsageError(f"--answers: {self.system} does not answer {shown(self.query_id)}")
        return found

    def _dataset_pairs(self) -> list[Pair]:
        query = self.query()
        return [
            Pair(query.query_id, query.asked, chunk.chunk_id, chunk.text)
            for chunk in self._chunks()
        ]

    def _chunks(self) -> list[Chunk]:
        assert self.dataset is not None
        there = self._chunks_by_id(self.chunk_ids)
        for chunk_id in self.chunk_ids:
            if chunk_id not in there:
                path = self.dataset.chunks_path
                raise UsageError(f"--chunk: {path} has no {shown(chunk_id)}")
        return [there[chunk_id] for chunk_id in self.chunk_ids]

    def _chunks_by_id(self, wanted: Collection[str]) -> dict[str, Chunk]:
        assert self.dataset is not None
        there = chain(self.dataset.chunks(), self.dataset.texts_as_chunks())
        found = there if wanted else ()
        return {chunk.chunk_id: chunk for chunk in found if chunk.chunk_id in wanted}


def _pair_of(path: Path, row: int) -> Pair:
    found = next(islice(read_pairs(path), row - 1, None), None)
    if found is None:
        raise UsageError(f"--row {row}: {path} has fewer pairs")
    return Pair(found.query_id, found.query, found.chunk_id, found.text)


def _lacking(needed: str) -> UsageError:
    return UsageError(f"to render this prompt, give {needed}")


_Stage = Callable[[Asker, PickedInput, Settings], Awaitable[object]]


async def question_alone(asker: Asker, picked: PickedInput, _settings: Settings) -> object:
    """Ask about the query without any text."""
    item = item_of_query(picked.query(), ())
    return await ask_batch([question_entry(item)], question_form(asker))


async def answer_from_evidence(asker: Asker, picked: PickedInput, _settings: Settings) -> object:
    """Ask for the answer that the query's evidence gives."""
    query = picked.query()
    assert picked.dataset is not None
    wanted = {evidence.chunk_id for evidence in query.evidence}
    chunks = [chunk for chunk in picked.dataset.chunks() if chunk.chunk_id in wanted]
    item = item_of_query(query, chunks)
    return await read_evidence(item, item.proofs, asker)


async def answers_compared(asker: Asker, picked: PickedInput, _settings: Settings) -> object:
    """Ask whether a system's answer says what the expected one says."""
    case = picked.case()
    given = GivenAnswer(item_of_query(case.query, ()), case.answer)
    if agrees_by_rule(given):
        return None
    return await ask_batch([pair_entry(given)], pair_form(asker))


async def answer_looked_for(asker: Asker, picked: PickedInput, _settings: Settings) -> object:
    """Ask whether one of several chunks answers the query."""
    pairs = picked.batch(DEPTH).pairs
    first = pairs[0]
    item = Item(first.query_id, first.query, first.query, "", (), ())
    return await search(item, {pair.chunk_id: pair.text for pair in pairs}, asker)


async def answer_rechecked(asker: Asker, picked: PickedInput, _settings: Settings) -> object:
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
    return await LLMRecheck(asker).judge(subject)


@dataclass(frozen=True, slots=True)
class Rendered:
    """What would be asked first.

    Args:
        prompt: Where the messages come from.
        request: As it would go to the model.
        call_key: Under which the call store keeps the reply; None for the offline baseline.
    """

    prompt: Prompt
    request: ChatRequest
    call_key: str | None


@dataclass(frozen=True, slots=True)
class _CatchingModel:
    """A ChatModel that keeps what it is asked and never answers."""

    asked: list[ChatRequest] = field(default_factory=list)

    async def ask(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        raise CallError("error", "not asked: only rendered")


async def render(name: str, picked: PickedInput, settings: Settings) -> Rendered:
    """Return the first request that the stage of a prompt would send about what is picked.

    Args:
        name: Of the prompt.
        picked: What to fill it with.
        settings: Model, prompts, and how the stage works; a panel or votes come to their first
            question.

    Raises:
        UsageError: What is picked is not what the prompt asks about.
        ConfigError: The prompt cannot be taken.
        DataError: A file cannot be taken, or nothing would be asked.
    """
    prompt = load_prompt(name, settings.prompts.prompts_dir)
    model = _CatchingModel()
    asker = Asker(model, settings.model.name, settings.model, prompt)
    why = "a rule decides, and no model"
    try:
        await STAGES[prompt.schema](asker, picked, settings)
    except CallError as error:
        why = str(error)
    if not model.asked:
        raise DataError(f"prompt {name!r}: nothing would be asked: {why}")
    request = model.asked[0]
    offline = is_offline(settings.model.name)
    return Rendered(
        prompt, request, None if offline else await call_key_for(settings.model, request)
    )


async def _relevance(asker: Asker, picked: PickedInput, settings: Settings) -> object:
    pair = picked.pair()
    judges = _judges(asker, settings, batch=1)
    refuse_shared_queries(judges.examples, {pair.query_id: pair.query})
    return await judges.judge().judge(pair)


async def _relevance_batch(asker: Asker, picked: PickedInput, settings: Settings) -> object:
    batch = picked.batch(settings.judge.batch)
    judges = _judges(asker, settings, batch=max(2, settings.judge.batch))
    return await judges.batch_judge(batched=True).judge(batch)


async def _generated_queries(asker: Asker, picked: PickedInput, settings: Settings) -> object:
    return await _written(asker, picked, settings, "fact")


async def _generated_follow_ups(asker: Asker, picked: PickedInput, settings: Settings) -> object:
    return await _written(asker, picked, settings, "follow_up")


async def _generated_unanswerable(asker: Asker, picked: PickedInput, settings: Settings) -> object:
    return await _written(asker, picked, settings, "unanswerable")


async def _answer_facts(asker: Asker, picked: PickedInput, _settings: Settings) -> object:
    return await with_facts(picked.query().model_copy(update={"facts": ()}), asker)


async def _fact_statuses(asker: Asker, picked: PickedInput, _settings: Settings) -> object:
    return await FactJudge(asker).judge(picked.case())


async def _answer_verdict(asker: Asker, picked: PickedInput, _settings: Settings) -> object:
    return await LLMAnswerJudge(asker).judge(picked.case())


async def _context_answer(asker: Asker, picked: PickedInput, _settings: Settings) -> object:
    """Ask for an answer from some chunks."""
    pairs = picked.batch(DEPTH).pairs
    return await ModelReader(asker).read(pairs[0].query, [pair.text for pair in pairs])


async def _claims_check(asker: Asker, picked: PickedInput, _settings: Settings) -> object:
    return await LLMGrounder(asker).judge(picked.exchange())


STAGES: Final[Mapping[str, _Stage]] = {
    "relevance": _relevance,
    "relevance_grade": _relevance,
    "relevance_batch": _relevance_batch,
    "generated_queries": _generated_queries,
    "generated_follow_ups": _generated_follow_ups,
    "generated_unanswerable": _generated_unanswerable,
    "answer_facts": _answer_facts,
    "fact_statuses": _fact_statuses,
    "answer_verdict": _answer_verdict,
    "claims_check": _claims_check,
    "questions_check": question_alone,
    "evidence_answer": answer_from_evidence,
    "answers_comparison": answers_compared,
    "context_answer": _context_answer,
    "answer_search": answer_looked_for,
    "answer_recheck": answer_rechecked,
}
"""By the schema of the reply."""


async def _written(
    asker: Asker, picked: PickedInput, settings: Settings, query_type: QueryType
) -> object:
    """Ask for queries about a chunk as the first persona would put them, in the first language."""
    from ragforge.stages.generate.llm import LLMQueryWriter  # With pydantic.

    chunk = picked.chunk()
    slot = Slot(
        slot_id="000000-0",
        type=query_type,
        difficulty="medium",
        persona=_first(settings.generate.personas),
        language=_first(settings.generate.language),
        stratum="",
        chunk_ids=(chunk.chunk_id,),
        doc_ids=(chunk.doc_id,),
    )
    askers = dict.fromkeys(PROMPTS, asker)
    writer = LLMQueryWriter(askers, settings.model.seed, settings.generate.per_call)
    return await writer.write(Brief(slot, (chunk,)), ())


def _first(shares: Sequence[str]) -> str:
    return shares[0].rpartition("=")[0]


def _judges(asker: Asker, settings: Settings, *, batch: int) -> Judges:
    """Return the judges of the real stage around one model that is not asked."""
    alone = {"prompt": asker.prompt.name, "batch": batch, "votes": 1, "panel": ()}
    judge = settings.judge.model_copy(update=alone)
    backend = Backend(asker, prompts_dir=settings.prompts.prompts_dir)
    examples = load_examples(Path(judge.examples)) if judge.examples else ()
    job = Job(settings.model_copy(update={"judge": judge}), silent)
    return Judges((backend,), job, examples)
