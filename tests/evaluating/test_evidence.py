"""Runs measured on evidence: by hand, and against counting characters one by one."""

import pytest

from ragforge.config import EvaluateSettings
from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import read_documents
from ragforge.evaluating.evidence import evidence_basis
from ragforge.measures.intervals import Ends
from ragforge.pipeline.comparing.basis import COMPARED_MEASURES
from ragforge.pipeline.comparing.runs import compare_runs
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.evaluating import evaluate_dataset
from ragforge.records import Evidence, Failure, Judgment, RetrievedText, Span, text_id
from tests.evidence_sets import dataset_of, query, quoted, random_set, stretch, write_run

FEES = "Fees.\n\nA late parcel costs thirty euros a day. Ask the desk.\n"
OTHER = "Old fees. A late parcel costs\nthirty euros a day, and twelve for a letter."
QUOTE = "A late parcel costs thirty euros a day."
START = FEES.index(QUOTE)
MEASURES = ("EvidenceR@2", "TokenR@2", "TokenP@2", "TokenIoU@2")
LETTERS = len(QUOTE) - 1
"""Of the quote, without its full stop."""


@pytest.fixture
def dataset(tmp_path):
    asked = query("q", quoted("fees", FEES, START, START + len(QUOTE)))
    documents = {"fees": FEES, "other": OTHER}
    return dataset_of(tmp_path / "set", documents, 30, [asked, query("bare")])


def values(dataset, name, measures=MEASURES):
    [found] = evaluate_runs(dataset, [name], EvaluateSettings(measures=measures))
    return found.scores.per_query["q"]


def test_chunks_hold_the_part_of_a_quote_that_they_cover(dataset):
    """The second chunk of the document begins within the quote."""
    write_run(dataset, "own", q=["fees-0000", "other-0060"])
    held = 30 - START
    paid = 30 + len(OTHER[60:])

    assert values(dataset, "own") == {
        "nDCG@10": 1.0,
        "EvidenceR@2": 0.0,
        "TokenR@2": held / LETTERS,
        "TokenP@2": held / paid,
        "TokenIoU@2": held / (LETTERS + paid - held),
    }


def test_the_ends_of_a_quote_are_letters(dataset):
    """A chunk that ends before the full stop holds the sentence."""
    dataset.write_retrieved_texts([stretch({"fees": FEES}, "fees", START, START + LETTERS)])
    write_run(dataset, "cut", q=[text_id(QUOTE[:-1])])

    assert values(dataset, "cut", ["EvidenceR@1", "TokenP@1"]) == {
        "nDCG@10": 0.0,
        "EvidenceR@1": 1.0,
        "TokenP@1": 1.0,
    }


def test_what_the_documents_repeat_is_found_in_either(dataset):
    """Which of two pages with the same sentence was retrieved is no matter."""
    dataset.write_retrieved_texts([stretch({"other": OTHER}, "other", 0, len(OTHER))])
    write_run(dataset, "repeat", q=[text_id(OTHER)])

    assert values(dataset, "repeat", ["EvidenceR@1", "TokenR@1"])["EvidenceR@1"] == 1.0


@pytest.mark.parametrize(
    ("quote", "other"),
    [
        ("The limit of a part is set to 1.10 GB", "The limit of a part is set to 110 GB"),
        ("The limit of a part is set to x <= 12", "The limit of a part is set to x >= 12"),
        ("-11 degrees are the limit of a part", "11 degrees are the limit of a part"),
        ("The limit of a part is set to 100", "The limit of a part is set to 1005"),
        ("The limit of a part is 5 in C++", "The limit of a part is 5 in C"),
    ],
)
def test_a_page_that_says_another_number_does_not_repeat_a_quote(tmp_path, quote, other):
    """Two versions of a page may differ by a sign alone."""
    documents = {"v1": f"Here: {quote} now.", "v2": f"Here: {other} now.", "v3": f"Now {quote}."}
    asked = query("q", quoted("v1", documents["v1"], 6, 6 + len(quote)))
    dataset = dataset_of(tmp_path / "set", documents, 60, [asked])
    write_run(dataset, "right", q=["v1-0000"])
    write_run(dataset, "wrong", q=["v2-0000"])
    write_run(dataset, "repeat", q=["v3-0000"])

    held = {
        name: values(dataset, name, ["EvidenceR@1"])["EvidenceR@1"] for name in dataset.run_names()
    }
    assert held == {"right": 1.0, "wrong": 0.0, "repeat": 1.0}


