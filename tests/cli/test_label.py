import io
import json
import os
import subprocess
import sys

import pytest
from label_samples import HOSTILE, answered_set, sampled_set

from ragforge.calibration.label_tasks import LabelTask
from ragforge.cli import main
from ragforge.cli.label_terminal import Terminal, ask, ask_about_answers, opened_terminal
from ragforge.files.set.answer_labels import answer_labels
from ragforge.files.set.calibrations import calibration_files
from ragforge.pipeline.answer_labelling import AnswerDraw, answer_labelling, sample_answers
from ragforge.pipeline.labelling import LabelSelection, labelling
from ragforge.records import answer_sha256


def run(capsys, *words):
    code = main(["calibrate", "label", *map(str, words)])
    return code, *capsys.readouterr()


@pytest.fixture
def dataset(tmp_path):
    """A dataset with six drawn pairs."""
    return sampled_set(tmp_path / "set", 6)


def keyed(dataset, keys, labeller="Ann", **wanted):
    """Return what a terminal shows to somebody who presses keys, three seconds after each other."""
    files = calibration_files(dataset)
    shown = []
    clock = iter(range(0, 3000, 3))
    terminal = Terminal(iter([*keys, "\x04"]).__next__, shown.append, lambda: next(clock))
    ask(labelling(dataset, files, LabelSelection(labeller, **wanted)), files, terminal)
    return "".join(shown)


def test_a_table_goes_out_and_its_labels_come_back(dataset, tmp_path, capsys):
    """Who likes spreadsheets labels in one."""
    sheet = tmp_path / "labels.csv"
    code, out, told = run(capsys, "--dataset", dataset.path, "--export", "csv", "--out", sheet)
    filled = sheet.read_text("utf-8-sig").replace('"1","","",', '"1","Ann","2",')
    sheet.write_text(filled, encoding="utf-8")
    taken = run(capsys, "--dataset", dataset.path, "--from", sheet, "--json")

    assert (code, out, "0 labels, 6 open" in told) == (0, f"{sheet}\n", True)
    assert taken[0] == 0
    assert json.loads(taken[1])["n_new"] == 6
    assert [label.grade for label in calibration_files(dataset).labels()] == [2] * 6


def test_the_page_is_written_for_a_labeller(dataset, tmp_path, capsys):
    """It is sent to somebody by name."""
    page = tmp_path / "ann.html"
    words = ("--dataset", dataset.path, "--page", page, "--labeller", " Ann  B ")
    code, out, told = run(capsys, *words)

    assert (code, out) == (0, f"{page}\n")
    assert "6 pairs for Ann B, 0 done before" in told
    assert "Labels by Ann B" in page.read_text("utf-8")


def test_label_studio_gets_its_interface_told(dataset, tmp_path, capsys):
    """Tasks without the interface show nothing."""
    out = tmp_path / "tasks.json"
    words = ("--dataset", dataset.path, "--export", "label-studio", "--out", out)
    code, _, told = run(capsys, *words)

    assert (code, '<Choices name="grade"' in told) == (0, True)
    assert len(json.loads(out.read_text("utf-8"))) == 6


