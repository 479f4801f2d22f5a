"""The sentences of a report: what to be careful about, and how to read the measures."""

from collections.abc import Iterable
from typing import Final

from ragforge.evaluating.answers.rates import AnswerSummary
from ragforge.evaluating.formatting import both_ends, plural, share
from ragforge.evaluating.graded_by import BASELINE
from ragforge.evaluating.judgments import COMPLETE_LABELS
from ragforge.evaluating.runs import RunSummary, by_document_text, missing_text, out_of_reach
from ragforge.evaluating.summary import Summary
from ragforge.measures import parse_measure
from ragforge.measures.listed_relevance import by_grades
from ragforge.measures.measure_names import by_judgments
from ragforge.records.judgments import LOCAL_MODEL_JUDGE
from ragforge.report.document import Notice
from ragforge.report.judges import beats_baseline, judge_in_words, of_another_judge

_BASELINE_TITLE: Final = "Judged by the offline baseline"
MEAN_NOTE: Final = (
    "n counts the queries that have a value. In brackets is the 95 % interval of the mean over "
    "queries like these. Where failures could change a mean, square brackets give its bounds: "
    "every failure at its worst, every failure at its best. A failure is never counted as 0."
)
HOLES_NOTE: Final = (
    "Unjudged@10 is the share of chunks in the top 10 without a grade; they count as not relevant."
)
_MEANINGS: Final = {
    "nDCG": "How close {top} comes to the best possible order of what was judged; graded.",
    "DCG": "Grades in {top}, discounted by rank; not normalised.",
    "P": "Share of {top} that is relevant.",
    "R": "Share of the known relevant chunks that is found in {top}.",
    "F1": "Harmonic mean of precision and recall in {top}.",
    "Success": "Share of queries with at least one relevant chunk in {top} (hit rate).",
    "RR": "1 / rank of the first relevant chunk in {top}, 0 without one; its mean is MRR.",
    "AP": "Precision at each relevant chunk in {top}, averaged; its mean is MAP.",
    "Rprec": "Precision at as many ranks as there are relevant chunks.",
    "bpref": "How often judged relevant chunks come before judged non-relevant ones.",
    "RBP": "Rank-biased precision of {top}: the reader goes on with a fixed chance.",
    "ERR": "Expected reciprocal rank in {top}: where a reader would be satisfied.",
    "Judged": "Share of {top} that has a grade; low values make the other measures doubtful.",
    "NumRet": "Chunks retrieved per query.",
    "NumRel": "Relevant chunks known per query.",
    "NumRelRet": "Relevant chunks retrieved per query.",
    "SetP": "Share of all that was retrieved that is relevant.",
    "SetR": "Share of the known relevant chunks that was retrieved at all.",
    "SetF": "Harmonic mean of SetP and SetR.",
    "EvidenceR": "Share of the quotes with the answer that {top} holds from end to end.",
    "TokenR": "Share of the text of these quotes that {top} holds.",
    "TokenP": "Share of the text of {top} that is of these quotes.",
    "TokenIoU": "Text of these quotes in {top}, over these quotes and {top} together.",
}
_MOCK_TITLE: Final = "Made-up grades"
_MADE_UP: Final = (
    "`ragforge mock` stood in the place of a language model. What it says is made up: the numbers "
    "below show that everything runs, and nothing else. Judge again with a model."
)
_MADE_UP_OF_ANSWERS: Final = (
    "`ragforge mock` stood in the place of a language model for answers. What it says of them is "
    "made up; chunks were graded by others. Judge the answers again with a model."
)
_MANY_HOLES: Final = 0.1
"""Share of ungraded chunks in the top ranks from which on the reader is warned."""