@pytest.mark.parametrize(
    ("quote", "others", "unlike"),
    [
        (
            "The store is at \u221220 \u00b0C",
            ["\u2212**20**", "-<b>20</b>", "&minus;20"],
            ["<b>20</b>"],
        ),
        ("The store is at x >= 12", ["x &gt;= 12", "x \\>= 12", "x &ge; 12"], ["x &lt;= 12"]),
        ("The store is at 1.10 GB", ["1\\.10 GB", "1.**10** GB"], ["110 GB", "1**10** GB"]),
        ("The store is at 1.234.567", ["1,234,567", "1 234 567", "1234567"], ["1.234,567"]),
        ("The store is at 100", ["100.\u2075 It", "100.[^5] It"], ["100.5 It", "100**5**"]),
    ],
)
def test_another_copy_of_a_page_repeats_a_quote_whatever_its_markup(
    tmp_path, quote, others, unlike
):
    """What a reader does not see of a file is no blank between a sign and its number."""
    begin, unit = "The store is at", " \u00b0C" if "\u00b0" in quote else ""
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "own.md").write_text(quote)
    for number, other in enumerate([*others, *unlike]):
        (folder / f"{number}.md").write_text(f"Page {number}.\n\n{begin} {other}{unit}\n")
    chunks = [chunk for page in read_documents([folder]) for chunk in chunk_document(page)]
    asked = query("q", quoted("own.md", quote, 0, len(quote)))
    dataset = dataset_of(tmp_path / "set", {"own.md": quote}, 60, [asked])
    dataset.write_chunks(chunks)
    for chunk in chunks:
        write_run(dataset, chunk.doc_id.removesuffix(".md"), q=[chunk.chunk_id])

    held = [
        values(dataset, str(number), ["EvidenceR@1"])["EvidenceR@1"]
        for number in range(len(others) + len(unlike))
    ]
    assert held == [1.0] * len(others) + [0.0] * len(unlike)


def test_a_text_without_a_place_holds_the_quotes_in_its_wording(dataset):
    """A summary in front of a chunk keeps it from being located."""
    text = f"In short: {QUOTE.upper()}"
    dataset.write_retrieved_texts([RetrievedText(chunk_id=text_id(text), text=text)])
    write_run(dataset, "worded", q=[text_id(text)])

    assert values(dataset, "worded", ["EvidenceR@1", "TokenP@1"]) == {
        "nDCG@10": 0.0,
        "EvidenceR@1": 1.0,
        "TokenP@1": LETTERS / len(text),
    }


def test_a_text_that_is_only_like_its_place_holds_what_it_says(dataset):
    """A page with the answer altered or cut out stands where the true one does."""
    altered = FEES.replace("thirty", "eighty")
    place = Span(doc_id="fees", start=0, end=len(FEES))
    dataset.write_retrieved_texts(
        [RetrievedText(chunk_id=text_id(altered), text=altered, places=(place,), likeness=0.9)]
    )
    write_run(dataset, "altered", q=[text_id(altered)])
    found = values(dataset, "altered", ["EvidenceR@1", "TokenR@1"])

    assert (found["EvidenceR@1"], found["TokenR@1"]) == (0.0, 0.0)


def test_pieces_whose_blanks_were_stripped_hold_a_quote_together(dataset):
    """Nearly all splitters strip; the smaller the pieces, the more blanks are missing."""
    middle = FEES.index(" thirty")
    spans = [(START, middle), (middle + 1, START + len(QUOTE))]
    dataset.write_retrieved_texts([stretch({"fees": FEES}, "fees", *span) for span in spans])
    write_run(dataset, "pieces", q=[text_id(FEES[start:end]) for start, end in spans])

    assert values(dataset, "pieces", ["EvidenceR@2", "TokenR@2"])["EvidenceR@2"] == 1.0


