# ruff: noqa: RUF001 -- signs of one script look like those of another; these are meant.

import pytest

from ragforge.stages.generate.gates.repeated_questions import Clash, QuestionsAsked, normal_question

LONG = "How do I {} redirects for every request of an async client in httpx {}?"


def test_the_same_but_for_case_and_signs_is_the_same():
    """Two equal queries would count twice in every mean."""
    taken = QuestionsAsked([("q1", "What is BM25?")])

    assert taken.clash("what is bm25 ??") == Clash("q1", "What is BM25?", 1.0, True)


def test_a_question_keeps_its_first_id():
    """The report names the one that is in the set."""
    taken = QuestionsAsked([("q1", "What is BM25?")])
    taken.add("q2", "What is BM25")

    assert len(taken) == 1
    assert taken.clash("What is BM25?").query_id == "q1"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (LONG.format("enable", "0.27"), LONG.format("can we enable", "0.27")[:-1]),
        (LONG.format("configure", "0.27"), LONG.format("set", "0.27")),
        (
            "Which clients keep the connections of the pool open for five seconds?",
            "Which client keep the connections of the pool open for five seconds?",
        ),
        (
            "What is the default timeout of the httpx client?",
            "What is the default timeout of the httpx client in total?",
        ),
        ("httpx 客户端的默认连接超时时间是多少？", "httpx 客户端的默认连接超时时间是多少呢？"),
        (
            "httpx のクライアントが保持するアイドル接続の数の上限はいくつですか？",
            "httpx のクライアントが保持するアイドル接続の数上限はいくつですか？",
        ),
        ("How does whale milk feed a calf?", "A calf: how does whale milk feed?"),
    ],
)
def test_nearly_the_same_is_found_either_way(first, second):
    """Two wordings of one question count twice as well."""
    for one, other in ((first, second), (second, first)):
        clash = QuestionsAsked([("q1", one)]).clash(other)
        similarity = clash.similarity if clash else 0.0
        assert similarity >= 0.8, (one, other)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (LONG.format("enable", "0.27"), LONG.format("enable", "0.28")),
        (LONG.format("enable", "0.27"), LONG.format("disable", "0.27")),
        (LONG.format("follow", "0.27"), LONG.format("not follow", "0.27")),
        (
            "What does the client do on a closed connection by default?",
            "What does the client not do on a closed connection by default?",
        ),
        (
            "What is the default of the max_connections argument of the limits class?",
            "What is the default of the max_keepalive argument of the limits class?",
        ),
        (
            "How many people lived in the capital of France in the year of the war?",
            "How many people lived in the capital of Spain in the year of the war?",
        ),
        (
            "How do I read a file line by line in a loop without errors?",
            "How do I read a file line by line in a loop without errors in Rust?",
        ),
        (
            "What should I know about mounting transports?",
            "What should I know about routing (mounting transports)?",
        ),
        ("What is the size of an int in C++?", "What is the size of an int in C#?"),
        ("如何在 httpx 客户端中启用自动重定向功能？", "如何在 httpx 客户端中禁用自动重定向功能？"),
        ("版本0.27中的默认连接超时时间是多少秒？", "版本0.28中的默认连接超时时间是多少秒？"),
    ],
)
def test_what_differs_in_a_number_a_name_or_a_negation_is_another_question(first, second):
    """Their answers differ, however much else they share."""
    assert QuestionsAsked([("q1", first)]).clash(second) is None
    assert QuestionsAsked([("q1", second)]).clash(first) is None


def test_the_nearest_is_named():
    """The reason shows the one a reader would call the same."""
    taken = QuestionsAsked(
        [
            ("q1", "What is the default timeout of the httpx client in total right here?"),
            ("q2", "What is the default timeout of an httpx client in total?"),
        ]
    )

    assert taken.clash("What is the default timeout of the httpx client in total?").query_id == "q2"


@pytest.mark.parametrize("question", ["", "???"])
def test_a_question_without_words_clashes_with_nothing(question):
    """It is turned away for its form, not as a copy."""
    assert QuestionsAsked([("q1", "What is BM25?")]).clash(question) is None


def test_the_normal_form_folds_case_signs_and_compatibility_forms():
    """It decides the id of a query, so that it may not depend on typography."""
    assert normal_question("  What's ﬁne, \u201cHTTP/2\u201d?") == "what's fine http 2"


def test_the_normal_form_keeps_languages_apart_that_differ_by_a_sign():
    """Else a question about C++ would have the id of one about C#."""
    assert len({normal_question(f"What is {name}?") for name in ("C", "C++", "C#")}) == 3
