"""What reads a judge's replies has a name that calibrations are bound to: it goes with the code."""

import ast
import hashlib
import json
import sys
from pathlib import Path

import pytest

import ragforge
from ragforge.llm.structured import PARSER

SNAPSHOT = Path(__file__).parents[2] / "data" / "reply_parser.json"
"""Renewed by `python tests/stages/judge/test_reply_parser.py`, as the message of a failure says."""
WHAT_TO_DO = (
    "what reads a judge's replies changed: raise PARSER in ragforge/llm/structured.py, so that "
    "calibrations of before are told to be of another parser, and run `python "
    "tests/stages/judge/test_reply_parser.py`; if every reply is read as before, only run it with "
    "--reads-the-same"
)
EVERYTHING = frozenset()
READING = {
    "llm/structured.py": {
        *("MAX_REPLY_CHARS", "_THOUGHT", "_THOUGHT_BEGINS", "_THOUGHT_ENDS", "_TURN", "_ASIDE"),
        *("_FINAL", "_END_OF_TURN", "_FENCE", "parse_object", "_unwrapped", "_after"),
        *("_after_lone_thought", "_parse", "_check_end", "_exact", "_distinct"),
    },
    "stages/asking.py": {"upto"},
    "stages/visible_text.py": EVERYTHING,
    "stages/judge/llm.py": {
        *("_EVIDENCE_CHARS", "_whole", "_GivenGrade", "RelevanceReply", "GradeReply"),
        *("broken_rule", "find_evidence", "evidence_in"),
    },
    "stages/judge/batches.py": {
        *("BatchVerdict", "BatchReply", "_broken_ids", "_slipped", "_holds", "_ballot"),
    },
    "stages/judge/votes.py": {"settle", "strict_grade", "_spokesman"},
    "stages/quotes.py": EVERYTHING,
    "corpus/word_ends.py": EVERYTHING,
    "corpus/quote_locations.py": EVERYTHING,
}
"""Definitions by module that decide which grade a reply becomes; all of a module where none is
named."""


def names_of(node):
    if isinstance(node, ast.Assign):
        return {target.id for target in node.targets if isinstance(target, ast.Name)}
    if isinstance(node, ast.AnnAssign):
        return {node.target.id}
    return {getattr(node, "name", "")}


def code_of(source, names):
    """Return the definitions of a source without docstrings, comments and blank space."""
    tree = ast.parse(source)
    lines = source.split("\n")
    texts = {
        number
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for number in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    found = [
        node
        for node in tree.body
        if not isinstance(node, ast.Import | ast.ImportFrom)
        and (names_of(node) & names or not names)
    ]
    kept = [
        "".join(lines[number - 1].split())
        for node in found
        for number in range(first_line(node), node.end_lineno + 1)
        if number not in texts and not lines[number - 1].lstrip().startswith("#")
    ]
    missing = names - set().union(*map(names_of, tree.body))
    return "\n".join(filter(None, kept)), missing


def first_line(node):
    return min([node.lineno, *(of.lineno for of in getattr(node, "decorator_list", []))])


def reading_now():
    """Return the parser's name with a digest of each module's part in it."""
    home = Path(ragforge.__file__).parent
    digests = {}
    for name, names in READING.items():
        code, missing = code_of((home / name).read_text(encoding="utf-8"), set(names))
        assert not missing, f"{name}: has no {', '.join(sorted(missing))} any more"
        digests[name] = hashlib.sha256(code.encode()).hexdigest()
    return {"parser": PARSER, "sha256": digests}


def renewed(old, new, *, reads_the_same):
    """Return the next snapshot.

    Raises:
        ValueError: The code is another under the same name.
    """
    if old["sha256"] != new["sha256"] and old["parser"] == new["parser"] and not reads_the_same:
        raise ValueError(WHAT_TO_DO)
    return new


def test_no_change_of_the_parser_goes_without_its_name():
    """Else a calibration would hold for grades that were read by other rules."""
    assert reading_now() == json.loads(SNAPSHOT.read_text(encoding="utf-8")), WHAT_TO_DO


def test_a_changed_rule_is_another_code():
    """This is what the snapshot must see."""
    source = 'def f(a):\n    """Say."""\n    # Why.\n    return a >= 2\n\n\ndef g():\n    pass\n'

    assert code_of(source, {"f"}) != code_of(source.replace("2", "1"), {"f"})


def test_words_about_a_rule_and_other_rules_are_none_of_it():
    """A better docstring must not make calibrations stale."""
    source = 'def f(a):\n    """Say."""\n    # Why.\n    return a >= 2\n\n\ndef g():\n    pass\n'
    other = "def f( a ):\n    return a >= 2\n\n\ndef g():\n    return 1\n"

    assert code_of(source, {"f"}) == code_of(other, {"f"})


def test_a_snapshot_is_not_renewed_under_the_old_name():
    """Whoever changes a rule has to decide."""
    old = {"parser": "one", "sha256": {"a": "1"}}
    new = {"parser": "one", "sha256": {"a": "2"}}

    with pytest.raises(ValueError, match="raise PARSER"):
        renewed(old, new, reads_the_same=False)
    assert renewed(old, new, reads_the_same=True) == new
    assert renewed(old, {**new, "parser": "two"}, reads_the_same=False)["parser"] == "two"


if __name__ == "__main__":
    there = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    found = renewed(there, reading_now(), reads_the_same="--reads-the-same" in sys.argv)
    SNAPSHOT.write_text(f"{json.dumps(found, indent=2)}\n", encoding="utf-8")
