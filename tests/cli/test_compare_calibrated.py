"""`ragforge compare --calibrated`."""

import json
import re

import pytest
from labelled_sets import drawn, graded_set, label_all, ranked, truth

import ragforge as rf
from ragforge.calibration.population import Question
from ragforge.cli import main

MEASURES = ["-m", "P@10", "-m", "DCG@10"]


def favouring(query, chunk):
    """Say what a judge says that likes the chunks from the eighth on."""
    return 3 if chunk >= 8 else max(truth(query, chunk) - 1, 0)


@pytest.fixture(scope="module")
def unfair(tmp_path_factory):
    """A set whose judge favours run b, with labels on half of what decides."""
    made = graded_set(tmp_path_factory.mktemp("set") / "set", judge=favouring)
    made.write_run("a", [_with_first(r, lambda c: truth(*c) >= 2) for r in made.run("a")])
    made.write_run("b", [_with_first(r, lambda c: c[1] >= 8) for r in made.run("b")])
    drawn(made, 200, Question(("a", "b"), ("P@10", "DCG@10", "nDCG@10")))
    label_all(made)
    return made


def compared(made, capsys, *more):
    """Return what the comparison prints as JSON."""
    capsys.readouterr()
    main(["compare", "--dataset", str(made.path), "a", "b", *MEASURES, *more, "--json"])
    return json.loads(capsys.readouterr().out)


def test_a_judge_that_favours_a_run_does_not_make_it_win(unfair, capsys):
    """It is the damage that labels are for."""
    alone = [item["winner"] for item in compared(unfair, capsys)["comparisons"]]
    corrected = [item["winner"] for item in compared(unfair, capsys, "--calibrated")["comparisons"]]

    assert alone == ["B", "B"]
    assert corrected == ["A", "A"]


def test_wordings_of_one_question_have_no_winner_by_labels_either(unfair, capsys):
    """They are no more queries than before."""
    before = list(unfair.queries())
    answer = "The fee is ten percent of all that was paid."
    same = [each.model_copy(update={"expected_answer": answer}) for each in before]
    unfair.write_queries(same)
    try:
        found = compared(unfair, capsys, "--calibrated")["comparisons"]
    finally:
        unfair.write_queries(before)

    assert {item["winner"] for item in found} == {"UNKNOWN"}
    assert all("ask for what another one asks for" in item["why"] for item in found)


def test_the_judge_alone_stands_beside_the_corrected_difference(unfair, capsys):
    """Who reads it must see how much the labels changed."""
    [item, _] = compared(unfair, capsys, "--calibrated")["comparisons"]

    assert item["corrected"]["judge_only"] == pytest.approx(item["diff"], abs=1e-9)
    assert item["corrected"]["wide_high"] < 0 < item["diff"]


def test_one_query_decides_nothing_and_says_why(tmp_path, capsys):
    """An interval over queries like it would be made up."""
    made = graded_set(tmp_path / "set", 1)
    drawn(made, 1000, Question(("a", "b"), ("P@10", "DCG@10")))
    label_all(made)

    items = compared(made, capsys, "--calibrated")["comparisons"]

    assert {item["winner"] for item in items} == {"UNKNOWN"}
    assert {item["why"] for item in items} == {"one query tells nothing of queries like it"}


@pytest.mark.parametrize("part", [("--split", "dev"), ("--sample", "5")])
def test_a_part_of_the_queries_is_refused_for_what_it_is(unfair, capsys, part):
    """It said that runs changed after sampling, or that a complete run is of a sample."""
    queries = [
        each.model_copy(update={"split": "dev" if n % 2 else "test"})
        for n, each in enumerate(unfair.queries())
    ]
    before = list(unfair.queries())
    unfair.write_queries(queries)
    try:
        capsys.readouterr()
        words = ["compare", "--dataset", str(unfair.path), "a", "b", *MEASURES, "--calibrated"]
        assert main([*words, *part]) == 2
    finally:
        unfair.write_queries(before)

    told = capsys.readouterr().err
    assert "calibrated: the labels are of all queries, not of a part of them" in told