def test_a_budget_of_tokens_ends_a_prompt(dataset):
    """What does not fit any more is not read."""
    write_run(dataset, "own", q=["other-0000", "fees-0000", "fees-0030"])
    names = ("EvidenceR(tokens=21)", "EvidenceR(tokens=20)", "EvidenceR(tokens=20)@3")

    assert [values(dataset, "own", names)[name] for name in names] == [1.0, 0.0, 0.0]


def test_queries_without_evidence_are_left_out_and_counted(dataset):
    """Their value is not 0: nobody knows where their answer stands."""
    write_run(dataset, "own", q=["fees-0000", "fees-0030"], bare=["fees-0000"])
    found = evaluate_dataset(dataset, ["own"], EvaluateSettings(measures=["EvidenceR@2"]))
    scores = found.scores["own"]

    assert scores.summary("EvidenceR@2").n == 1
    assert scores.warnings == (
        "measures of evidence leave out 1 of 2 queries: they have no evidence, or some of it has "
        "no place in the documents",
    )


def test_unknown_ids_are_told_of(dataset):
    """What nobody knows the text of holds nothing, and costs nothing."""
    write_run(dataset, "own", q=["gone", "fees-0000", "fees-0030"])
    [found] = evaluate_runs(dataset, ["own"], EvaluateSettings(measures=["EvidenceR@3"]))

    assert found.scores.mean("EvidenceR@3") == 1.0
    assert found.scores.warnings[-1].startswith("1 retrieved id is of no text that the set knows")


def test_a_quote_without_offsets_is_looked_for_in_its_document(tmp_path):
    """People write quotes down, not offsets."""
    evidence = Evidence(doc_id="fees", chunk_id="c", quote="a late parcel costs thirty euros")
    made = dataset_of(tmp_path / "set", {"fees": FEES}, 100, [query("q", evidence)])
    write_run(made, "own", q=["fees-0000"])

    assert values(made, "own")["EvidenceR@2"] == 1.0


def test_a_query_of_which_a_quote_is_nowhere_is_not_measured(tmp_path):
    """Half of the evidence would be easier to find than all of it."""
    nowhere = Evidence(doc_id="fees", chunk_id="c", quote="What the documents do not say")
    asked = query("q", quoted("fees", FEES, START, START + 9), nowhere)
    made = dataset_of(tmp_path / "set", {"fees": FEES}, 100, [asked])
    basis = evidence_basis(made, [asked], [{"q": ["fees-0000"]}])

    assert (basis.quotes, basis.unplaced) == ({}, {"q"})


def test_quotes_that_overlap_are_one(tmp_path):
    """Characters of evidence are counted once."""
    quotes = [quoted("fees", FEES, START, START + 20), quoted("fees", FEES, START + 9, START + 38)]
    made = dataset_of(tmp_path / "set", {"fees": FEES}, 100, [query("q", *quotes)])
    write_run(made, "own", q=["fees-0000"])

    assert values(made, "own")["TokenP@2"] == LETTERS / len(FEES)


@pytest.fixture
def both(dataset):
    """The set with a run of its chunks, and one of pieces of 20 characters."""
    pieces = [stretch({"fees": FEES}, "fees", at, at + 20) for at in (0, 20)]
    dataset.write_retrieved_texts(pieces)
    write_run(dataset, "own", q=["fees-0000", "fees-0030"], bare=["fees-0000"])
    write_run(dataset, "cut", q=[pieces[0].chunk_id], bare=[item.chunk_id for item in pieces])
    graded = Judgment(query_id="q", chunk_id=pieces[0].chunk_id, grade=2)
    dataset.write_judgments([*dataset.judgments(), graded])
    return dataset


