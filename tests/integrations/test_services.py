"""Real servers are asked as settings describe them; search engines cannot be installed here."""

import json
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "services"


@pytest.mark.parametrize("name", ["chroma"])
def test_a_server_of_chroma_is_understood_by_what_a_probe_proposes(python, tmp_path):
    """Its reply is one of columns, and it is asked with a vector."""
    probe = json.loads(python(tmp_path, str(SCRIPTS / "ask_chroma.py")))

    assert probe["state"] == "understood"
    assert [(row["id"], row["document"]) for row in probe["results"]] == [
        ("care-1", "care.md"),
        ("returns-1", "returns.md"),
    ]


@pytest.mark.parametrize("name", ["langserve"])
def test_a_server_of_langserve_retrieves_and_answers(python, tmp_path):
    """The stream of a chain is its answer, letter by letter."""
    *_, line = python(tmp_path, str(SCRIPTS / "ask_langserve.py")).splitlines()  # behind its banner
    told = json.loads(line)

    [hit] = told["hits"]
    assert (hit["id"], hit["document"], hit["text"]) == ("r1", "returns.md", "Goods go back.")
    assert told["answers"] == ["Within thirty days.", "Within thirty days."]