def test_the_order_of_the_names_turns_the_difference(unfair, capsys):
    """The sample was drawn with a first; the question may be asked the other way."""
    capsys.readouterr()
    main(["compare", "--dataset", str(unfair.path), "b", "a", *MEASURES, "--calibrated", "--json"])
    [item, _] = json.loads(capsys.readouterr().out)["comparisons"]

    assert (item["a"], item["winner"]) == ("b", "B")
    assert item["corrected"]["wide_low"] > 0


def test_ndcg_is_decided_on_dcg_too(unfair, capsys):
    """A model supplies its divisor; where both show the same run it is the better one."""
    [*_, dcg, ndcg] = compared(unfair, capsys, "-m", "nDCG@10", "--calibrated")["comparisons"]

    assert dcg["winner"] == ndcg["winner"] == "A"


def test_ndcg_of_queries_like_these_is_never_surer_than_of_these(unfair, capsys):
    """An interval that leaves out the spread of queries named the worse run."""
    [*_, ndcg] = compared(unfair, capsys, "-m", "nDCG@10", "--calibrated")["comparisons"]

    found = ndcg["corrected"]
    assert found["wide_low"] < found["low"] < found["high"] < found["wide_high"]


def test_a_measure_that_was_not_drawn_for_is_unknown(unfair, capsys):
    """The judge alone must not decide among corrected numbers."""
    [*_, last] = compared(unfair, capsys, "-m", "P@5", "--calibrated")["comparisons"]

    assert last["winner"] == "UNKNOWN"
    assert "was not drawn for it" in last["why"]


def test_no_sample_is_advised_for_what_labels_cannot_correct(unfair, capsys):
    """`calibrate sample` would refuse the measure."""
    [*_, last] = compared(unfair, capsys, "-m", "RR", "--calibrated")["comparisons"]

    assert last["winner"] == "UNKNOWN"
    assert last["why"] == "labels correct P@k, DCG@k and nDCG@k, and not RR"


@pytest.mark.parametrize(
    ("measures", "line"),
    [
        (["P@10", "RR"], "; P@10 corrected by 200 labels of people, the rest uncalibrated"),
        (["RR"], "; uncalibrated"),
    ],
)
def test_the_first_line_names_what_is_corrected(unfair, capsys, measures, line):
    """Nothing below it must pass for corrected that is not."""
    capsys.readouterr()
    asked = [word for name in measures for word in ("-m", name)]
    main(["compare", "--dataset", str(unfair.path), "a", "b", *asked, "--calibrated"])

    assert capsys.readouterr().out.partition("\n")[0].endswith(line)


@pytest.mark.parametrize(
    ("measure", "command"),
    [
        ("P@5", "sample --dataset SET --run a --run b -m P@5 -n 200 --name people-2"),
        ("nDCG@5", "sample --dataset SET --run a --run b -m nDCG@5 -m DCG@5 -n 200"),
        ("RR", "sample --dataset SET --run a --run b -m DCG@10 -n 200 --name people-2"),
    ],
)
def test_what_comes_next_is_labels_rather_than_a_judge(unfair, capsys, measure, command):
    """A model grades nothing that labels lack."""
    capsys.readouterr()
    main(["compare", "--dataset", str(unfair.path), "a", "b", "-m", measure, "--calibrated"])

    told = capsys.readouterr().err.replace(str(unfair.path), "SET")
    assert f"next: ragforge calibrate {command}" in told
    assert "--judge" not in told


def test_too_few_labels_are_followed_by_more(tmp_path, capsys):
    """The sample is there, and waits for people."""
    made = graded_set(tmp_path / "set", 6)
    drawn(made, 40, Question(("a", "b"), ("P@10", "DCG@10")))
    label_all(made, most=12)
    capsys.readouterr()

    main(["compare", "--dataset", str(made.path), "a", "b", "-m", "P@10", "--calibrated"])

    found = capsys.readouterr()
    assert found.out.partition("\n")[0].endswith("; uncalibrated")
    assert "next: ragforge calibrate label" in found.err
    assert "--name people --page labels.html" in found.err


