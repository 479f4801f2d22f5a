"""Datasets with a sample of pairs that people are to label."""

from ragforge.files.set.calibrations import calibration_files
from ragforge.files.set.opening import create_dataset
from ragforge.records import (
    Answer,
    AnswerGrade,
    Chunk,
    Fact,
    Judgment,
    LabelSample,
    LabelStratum,
    Provenance,
    Query,
    SampledPair,
    SampledRun,
    Turn,
    label_text_sha256,
)

JUDGE = Provenance(kind="llm", model="judge-1", prompt="judge_relevance", prompt_sha256="ab" * 32)
HOSTILE = "</textarea></script><img src=x onerror=alert(1)><script>alert(1)</script>\u202e\x1b[31m"


def sampled_set(path, n=20, *, twice=(), texts=None):
    """Make a dataset of n queries with a chunk and a judge's grade each, all of them drawn.

    Args:
        path: Where.
        n: How many.
        twice: Numbers of the pairs that are shown twice.
        texts: Texts of chunks by number, instead of the usual one.
    """
    dataset = create_dataset(path, {})
    chunks = [
        Chunk(chunk_id=f"c{k}", doc_id=f"d{k}.md", text=(texts or {}).get(k, f"Text {k} of it."))
        for k in range(n)
    ]
    dataset.write_chunks(chunks)
    dataset.write_queries(
        Query(
            query_id=f"q{k}",
            query=f"What is {k}?",
            expected_answer=f"It is {k}.",
            history=(Turn(role="user", text="Hello?"),) if k == 1 else (),
            standalone=f"What is {k}, the number?" if k == 1 else "",
        )
        for k in range(n)
    )
    dataset.write_judgments(
        Judgment(query_id=f"q{k}", chunk_id=f"c{k}", grade=k % 4, provenance=JUDGE)
        for k in range(n)
    )
    pairs = tuple(
        SampledPair(
            query_id=f"q{k}",
            chunk_id=f"c{k}",
            text_sha256=label_text_sha256(chunks[k].text),
            stratum=77,
            probability=0.8125,
            twice=k in twice,
        )
        for k in range(n)
    )
    calibration_files(dataset).write_sample(sample_of(pairs))
    return dataset


def sample_of(pairs):
    """Return a sample with these pairs."""
    return LabelSample(
        seed=0,
        measures=("P@10",),
        runs=(SampledRun(name="bm25", rankings_sha256="0" * 64),),
        of="levels",
        judge=JUDGE,
        grades_sha256="0" * 64,
        parser="relevance 1",
        rel_threshold=2,
        repeat_share=0.1,
        n_pairs=100,
        n_queries=50,
        strata=(
            LabelStratum(stratum=77, judged=2, weight_class=0, n_pairs=100, n_drawn=len(pairs)),
        ),
        pairs=pairs,
    )


def answered_set(path, n=6, answers=None):
    """Make a dataset of n queries with two facts each, and the answers of systems `one` and `two`.

    Args:
        path: Where.
        n: How many.
        answers: Answers of system `one` by number, instead of the usual ones.
    """
    dataset = create_dataset(path, {})
    dataset.write_queries(
        Query(
            query_id=f"q{k}",
            query=f"What is {k}?",
            expected_answer=f"It is {k}.",
            facts=(Fact(fact_id="f0", text=f"It is {k}."), Fact(fact_id="f1", text="So it is.")),
        )
        for k in range(n)
    )
    for name in ("one", "two"):
        given = (answers or {}) if name == "one" else {}
        dataset.write_answers(
            name,
            [
                Answer(query_id=f"q{k}", answer=given.get(k, f"Answer {k} of {name}."))
                for k in range(n)
            ],
        )
        dataset.write_answer_grades(
            name,
            [
                AnswerGrade(
                    query_id=f"q{k}",
                    verdict="correct",
                    score=1.0,
                    has_hallucination=None,
                    provenance=JUDGE,
                )
                for k in range(n)
            ],
        )
    return dataset
