import pytest

from ragforge.errors import UsageError
from ragforge.files.manifest import Manifest
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.output_paths import refuse_to_replace
from ragforge.records import Answer, Judgment, Query

JUDGMENT = Judgment(query_id="q", chunk_id="c", grade=2).model_dump_json()
QUERY = Query(query_id="q", query="What?").model_dump_json()


def is_taken(out):
    """Whether judgments may be written to a file, which is left as it is."""
    before = out.read_bytes() if out.exists() else None
    try:
        refuse_to_replace(out, Judgment)
    except UsageError:
        return False
    return before == (out.read_bytes() if out.exists() else None)


@pytest.mark.parametrize(
    "text", [None, "", "\n", f"{JUDGMENT}\n", f"{JUDGMENT}\n\n{JUDGMENT}\n", f'{JUDGMENT}\n{{"qu']
)
def test_an_earlier_result_is_replaced(tmp_path, text):
    """A run is given again to go on."""
    out = tmp_path / "out.jsonl"
    if text is not None:
        out.write_text(text, encoding="utf-8")

    assert is_taken(out)


@pytest.mark.parametrize(
    "text", [QUERY, "{}", "[1]", "notes of mine", "\x00\xff", f"{JUDGMENT}\nmine\n"]
)
def test_anything_else_is_not(tmp_path, text):
    """A slip of the hand must not cost a set that people graded."""
    out = tmp_path / "out.jsonl"
    out.write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match="is no judgment that ragforge wrote"):
        refuse_to_replace(out, Judgment)


def test_what_ragforge_did_not_write_stays(tmp_path):
    """Grades of people have the form of a judge's."""
    out = tmp_path / "out.jsonl"
    out.write_text(f"{JUDGMENT}\n", encoding="utf-8")

    with pytest.raises(UsageError, match="line 1 is no judgment that ragforge wrote"):
        refuse_to_replace(out, Judgment, ours=lambda old: old.provenance is not None)


@pytest.mark.parametrize("name", ["judgments.jsonl", "answers/mine.jsonl"])
def test_files_of_a_dataset_are_its_own(tmp_path, name):
    """Judgments of people look like any others."""
    dataset = Dataset(tmp_path)
    dataset.write_manifest(Manifest(name="set"))
    dataset.write_judgments([Judgment(query_id="q", chunk_id="c", grade=2)])
    dataset.write_answers("mine", [Answer(query_id="q", answer="so")])
    out = tmp_path / name

    with pytest.raises(UsageError, match="is a file of a dataset"):
        refuse_to_replace(out, Judgment)


@pytest.mark.parametrize("manifest", ["{}", "other", Manifest(name="set").model_dump_json()])
def test_an_earlier_result_beside_a_dataset_is_replaced(tmp_path, manifest):
    """People keep things together."""
    (tmp_path / "manifest.json").write_text(manifest, encoding="utf-8")
    out = tmp_path / "judged.jsonl"
    out.write_text(JUDGMENT, encoding="utf-8")

    assert is_taken(out)


def test_a_folder_is_no_file(tmp_path):
    """It would be found out only after all was paid."""
    with pytest.raises(UsageError, match="is no file"):
        refuse_to_replace(tmp_path, Judgment)
