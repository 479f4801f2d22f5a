"""A set with two runs and two systems, for the pages that show them side by side."""

from measured_set import make_measured_set

from ragforge.records import (
    Answer,
    AnswerGrade,
    Chunk,
    Claim,
    Evidence,
    Fact,
    FactVerdict,
    Provenance,
)

JUDGE = Provenance(kind="llm", model="judge-1")
TEXT = "Before it. Fact q00 is here. Behind it."


def make_set(path, n_queries=4):
    """Make the measured set with evidence in a document of three chunks, facts and answers.

    Of the first query, `careful` says one fact of two, and `hasty` what no chunk says.
    """
    made = make_measured_set(path, n_queries)
    chunks = [chunk for chunk in made.chunks() if chunk.chunk_id != "cq00"]
    parts = [
        Chunk(chunk_id="cq00", doc_id="guide.md", text=TEXT, start=11, end=11 + len(TEXT)),
        Chunk(chunk_id="cz1", doc_id="guide.md", text="The start.", start=0, end=10),
    ]
    made.write_chunks([*chunks, *parts])
    facts = (Fact(fact_id="f0", text="It is here."), Fact(fact_id="f1", text="It is blue."))
    evidence = (Evidence(doc_id="guide.md", chunk_id="cq00", quote="Fact q00 is here."),)
    made.write_queries(
        query.model_copy(update={"facts": facts, "evidence": evidence})
        if query.query_id == "q00"
        else query
        for query in made.all_queries()
    )
    made.write_answers("careful", [Answer(query_id="q00", answer="I think it is here, surely.")])
    made.write_answers("hasty", [Answer(query_id="q00", answer="It is on the moon.")])
    made.write_answer_grades("careful", [_grade("partial", "supported", "it is here")])
    claims = (Claim(text="on the moon", is_supported=False),)
    made.write_answer_grades("hasty", [_grade("incorrect", "contradicted", "moon", claims)])
    return made


def _grade(verdict, status, quote, claims=()):
    return AnswerGrade(
        query_id="q00",
        verdict=verdict,
        score=0.5 if verdict == "partial" else 0,
        has_hallucination=bool(claims),
        facts=(
            FactVerdict(fact_id="f0", status=status, quote=quote),
            FactVerdict(fact_id="f1", status="missing"),
        ),
        claims=claims,
        provenance=JUDGE,
    )