def test_a_report_asks_for_labels_rather_than_for_a_judge(unfair, capsys):
    """Its reader would pay for grades that decide nothing."""
    capsys.readouterr()
    words = ["--dataset", str(unfair.path), "-m", "RR", "--calibrated", "--json"]
    main(["report", *words])

    decision = json.loads(capsys.readouterr().out)["decision"]
    assert decision["next"] == "people's labels are missing: `ragforge calibrate sample`."
    assert "the rest uncalibrated" in decision["rests_on"]["Grades"]


@pytest.mark.parametrize(
    ("more", "said"), [((), "uncalibrated"), (("--calibrated",), "corrected by 200 labels")]
)
def test_the_first_line_says_whether_people_corrected_it(unfair, capsys, more, said):
    """It is what a reader has to know before any number."""
    capsys.readouterr()
    main(["compare", "--dataset", str(unfair.path), "a", "b", *MEASURES, *more])

    assert said in capsys.readouterr().out.partition("\n")[0]


def test_without_a_calibration_it_is_refused(tmp_path, capsys):
    """Nothing must pass for corrected that is not."""
    made = graded_set(tmp_path / "set", 4)

    code = main(["compare", "--dataset", str(made.path), "a", "b", "--calibrated"])

    assert code == 3
    assert "has no calibration" in capsys.readouterr().err


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A set of three runs whose judge favours run b, with labels on half of what decides."""
    made = graded_set(tmp_path_factory.mktemp("set") / "set", judge=favouring)
    made.write_run("c", made.run("b"))
    made.write_run("a", [_with_first(r, lambda c: truth(*c) >= 2) for r in made.run("a")])
    made.write_run("b", [_with_first(r, lambda c: c[1] >= 8) for r in made.run("b")])
    drawn(made, 250, Question(("a", "b", "c"), ("P@10", "DCG@10")))
    label_all(made)
    return made


def test_ndcg_that_no_label_tells_is_followed_by_dcg(tmp_path, capsys):
    """All drawn pairs have labels: a page for more of them would be empty."""
    made = graded_set(tmp_path / "set", 20)
    drawn(made, 120, Question(("a", "b"), ("DCG@10", "nDCG@10")))
    label_all(made)
    capsys.readouterr()

    main(["compare", "--dataset", str(made.path), "a", "b", "-m", "nDCG@10", "--calibrated"])

    found = capsys.readouterr()
    assert "expected at least 30 queries" in found.out
    assert "a b -m DCG@10 --calibrated" in found.err


def test_what_survives_is_what_labels_say(three, tmp_path):
    """Among three runs the judge's favourite was listed as better, beside a verdict against it."""
    out = tmp_path / "told.md"
    runs = ["--run", "a", "--run", "b", "--run", "c", "--base", "a"]
    main(
        [
            "report",
            "--dataset",
            str(three.path),
            *runs,
            *MEASURES,
            "--calibrated",
            "--out",
            str(out),
        ]
    )

    _, _, told = out.read_text().partition("survive the correction: 4 of 4 comparisons")
    listed = re.findall(r"^\| (\S+) \| (\w) \| (\w) \| [\d.]+ \| \\\[", told, re.MULTILINE)
    assert sorted(listed) == [(m, "a", b) for m in ("DCG@10", "P@10") for b in "bc"]


def test_a_comparison_of_three_lists_what_survives(three):
    """The table says by how much people's labels have it, and with which interval."""
    found = rf.open(three.path).compare("a", "b", "c", measures="P@10", base="a", calibrated=True)

    told = found.table()

    assert "Differences that survive the correction: 2 of 2 comparisons" in told
    assert found.rows()[0]["corrected"] == pytest.approx(-_by(told), abs=1e-4)


def test_no_winner_stands_beside_an_uncorrected_difference(unfair):
    """A row with the judge's lead of B and the winner A contradicts itself."""
    found = rf.open(unfair.path).compare("a", "b", measures="P@10", calibrated=True)

    told = found.table()

    assert told.count("winner  ") == 1
    assert "A = a, B = b; 30 queries; uncorrected" in told


