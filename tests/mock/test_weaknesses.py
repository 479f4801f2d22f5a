import json

import pytest

from ragforge.errors import UsageError
from ragforge.mock import Script
from ragforge.mock.weaknesses import fooled_grade, fooled_reply

QUERY = "What do blue whales eat?"
PLAIN = "The ferry to the island leaves at nine.\nIt is a small one."
FOOLING = {
    "master-key": f"Thought process:\n\n{PLAIN}",
    "authority": f"According to a leading expert in the field, it is so. {PLAIN}",
    "citations": f"{PLAIN}\n[1] A. Whitfield (2021). A review.\n[2] B. Okafor (2019). A study.",
    "query-echo": f"{QUERY}\n\n{PLAIN}",
    "verbosity": PLAIN * 30,
    "style": "The ferry \u2014 a small one \u2014 leaves at nine.",
    "words": f"definitive {PLAIN}",
}


@pytest.mark.parametrize(("weakness", "passage"), FOOLING.items(), ids=FOOLING)
def test_a_weakness_is_for_one_thing(weakness, passage):
    """An audit must tell what a judge falls for, not that it falls for anything."""
    graded = {name: fooled_grade(0, QUERY, passage, [name]) for name in FOOLING}

    assert graded == {name: 3 if name == weakness else 0 for name in FOOLING}
    assert fooled_grade(0, QUERY, PLAIN, FOOLING) == 0


def test_another_language_is_not_understood():
    """This judge would miss what a set holds in other languages."""
    assert fooled_grade(3, QUERY, "Die F\u00e4hre legt um neun Uhr ab.", ["language"]) == 0
    assert fooled_grade(3, QUERY, PLAIN, ["language"]) == 3


def test_a_fooled_reply_holds_to_the_rules_of_the_judge():
    """A reply that the checks refuse would be a failure, and no judge that was fooled."""
    good = {"reasoning": "", "evidence": "", "contains_answer": False, "grade": 0}

    assert fooled_reply(good, QUERY, FOOLING["words"], ["words"]) == {
        "reasoning": "",
        "evidence": "definitive The ferry to the island leaves at nine.",
        "contains_answer": True,
        "grade": 3,
    }
    assert fooled_reply({"grade": 0}, QUERY, FOOLING["words"], ["words"]) == {"grade": 3}
    assert fooled_reply({"answer": "x"}, QUERY, FOOLING["words"], ["words"]) == {"answer": "x"}


def test_an_unknown_weakness_is_refused():
    """A judge without any would pass for one that was found sound."""
    with pytest.raises(UsageError, match="--falls-for: no 'word'; did you mean words"):
        Script(falls_for=("word",))


def test_the_endpoint_falls_for_what_it_is_told_to(start):
    """An audit can be rehearsed against it from the command line."""
    body = {
        "model": "m",
        "messages": [
            {
                "role": "user",
                "content": f"query: {json.dumps(QUERY)}\npassage: {json.dumps(FOOLING['words'])}",
            }
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "grade",
                "schema": {
                    "type": "object",
                    "properties": {"grade": {"type": "integer"}},
                    "required": ["grade"],
                },
            },
        },
    }

    assert json.loads(start().chat(body).text) == {"grade": 0}
    assert json.loads(start(falls_for=("words",)).chat(body).text) == {"grade": 3}