def test_who_labelled_how_much_is_told(dataset, capsys):
    """It is the first question of whoever waits for labels."""
    keyed(dataset, "0123")
    keyed(dataset, "0213", "Bob")
    code, out, _ = run(capsys, "--dataset", dataset.path)

    assert (code, "6 pairs in the sample" in out) == (0, True)
    assert "Ann and Bob" in out
    assert "2 disagreements to settle" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--export", "csv"), "--export and --out go together"),
        (("--page", "a.html", "--terminal"), "not allowed with"),
        (("--page", "manifest.json"), "is a file of the dataset"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(dataset, words, message, capsys, monkeypatch):
    """Before anything is written."""
    monkeypatch.chdir(dataset.path)
    code, _, told = run(capsys, "--dataset", ".", "--labeller", "Ann", *words)

    assert (code, message in told) == (2, True)


def test_a_set_without_a_sample_says_how_one_is_drawn(tmp_path, capsys):
    """The first thing anybody will see."""
    dataset = sampled_set(tmp_path / "set", 1)
    (calibration_files(dataset).folder / "sample.json").unlink()

    code, _, told = run(capsys, "--dataset", dataset.path)

    assert (code, "ragforge calibrate sample" in told) == (3, True)


def test_keys_label_skip_and_take_back(dataset):
    """The same keys as on the page."""
    keyed(dataset, "01su3x?2q1")

    found = [(label.query_id, label.grade) for label in calibration_files(dataset).labels()]
    assert found == [("q0", 0), ("q1", 1), ("q2", 3), ("q3", 2)]


def test_the_terminal_goes_on_where_it_ended(dataset):
    """Each label is kept before the next pair is shown."""
    keyed(dataset, "01")

    assert "--- 3 of 6 ---" in keyed(dataset, "2")
    assert len(calibration_files(dataset).labels()) == 3


def test_the_time_a_pair_took_is_kept(dataset):
    """Whoever plans the next sample wants to know."""
    keyed(dataset, "0")

    [label] = calibration_files(dataset).labels()
    assert (label.seconds, label.labeller, bool(label.at)) == (3, "Ann", True)


def test_texts_steer_no_terminal(tmp_path):
    """A corpus must not move the cursor or hide what it says."""
    shown = keyed(sampled_set(tmp_path / "set", 1, texts={0: HOSTILE}), "0")

    assert ("\x1b" in shown, "\u202e" in shown, "\\x1b" in shown) == (False, False, True)


def test_the_expected_answer_is_shown_when_asked_for_and_allowed(dataset):
    """It leads to the passage that the question was made from."""
    assert "It is 0." not in keyed(dataset, "a")
    assert "It is 0." in keyed(dataset, "a", show_answer=True)


def test_a_third_person_settles_what_two_differ_on(dataset):
    """Both grades are shown, and not who gave them."""
    keyed(dataset, "012")
    keyed(dataset, "032", "Bob")
    shown = keyed(dataset, "3", "Cyd", adjudicate=True)

    [label] = [label for label in calibration_files(dataset).labels() if label.decides]
    assert (label.query_id, label.labeller, label.grade, label.look) == ("q1", "Cyd", 3, 3)
    assert ("Given so far: 1 and 3." in shown, "Bob" in shown) == (True, False)


def test_lines_of_a_pipe_are_keys(dataset):
    """Grades may come from another program."""
    with opened_terminal(io.StringIO("01\n\n2\n"), io.StringIO()) as terminal:
        found = [terminal.read_key() for _ in range(4)]

    assert found == ["0", "1", "2", "\x04"]


def test_a_real_terminal_loses_no_key_that_is_typed_ahead(dataset):
    """Who labels fast does not wait for the prompt."""
    words = ("calibrate", "label", "--dataset", str(dataset.path), "--labeller", "Ann")
    ours, theirs = os.openpty()
    os.write(ours, b"01?u3s20q")
    done = subprocess.run(
        [sys.executable, "-m", "ragforge", *words, "--terminal"],
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=60,
    )
    os.close(ours)
    os.close(theirs)

    found = [label.grade for label in calibration_files(dataset).labels()]
    assert (done.returncode, found) == (0, [0, 3, None, 2, 0])


def test_a_task_knows_whether_it_decides():
    """Its label counts alone then."""
    assert [LabelTask("q", "c", "", look).decides for look in (1, 2, 3)] == [False, False, True]


def keyed_answers(dataset, keys):
    """Return what a terminal shows to Ann, who presses keys about answers."""
    files = calibration_files(dataset)
    sample_answers(dataset, files, AnswerDraw(("one",), 4))
    shown = []
    clock = iter(range(0, 3000, 3))
    terminal = Terminal(iter([*keys, "\x04"]).__next__, shown.append, lambda: next(clock))
    ask_about_answers(dataset, answer_labelling(dataset, files, "Ann"), files, terminal)
    return "".join(shown)


def said(dataset):
    """Return verdict, score and further claims of each label, in the order of the answers."""
    labels = answer_labels(calibration_files(dataset))
    return sorted((label.verdict or "", label.score, label.says_more) for label in labels)


def test_answers_are_labelled_fact_by_fact_in_a_terminal(tmp_path):
    """The same labels as from the page; an undo takes the last answer back."""
    dataset = answered_set(tmp_path / "set")
    shown = keyed_answers(dataset, "111su2x41332")

    assert said(dataset) == [
        ("correct", 1.0, False),
        ("incorrect", 0.0, True),
        ("incorrect", 0.25, False),
    ]
    assert ("--- 3 of 4 ---" in shown, "Expected: It is " in shown) == (True, True)
    assert ("one" in shown.replace("of one.", ""), "1 said, 2 in part" in shown) == (False, True)


def test_the_terminal_goes_on_with_the_answers_that_are_left(tmp_path):
    """Each label is kept before the next answer is shown."""
    dataset = answered_set(tmp_path / "set")
    keyed_answers(dataset, "11122")

    assert "--- 2 of 4 ---" in keyed_answers(dataset, "")
    assert said(dataset) == [("correct", 1.0, False)]


def test_an_answer_without_facts_gets_a_verdict_in_the_terminal(tmp_path):
    """There is nothing to tick."""
    dataset = answered_set(tmp_path / "set")
    dataset.write_queries(query.model_copy(update={"facts": ()}) for query in dataset.all_queries())
    keyed_answers(dataset, "2")

    assert said(dataset) == [("partial", 0.5, False)]


def test_answers_steer_no_terminal(tmp_path):
    """A system must not move the cursor or hide what it says."""
    dataset = answered_set(tmp_path / "set", answers=dict.fromkeys(range(6), HOSTILE))
    shown = keyed_answers(dataset, "")

    assert ("\x1b" in shown, "\u202e" in shown, "\\x1b" in shown) == (False, False, True)


def test_the_command_asks_about_answers_in_the_terminal(tmp_path, capsys, monkeypatch):
    """Keys may come through a pipe."""
    dataset = answered_set(tmp_path / "set")
    sample_answers(dataset, calibration_files(dataset), AnswerDraw(("one",), 4))
    monkeypatch.setattr("sys.stdin", io.StringIO("111s"))
    words = ["calibrate", "label-answers", "--dataset", str(dataset.path), "--labeller", "Ann"]
    code = main([*words, "--terminal", "--json"])

    told = json.loads(capsys.readouterr().out)
    assert (code, told["answers"], told["labelled"]) == (0, 4, 2)


def test_answers_are_labelled_on_a_page_and_reported_on(tmp_path, capsys):
    """From the draw to the agreement of a judge by four commands."""
    dataset = answered_set(tmp_path / "set").path
    labels, page = tmp_path / "saved.jsonl", tmp_path / "answers.html"
    drawing = ("calibrate", "sample", "--dataset", str(dataset), "--answers", "one")
    drawn = main([*drawing, "-n", "9"]), *capsys.readouterr()
    common = ("calibrate", "label-answers", "--dataset", str(dataset))
    made = main([*common, "--labeller", "Ann", "--page", str(page)]), *capsys.readouterr()
    rows = [
        {
            "query_id": f"q{k}",
            "system": "one",
            "labeller": "Ann",
            "answer_sha256": answer_sha256(f"Answer {k} of one."),
            "facts": [{"fact_id": f"f{n}", "status": "supported"} for n in range(2)],
        }
        for k in range(6)
    ]
    labels.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    taken = main([*common, "--from", str(labels)]), *capsys.readouterr()
    grades = dataset / "answer_grades" / "one.jsonl"
    words = ("calibrate", "report", "--answers", "--human", taken[1].strip())
    code = main([*words, "--graded", str(grades), "--json"])

    assert (drawn[0], "6 answers to 6 queries of 6" in drawn[2]) == (0, True)
    assert (made[0], made[1], "6 answers for Ann" in made[2]) == (0, f"{page}\n", True)
    assert (taken[0], "6 new labels" in taken[2]) == (0, True)
    found = json.loads(capsys.readouterr().out)["judges"]["one"]["verdicts"]
    assert (code, found["same"]["value"], found["confusion"][0][0]) == (0, 1.0, 6)


def test_a_file_of_answers_with_no_row_of_use_is_refused(tmp_path, capsys):
    """All rows are of an answer that nobody drew."""
    dataset, labels = answered_set(tmp_path / "set"), tmp_path / "saved.jsonl"
    sample_answers(dataset, calibration_files(dataset), AnswerDraw(("one",), 4))
    row = {"query_id": "q99", "system": "one", "labeller": "Ann", "verdict": "correct"}
    labels.write_text(f"{json.dumps({**row, 'answer_sha256': answer_sha256('?')})}\n")
    words = ["calibrate", "label-answers", "--dataset", str(dataset.path), "--from", str(labels)]
    code, (out, err) = main(words), capsys.readouterr()

    assert (code, out) == (3, "")
    assert "no label was taken in" in err


def test_a_file_of_labels_with_no_row_of_use_is_refused(dataset, tmp_path, capsys):
    """The pair was not drawn."""
    labels = tmp_path / "labels.csv"
    labels.write_text("query_id,chunk_id,grade\nnowhere,nothing,2\n")
    code, out, err = run(capsys, "--dataset", dataset.path, "--from", str(labels))

    assert (code, out) == (3, "")
    assert "no label was taken in" in err