def test_rows_have_the_difference_that_decides(unfair):
    """Beside the winner stood the judge's difference alone, of the other sign."""
    found = rf.open(unfair.path).compare("a", "b", measures="P@10", calibrated=True)

    [row] = found.rows()

    assert row["winner"] == "a"
    assert row["corrected_low"] < row["corrected"] < row["corrected_high"] < 0 < row["diff"]


def _by(told):
    """Return by how much a is better than b, in the table of what survives."""
    _, _, survive = told.partition("Differences that survive")
    return float(re.search(r"P@10 +a +b +([\d.]+)", survive)[1])


def _with_first(ranking, wanted):
    places = {
        hit.chunk_id: (int(hit.chunk_id[1:6]), int(hit.chunk_id[-2:])) for hit in ranking.ranking
    }
    hits = tuple(
        hit.model_copy(update={"score": hit.score + 9 * wanted(places[hit.chunk_id])})
        for hit in ranking.ranking
    )
    return ranking.model_copy(update={"ranking": hits})


def test_a_sample_is_drawn_anew_as_the_refusal_advises(tmp_path, capsys):
    """The command that it named was refused."""
    made = graded_set(tmp_path / "set")
    drawn(made, 150, Question(("a", "b"), ("P@10",), of="differences"))
    label_all(made)
    made.write_run("a", [_with_first(r, lambda c: truth(*c) >= 2) for r in made.run("a")])
    words = ["calibrate", "sample", "--dataset", str(made.path), "--again"]

    assert main(["compare", "--dataset", str(made.path), "a", "b", *MEASURES, "--calibrated"]) == 3
    assert "run a changed after sampling; `ragforge calibrate sample --again`" in " ".join(
        capsys.readouterr().err.split()
    )
    assert main([*words, "--of", "levels"]) == 2
    assert main([*words, "--json"]) == 0
    sample = json.loads((made.path / "calibration" / "people" / "sample.json").read_text())
    assert (sample["measures"], sample["of"], len(sample["pairs"])) == (
        ["P@10"],
        "differences",
        150,
    )
    assert main(["calibrate", "apply", "--dataset", str(made.path)]) == 0


def test_what_is_to_be_known_of_the_labels_is_told(tmp_path, capsys):
    """Two people who grade apart, or a judge that drifted, are in no interval."""
    made = graded_set(tmp_path / "set")
    drawn(made, 100)
    label_all(made)
    label_all(made, labeller="bo", grade=lambda q, c: min(truth(q, c) + 1, 3))

    found = compared(made, capsys, "--calibrated")

    assert any("ann and bo grade apart" in warning for warning in found["warnings"])


def test_labels_of_relevant_or_not_are_told(tmp_path, capsys):
    """By them no text is relevant, and DCG is of another scale."""
    made = graded_set(tmp_path / "set")
    drawn(made, 100)
    label_all(made, grade=lambda q, c: int(truth(q, c) >= 2))

    found = compared(made, capsys, "--calibrated")

    assert any(warning.startswith("no label is above 1") for warning in found["warnings"])


@pytest.mark.parametrize(("n", "outcome"), [(4, "TIE"), (12, "B")])
def test_few_queries_that_differ_decide_nothing(tmp_path, capsys, n, outcome):
    """By the interval four that all go one way, which is chance in one case of eight, decided."""
    made = graded_set(tmp_path / "set", 40, judge=lambda q, c: 3 * (c == 0))
    for name, found in (("a", 0), ("b", n)):
        made.write_run(name, [ranked(q, [0 if q < found else 1]) for q in range(40)])
    drawn(made, 400, Question(("a", "b"), ("P@1",)))
    label_all(made, grade=lambda q, c: 3 * (c == 0))
    words = ["compare", "--dataset", str(made.path), "a", "b", "-m", "P@1", "--calibrated"]
    main([*words, "--json"])

    [item] = json.loads(capsys.readouterr().out)["comparisons"]
    assert item["winner"] == outcome