def test_runs_of_different_chunks_are_compared_by_evidence(both):
    """Neither is better for having fewer chunks to find."""
    report = compare_runs(both, ["own", "cut"], EvaluateSettings())

    assert report.measures == ("EvidenceR@10", "TokenR@10", "TokenP@10", "TokenIoU@10")
    assert report.means["EvidenceR@10"] == {"own": 1.0, "cut": 0.0}
    assert report.means["TokenR@10"] == {"own": 1.0, "cut": (20 - START) / LETTERS}
    assert report.n_values["TokenR@10"] == {"own": 1, "cut": 1}
    assert report.warnings[0].startswith(
        "the runs have different chunks (characters in the mean: own 30, cut 20) and are compared "
        "by evidence: nDCG counts chunks, so that it alone would flatter large ones"
    )


@pytest.fixture
def whole(tmp_path):
    """A set of 30 queries, of which a run of pieces finds 20, and one of whole documents all."""
    words = "Some words. " * 20
    documents = {f"d{n}": f"{words}Parcel {n + 100} costs thirty euros" for n in range(30)}
    start, end = len(words), len(documents["d0"])
    asked = [query(f"q{n}", quoted(f"d{n}", documents[f"d{n}"], start, end)) for n in range(30)]
    made = dataset_of(tmp_path / "whole", documents, 400, asked)
    pieces = {
        f"q{n}": stretch(documents, f"d{n}", start, end if n < 20 else start + 14)
        for n in range(30)
    }
    made.write_retrieved_texts(sorted(pieces.values(), key=lambda text: text.chunk_id))
    write_run(made, "pieces", **{key: [text.chunk_id] for key, text in pieces.items()})
    write_run(made, "whole", **{f"q{n}": [f"d{n}-0000"] for n in range(30)})
    return made


def test_a_run_that_returns_much_more_text_is_not_better_by_evidence_at_k(whole):
    """Whoever returns everything has all the evidence, in a prompt that nobody can pay for."""
    report = compare_runs(
        whole, ["pieces", "whole"], EvaluateSettings(measures=["EvidenceR@10", "TokenP@10"])
    )
    [evidence, precision] = report.items

    assert report.means["EvidenceR@10"] == {"pieces": pytest.approx(2 / 3), "whole": 1.0}
    assert evidence.comparison.winner == "B"
    assert (evidence.outcome, evidence.fair_measure) == ("UNKNOWN", "EvidenceR(tokens=10)")
    assert "whole returns 269 characters for a query in the top 10 and pieces 24" in (
        evidence.withheld
    )
    assert precision.better == "pieces"
    [told] = [text for text in report.every_warning if "unlike amounts of text" in text]
    assert "(characters in the mean: pieces 24, whole 269), and EvidenceR@10 rises with it" in told
    assert "compare --dataset" in told
    assert "pieces whole -m 'EvidenceR(tokens=10)'" in told


def test_a_run_that_finds_more_with_less_text_is_better(whole):
    """More text is no excuse."""
    found = {item.query_id: [hit.chunk_id for hit in item.ranking] for item in whole.run("whole")}
    elsewhere = {key: found[f"q{(int(key[1:]) + 1) % 30}"] for key in found}
    write_run(whole, "elsewhere", **elsewhere)
    settings = EvaluateSettings(measures=["EvidenceR@10"])
    report = compare_runs(whole, ["pieces", "elsewhere"], settings)

    assert report.winner_by("EvidenceR@10") == "pieces"
    assert any("unlike amounts of text" in text for text in report.every_warning)


def test_a_prompt_of_one_size_decides_between_runs_of_unlike_amounts(whole):
    """That is fair, whatever each returns."""
    settings = EvaluateSettings(measures=["EvidenceR(tokens=20)"])
    report = compare_runs(whole, ["pieces", "whole"], settings)

    assert report.winner_by("EvidenceR(tokens=20)") == "pieces"
    assert not any("unlike amounts of text" in text for text in report.every_warning)


def test_ndcg_of_runs_of_different_chunks_names_no_winner(both):
    """It is given where it is asked for, each run on the grades of its own chunks."""
    report = compare_runs(both, ["own", "cut"], EvaluateSettings(measures=["nDCG@10"]))

    assert report.means["nDCG@10"] == {"own": 1.0, "cut": 0.5}
    assert report.items[0].withheld.startswith("they have different chunks")
    assert any(text.startswith("the runs have different chunks, and") for text in report.warnings)


