"""Sets with rankings, answers and grades, as fixtures; one has an attack in every text."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ragforge.evaluating.answers.records import Relevance, SystemRecords
from ragforge.files.manifest import RunOrigin, digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import create_dataset
from ragforge.records import (
    Answer,
    AnswerGrade,
    Chunk,
    Evidence,
    Failure,
    Hit,
    Judgment,
    Provenance,
    Query,
    Ranking,
)

LLM = Provenance(kind="llm", model="judge-1", prompt="judge_relevance", prompt_sha256="ab" * 32)

HOSTILE = (
    "<script>document.title='owned'</script>",
    "<img src=http://evil.example/x onerror=alert(1)>",
    "</details></main></body><style>*{display:none}</style>",
    '" onmouseover="alert(1)" x=\'',
    "\u202egnitirw\u2066 \x1b[31mred\x1b]0;title\x07 \u200bzero",
    "| a | b |\n\n# heading [link](javascript:alert(1)) `code` @everyone https://evil.example",
    "x" * 100_000,
    "</script><!--<script>\u2028alert(1)//</script>",
    '=HYPERLINK("https://evil.example";"\u05e1\u05d5\u05d3")',
)


@pytest.fixture
def new_dataset(tmp_path: Path) -> Callable[..., Dataset]:
    """Make an empty dataset of some name."""

    def make(name: str = "small") -> Dataset:
        return create_dataset(tmp_path / name, made_from={"seed": "0"})

    return make


@pytest.fixture
def dataset(new_dataset: Callable[..., Dataset]) -> Dataset:
    """Three answerable queries and one that is not, a run with a failure, two answer systems.

    q1 finds its chunk at rank 1, q2 at no rank, the retriever fails on q3; q4 has no answer.
    """
    made = new_dataset()
    made.write_chunks(
        Chunk(chunk_id=f"c{n}", doc_id=f"d{n % 2}", text=f"Text of chunk {n}.") for n in range(1, 7)
    )
    made.write_queries(
        [
            Query(
                query_id="q1",
                query="What is one?",
                expected_answer="One.",
                difficulty="easy",
                type="fact",
                evidence=(Evidence(doc_id="d1", chunk_id="c1", quote="Text of"),),
            ),
            Query(query_id="q2", query="What is two?", difficulty="hard", origin="log"),
            Query(query_id="q3", query="What is three?", difficulty="hard"),
            Query(query_id="q4", query="What is nothing?", answerable=False, type="unanswerable"),
            Query(query_id="q5", query="Retired?", status="retired"),
        ]
    )
    made.write_judgments(
        [
            Judgment(query_id="q1", chunk_id="c1", grade=3, source="evidence"),
            Judgment(query_id="q1", chunk_id="c2", grade=0, provenance=LLM),
            Judgment(query_id="q2", chunk_id="c2", grade=2, reasoning="Half.", provenance=LLM),
            Judgment(query_id="q2", chunk_id="c3", grade=1, provenance=LLM),
            Judgment(query_id="q2", chunk_id="c4", grade=None, failure="refused", provenance=LLM),
            Judgment(query_id="q3", chunk_id="c3", grade=3, source="human"),
            Judgment(query_id="q4", chunk_id="c1", grade=3, provenance=LLM),
        ]
    )
    made.write_run(
        "bm25",
        [
            ranking("q1", "c1", "c2", latency_s=0.01),
            ranking("q2", "c3", "c4", "c5", latency_s=0.03),
            ranking("q4", "c1"),
        ],
    )
    made.replace_failures(
        "retrieve",
        [Failure(what="retrieve", key="bm25/q3", kind="error", message="503")],
        lambda _: True,
    )
    made.write_answers(
        "own",
        [Answer(query_id="q1", answer="1", chunk_ids=("c1",)), Answer(query_id="q2", answer="?")],
    )
    made.write_answer_grades("own", [grade("q1", "correct"), grade("q2", "incorrect")])
    return made


def ranking(query_id: str, *chunk_ids: str, latency_s: float | None = None) -> Ranking:
    hits = (Hit(chunk_id=c, score=10 - n) for n, c in enumerate(chunk_ids))
    return Ranking(query_id=query_id, ranking=tuple(hits), latency_s=latency_s)


def grade(query_id: str, verdict: str | None) -> AnswerGrade:
    scores = {"correct": 1.0, "partial": 0.5, "incorrect": 0.0, "not_attempted": 0.0}
    return AnswerGrade.model_validate(
        {
            "query_id": query_id,
            "verdict": verdict,
            "score": scores.get(verdict or ""),
            "has_hallucination": None if verdict is None else verdict == "incorrect",
            "failure": "refused" if verdict is None else None,
            "provenance": LLM,
        }
    )


@pytest.fixture
def make_ranking() -> Callable[..., Ranking]:
    return ranking


@pytest.fixture
def make_grade() -> Callable[..., AnswerGrade]:
    return grade


@pytest.fixture
def hostile_texts() -> tuple[str, ...]:
    """Texts that try to run, to close, to hide, to steer and to flood."""
    return HOSTILE


@pytest.fixture
def hostile_dataset(new_dataset: Callable[..., Dataset]) -> Dataset:
    """Every field that is free text holds something hostile."""
    made = new_dataset("hostile")
    made.write_manifest(
        made.manifest.model_copy(update={"name": HOSTILE[0], "licence": HOSTILE[2]})
    )
    evil = Provenance(kind="llm", model=HOSTILE[1], prompt=HOSTILE[3], prompt_sha256=HOSTILE[0])
    ids = [f"q{n}{text[:60]}" for n, text in enumerate(HOSTILE)]
    made.write_chunks(
        Chunk(chunk_id=f"c{n}{text[:60]}", doc_id=text, text=text, heading_path=(text, text))
        for n, text in enumerate(HOSTILE)
    )
    made.write_queries(
        Query(
            query_id=query_id,
            query=text,
            expected_answer=text,
            evidence=(Evidence(doc_id=text, chunk_id=text, quote=text),),
        )
        for query_id, text in zip(ids, HOSTILE, strict=True)
    )
    chunk_ids = [f"c{n}{text[:60]}" for n, text in enumerate(HOSTILE)]
    made.write_judgments(
        Judgment(
            query_id=query_id,
            chunk_id=chunk_id,
            grade=3 if query_id[1] == chunk_id[1] else 0,
            reasoning=HOSTILE[int(chunk_id[1])],
            evidence=HOSTILE[int(chunk_id[1])],
            provenance=evil,
        )
        for query_id in ids
        for chunk_id in chunk_ids
    )
    made.write_run("bm25", [ranking(query_id, *chunk_ids) for query_id in ids])
    made.write_answers("sys", [Answer(query_id=q, answer=HOSTILE[0]) for q in ids])
    made.write_answer_grades("sys", [grade(query_id, "incorrect") for query_id in ids])
    made.note(models=[HOSTILE[1]], prompts={HOSTILE[5]: HOSTILE[0]})
    return made


@pytest.fixture
def many_queries(new_dataset: Callable[..., Dataset]) -> Callable[..., Dataset]:
    """Make a dataset of some queries, each with a chunk of its own, and two runs."""

    def make(count: int, chars: int = 40) -> Dataset:
        made = new_dataset("many")
        letters = random.Random(0)
        numbers = [f"{n:04}" for n in range(count)]
        made.write_chunks(
            Chunk(chunk_id=f"c{n}", doc_id=f"d{n}", text=letters.randbytes(chars // 2).hex())
            for n in numbers
        )
        made.write_queries(
            Query(
                query_id=f"q{n}",
                query=f"Where is thing {n}?",
                difficulty="hard" if n.endswith("7") else "easy",
            )
            for n in numbers
        )
        made.write_judgments(
            Judgment(query_id=f"q{n}", chunk_id=f"c{n}", grade=3, reasoning=reason)
            for n, reason in ((n, letters.randbytes(chars // 2).hex()) for n in numbers)
        )
        origin = RunOrigin(chunks_sha256=digest_file(made.chunks_path))
        made.write_run("base", [ranking(f"q{n}", f"c{n}") for n in numbers], origin)
        made.write_run("new", [ranking(f"q{n}", "x", f"c{n}") for n in numbers], origin)
        return made

    return make


CHUNK_GRADES = {
    "q1": {"good": 3, "bad": 0},
    "q2": {"good": 3, "bad": 1, "failed": None},
    "q3": {"bad": 0},
}


@pytest.fixture
def answered(make_grade):
    """Make records of answers given as query -> (verdict, context); the verdict "" is no grade."""

    def make(given, rankings=None, failed=(), gradable=()):
        records = SystemRecords(
            "sys",
            {
                q: Answer(query_id=q, answer="a", chunk_ids=chunks)
                for q, (_, chunks) in given.items()
            },
            {q: make_grade(q, verdict) for q, (verdict, _) in given.items() if verdict != ""},
            frozenset(failed),
            frozenset(gradable),
        )
        return records, Relevance(CHUNK_GRADES, 2, rankings or {})

    return make