def notices(summary: Summary) -> list[Notice]:
    """Return what to be careful about, the weightiest first."""
    listed = []
    if summary.baseline_judges:
        listed.append(_baseline(summary))
    if mocked := {judge.task for judge in summary.measured_judges if judge.is_mock}:
        told = _MADE_UP if "relevance" in mocked else _MADE_UP_OF_ANSWERS
        listed.append(Notice(_MOCK_TITLE, told, is_loud=True))
    listed.extend(_beside_people(summary))
    listed.extend(_audited(summary))
    listed.extend(_out_of_reach(summary))
    listed += [Notice("Runs and chunks", f"{text}.") for text in summary.run_warnings]
    for run in summary.runs:
        listed.extend(_run_notices(run, is_judged=bool(by_judgments(summary.measures))))
    for item in summary.answers:
        listed.extend(_unanswered(item))
        listed.extend(_length(item))
    counts = summary.counts
    if counts.n_failed_pairs:
        pairs = plural(counts.n_failed_pairs, "judged pair")
        text = f"{pairs} of {counts.n_pairs:,} got no grade. They count as unjudged, not as 0."
        listed.append(Notice("Judgments failed", text))
    if summary.n_missing:
        noun = "document" if summary.n_by_document else "chunk"
        title = f"Relevant {noun}s are missing"
        listed.append(Notice(title, missing_text(summary.n_missing, noun)))
    if counts.n_unanswerable:
        queries = plural(counts.n_unanswerable, "query is", "queries are")
        text = f"{queries} meant to have no answer, and left out of the measures of retrieval."
        listed.append(Notice("Unanswerable queries", text))
    return listed


def size_line(summary: Summary) -> str:
    """Return in one line how much of everything there is."""
    counts = summary.counts
    return ", ".join(
        (
            plural(counts.n_documents, "document"),
            plural(counts.n_chunks, "chunk"),
            plural(counts.n_queries, "query", "queries"),
            plural(counts.n_pairs, "judged pair"),
            plural(len(summary.runs), "run"),
        )
    )


def meaning(name: str) -> str:
    """Return in one sentence what a measure measures, and which grades count."""
    measure = parse_measure(name)
    top = "the whole ranking" if measure.cutoff is None else f"the top {measure.cutoff}"
    rel = "" if measure.rel is None else f" Relevant here: grade {measure.rel} or above."
    budget = "" if measure.tokens is None else f" As much of it as fits {measure.tokens:,} tokens."
    gain = " A grade g is worth 2^g - 1." if measure.gain == "exp" else ""
    return _MEANINGS[measure.name].format(top=top) + rel + gain + budget


def threshold_note(
    rel_threshold: int,
    *,
    is_complete: bool = False,
    by_lists: bool = False,
    n_by_document: int = 0,
) -> str:
    """Return which grades count as relevant, what a chunk without one is, and what is measured."""
    unlabelled = (
        f"{COMPLETE_LABELS.capitalize()}."
        if is_complete
        else "A chunk that nobody judged counts as not relevant; “unjudged@10” says how often that "
        "happened."
    )
    relevant = f"Relevant means grade {rel_threshold} or above"
    if by_lists:
        relevant = (
            "Relevant is what people list as relevant, as no threshold on the grades says it (in "
            f"queries without a list: grade {rel_threshold} or above)"
        )
    level = f" {by_document_text(n_by_document)}" if n_by_document else ""
    return (
        f"{relevant}, unless a measure says (rel=n). nDCG uses the grades themselves. "
        f"{unlabelled}{level}"
    )


def _baseline(summary: Summary) -> Notice:
    """Tell how much of the judging a rule did: all of it, or a part beside a model."""
    rules = summary.baseline_judges
    asked = {judge.task for judge in summary.measured_judges if judge.kind == "llm"}
    tasks = " and ".join(sorted({judge.task.split()[0] for judge in rules}, reverse=True))
    judged = {judge.task for judge in rules}
    is_mocked = any(judge.is_mock and judge.task in judged for judge in summary.measured_judges)
    cosines = {(judge.model or "").startswith(LOCAL_MODEL_JUDGE) for judge in rules}
    kinds = ["the cosine of a local model"] if True in cosines else []
    kinds += ["a lexical rule"] if False in cosines else []
    kinds += ["`ragforge mock`"] if is_mocked else []
    rule = " and ".join(kinds)
    alike = (
        " A run that ranks by the same model (minilm) agrees with it by construction, others do "
        "not: hold them against each other by other grades."
        if True in cosines
        else ""
    )
    if any(judge.task not in asked for judge in rules):
        text = (
            f"No language model judged {tasks}: {rule} did. The numbers below show that "
            "everything runs. They do not show how good a retriever or a system is; "
            "judge again with a model before you compare or decide anything."
        )
    else:
        count = sum(judge.count - judge.n_evidence for judge in rules)
        text = (
            f"{plural(count, f'judgment of {tasks} comes', f'judgments of {tasks} come')} from "
            f"{rule}, the others from a language model. Judge these with the model too before "
            "you decide anything."
        )
    return Notice(_BASELINE_TITLE, f"{text}{alike}", is_loud=True)