def test_runs_of_equal_chunks_are_compared_as_ever(both):
    """Nothing of another splitter moves what is compared by default."""
    write_run(both, "again", q=["fees-0030", "fees-0000"], bare=["fees-0000"])

    assert compare_runs(both, ["own", "again"], EvaluateSettings()).measures == COMPARED_MEASURES


def test_runs_without_any_evidence_are_compared_by_judgments(tmp_path):
    """Sets of people may have grades alone."""
    made = dataset_of(tmp_path / "set", {"fees": FEES}, 30, [query("q"), query("r")])
    piece = stretch({"fees": FEES}, "fees", 3, 25)
    made.write_retrieved_texts([piece])
    write_run(made, "own", q=["fees-0000"], r=["fees-0000"])
    write_run(made, "cut", q=[piece.chunk_id], r=["fees-0000", piece.chunk_id])

    assert compare_runs(made, ["own", "cut"], EvaluateSettings()).measures == COMPARED_MEASURES


def test_a_failed_retrieval_bounds_the_difference(both):
    """What it would have found is not known."""
    failure = Failure(what="retrieve", key="cut/q", kind="error", message="down")
    write_run(both, "cut", bare=["fees-0000"])
    both.replace_failures("retrieve", [failure], lambda key: key == "cut/q")
    settings = EvaluateSettings(measures=["EvidenceR@2", "TokenR@2"])
    extra = query("more", quoted("fees", FEES, START, START + 12))
    both.write_queries([*both.queries(), extra])
    report = compare_runs(both, ["own", "cut"], settings)

    assert report.items[0].failure_bounds == Ends(-0.5, 0.0)
    assert report.items[0].n_left_out == 1


def counted(dataset, name, cutoff):
    """Return the four values of each query by counting characters one by one."""
    held = {c.chunk_id: (c.doc_id, c.start, c.end, len(c.text)) for c in dataset.chunks()}
    for item in dataset.retrieved_texts():
        [span] = item.places
        held[item.chunk_id] = span.doc_id, span.start, span.end, len(item.text)
    ranked = {item.query_id: item.ranking for item in dataset.run(name)}
    by_query = {}
    for item in dataset.queries():
        quotes = [trimmed(each) for each in item.evidence]
        wanted = set().union(*quotes)
        top = [held[hit.chunk_id] for hit in ranked.get(item.query_id, ())[:cutoff]]
        there = {(doc_id, at) for doc_id, start, end, _ in top for at in range(start, end)}
        n_held, n_paid = len(wanted & there), sum(length for *_, length in top)
        by_query[item.query_id] = [
            sum(quote <= there for quote in quotes) / len(quotes),
            n_held / len(wanted),
            n_held / n_paid if n_paid else 0.0,
            n_held / (len(wanted) + n_paid - n_held),
        ]
    return by_query


def trimmed(evidence):
    """Return the characters of a quote from its first letter to its last, as (document, offset)."""
    at = [place for place, char in enumerate(evidence.quote) if char.isalnum()]
    offsets = range(evidence.start + at[0], evidence.start + at[-1] + 1)
    return {(evidence.doc_id, offset) for offset in offsets}


@pytest.mark.parametrize("name", ["own", "cut"])
@pytest.mark.parametrize("seed", range(4))
def test_values_are_those_of_counting_characters(tmp_path, seed, name):
    """Intervals, merged quotes and places of chunks are a fast way to the same numbers."""
    made = random_set(tmp_path / "set", seed)
    names = ["EvidenceR@4", "TokenR@4", "TokenP@4", "TokenIoU@4"]
    [found] = evaluate_runs(made, [name], EvaluateSettings(measures=names))
    computed = {
        query_id: [values[of] for of in names]
        for query_id, values in found.scores.per_query.items()
    }

    assert computed == {
        query_id: pytest.approx(values, abs=1e-12)
        for query_id, values in counted(made, name, 4).items()
    }
