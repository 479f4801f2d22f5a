"""`ragforge compare --calibrated`."""

import json

import pytest
from labelled_sets import drawn, graded_set, label_all, truth

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


def test_the_order_of_the_names_turns_the_difference(unfair, capsys):
    """The sample was drawn with a first; the question may be asked the other way."""
    capsys.readouterr()
    main(["compare", "--dataset", str(unfair.path), "b", "a", *MEASURES, "--calibrated", "--json"])
    [item, _] = json.loads(capsys.readouterr().out)["comparisons"]

    assert (item["a"], item["winner"]) == ("b", "B")
    assert item["corrected"]["wide_low"] > 0


def test_ndcg_is_decided_on_dcg(unfair, capsys):
    """Its own interval is over these queries alone."""
    [*_, dcg, ndcg] = compared(unfair, capsys, "-m", "nDCG@10", "--calibrated")["comparisons"]

    assert dcg["winner"] == ndcg["winner"] == "A"


def test_a_measure_that_was_not_drawn_for_is_unknown(unfair, capsys):
    """The judge alone must not decide among corrected numbers."""
    [*_, last] = compared(unfair, capsys, "-m", "RR", "--calibrated")["comparisons"]

    assert last["winner"] == "UNKNOWN"
    assert "was not drawn for it" in last["why"]


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


def _with_first(ranking, wanted):
    places = {
        hit.chunk_id: (int(hit.chunk_id[1:6]), int(hit.chunk_id[-2:])) for hit in ranking.ranking
    }
    hits = tuple(
        hit.model_copy(update={"score": hit.score + 9 * wanted(places[hit.chunk_id])})
        for hit in ranking.ranking
    )
    return ranking.model_copy(update={"ranking": hits})