def _beside_people(summary: Summary) -> Iterable[Notice]:
    """Tell of a judge that was not held against people who graded, or did not beat the rule."""
    held = [agreement for agreement in summary.agreement if agreement.graders[0].name != BASELINE]
    asked = any(judge.kind == "llm" and judge.task == "relevance" for judge in summary.judges)
    if summary.agreement and not held and asked:
        pairs = plural(summary.agreement[0].n_pairs, "pair")
        text = (
            f"People graded {pairs}, and the judge was not asked about them: "
            "`ragforge judge --on-labels` asks it."
        )
        yield Notice("Judge not held against people", text)
    for agreement in held:
        beats = beats_baseline(agreement)
        if not beats:
            text = (
                f"On {plural(agreement.n_pairs, 'pair')} that people graded, its quadratic kappa "
                "is not shown to be above that of counting shared words. Its grades may well say "
                "no more than those of the rule."
            )
            name = both_ends(agreement.graders[0].name, 60)
            title = f"Judge {name} is not shown to beat the baseline"
            yield Notice(title, text, is_loud=beats is False)


def _out_of_reach(summary: Summary) -> Iterable[Notice]:
    """Tell of thresholds that no grade reaches: what they call relevant does not exist."""
    if summary.highest_grade is None or not summary.runs:
        return
    names = by_grades(summary.measures, has_lists=summary.by_lists)
    text = out_of_reach(names, summary.rel_threshold, summary.highest_grade)
    if text:
        yield Notice("No grade reaches the threshold", text, is_loud=True)


def _unanswered(item: AnswerSummary) -> Iterable[Notice]:
    if item.outdated:
        yield Notice("Grades of what was edited since", f"{item.outdated}.", is_loud=True)
    if item.n_unanswered:
        have = "has" if item.n_unanswered == 1 else "have"
        text = (
            f"{item.n_unanswered:,} of {item.n_gradable:,} queries that can be graded {have} no "
            "answer. The mean score does not count them; its bounds do, as 0 and as 1."
        )
        yield Notice(f"Answers of {item.system}", text)


def _audited(summary: Summary) -> Iterable[Notice]:
    """Tell of an audit that says nothing about the grades in this report."""
    if summary.audit is not None and of_another_judge(summary.audit, summary.judges):
        text = (
            f"It is of {judge_in_words(summary.audit.judge)}, who gave none of the grades here. "
            "`ragforge judge audit` with the judge's model and prompt makes one that counts."
        )
        yield Notice("The audit is of another judge", text)


def _length(item: AnswerSummary) -> Iterable[Notice]:
    if item.length.is_suspicious and item.length.slope.slope is not None:
        word = "higher" if item.length.slope.slope > 0 else "lower"
        text = f"Longer answers score {word}, and chance hardly explains it: look at the judge."
        yield Notice(f"Answers of {item.system}", text)


def _run_notices(run: RunSummary, *, is_judged: bool) -> Iterable[Notice]:
    for warning in run.warnings:
        yield Notice(f"Run {run.name}", f"{warning}.")
    if run.attention.failed:
        queries = plural(len(run.attention.failed), "query", "queries")
        text = f"No value for {queries}: the retriever failed. The bounds say what that can change."
        yield Notice(f"Run {run.name}", text)
    if run.attention.missing:
        queries = plural(len(run.attention.missing), "judged query is", "judged queries are")
        text = f"{queries} missing from the run and count 0, as in trec_eval."
        yield Notice(f"Run {run.name}", text)
    if is_judged and run.holes.share is not None and run.holes.share > _MANY_HOLES:
        text = (
            f"{share(run.holes.share)} of the chunks in the top 10 have no grade. "
            "Judge them before you trust a comparison."
        )
        yield Notice(f"Run {run.name}", text)
