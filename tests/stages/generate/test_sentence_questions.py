"""Questions that sentences answer by their form."""

import pytest

from ragforge.stages.generate.sentence_questions import continued_heading, sentence_question


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("To disable timeouts, pass `timeout=None`.", "How do I disable timeouts?"),
        ("To rotate keys you need a second one.", "How do I rotate keys?"),
        ("In order to renew a token, send the old one.", "How do I renew a token?"),
        ("If you want to mount an app, give its path.", "How do I mount an app?"),
        ("You can limit your pool by passing a number.", "How do I limit my pool?"),
        ("You can also install the client using pip.", "How do I install the client?"),
        ("Use `--verbose` to see all requests.", "How do I see all requests?"),
        ("If the token has ended, a new one is asked for.", "What happens if the token has ended?"),
        ("When a job fails, it is tried again.", "What happens when a job fails?"),
        ("If the pool is full, the request waits.", "What happens if the pool is full?"),
        ("Parity also refers to the sum of all bits.", "What does Parity mean?"),
        ("The `history` of a reply can be used to see where it came from.",
         "What can the history of a reply be used for?"),
        ("Stamped concrete is commonly used for patios.", "What is Stamped concrete used for?"),
        ("Hooks are called before the body is read.", "When are Hooks called?"),
        ("The reply will be sent when the queue is empty.", "When will the reply be sent?"),
        ("A lock is not released until its thread ends.", "When is a lock not released?"),
        ("Bluetooth was introduced in May 1998.", "When was Bluetooth introduced?"),
        ("The pages are located under `docs/`.", "Where are the pages located?"),
        ("Refunds are paid within fourteen days of the return.",
         "Within what time are Refunds paid?"),
        ("The library can be configured via the environment.",
         "How can the library be configured?"),
        ("Hooks must always be set as a list.", "How must Hooks be set?"),
        ("Uploads are limited to ten megabytes each.", "What are Uploads limited to?"),
        ("The default timeout is five seconds.", "What is the default timeout?"),
        ("The request is rejected because its token has ended.", "Why is the request rejected?"),
        ("Jamaica is popular mainly because of its weather.", "Why is Jamaica popular?"),
        ("The connect timeout specifies how long a connection may take.",
         "What does the connect timeout specify?"),
        ("The mounts dictionary maps patterns to transports.",
         "What does the mounts dictionary do?"),
        ("By default, the client uses certificates of certifi.",
         "What does the client use by default?"),
        ("A [mutex](locks.md) is a lock that one thread holds.", "What is a mutex?"),
        ("The `RequestError` class is a base of all others.", "What is the RequestError class?"),
    ],
)  # fmt: skip
def test_a_form_answers_its_question(sentence, question):
    """What is asked stands before what answers it."""
    asked = sentence_question(sentence, sentence)

    assert asked is not None
    assert asked.text == question


@pytest.mark.parametrize(
    "sentence",
    [
        "Takes a YAML value and returns the number of it.",
        "If `*` is in the list of names, no name is looked up.",
        "To do so, pass None as the timeout.",
        "To the left, click the button named Save.",
        "To be safe, the operator must restart the server.",
        "To use it, pass None as the timeout.",
        "To recap, threads take locks and give them back.",
        "To learn more about timeouts, see the guide of the client.",
        "If you need to tune requests, see the request instances.",
        "If you use a proxy, set its address first.",
        "If a word, number or sign in it is another one, the quote is none.",
        "This option controls how long a connection may take.",
        "The connect timeout controls these things and many others.",
        "The method returns the response of the server.",
        "HTTPX supports many kinds of authentication.",
        "The server returns policy that all of them hold to.",
        "The axon is not an axon because it is long.",
        "Its fame is partially because of the weather.",
        "Values are based on a 2000 calorie diet for adults.",
        "A corpus is looked through in half a minute.",
        "Queries are asked once, and never more than that.",
        "Every reply is stored on the disk of the machine.",
        "The default behaviour is to raise an error.",
        "Another drawer contains figures of all kinds.",
        "Failed is a retriever that fails on all queries.",
        "Finding the evidence is one thing, and answering another.",
        "Usually the path is a folder of documents.",
        "In the last version the flag is a number that nobody gave.",
        "Learn how polishing produces floors with a gloss.",
        "The three that you upload are kept until they end.",
        "To new customers, a discount is offered on the first order.",
        "To many people, old designs look better than new ones.",
        "To sum up the results, the tests passed on all systems.",
        "If you need to work on weekends, overtime is paid.",
        "You can never change the name by editing the file.",
        "You can pay by card or by using cash.",
        "Use of a car to commute is not covered.",
        "Use it to reset the password of the account.",
        "If the pump leaks, replace the seal.",
        "When the pool was closed, the team was on leave.",
        "The maximum size is set by the admin.",
        "The required documents are shown on page 3.",
        "The required documents are listed below.",
        "Fees are not refunded unless required by law.",
        "Refunds are not paid within 30 days.",
        "Users are used to the old design of the page.",
        "The street was named after a poet of the town.",
        "The term is defined in section 2 of the contract.",
        "Passwords are stored in hashed form for a year.",
        "The book was written in 1999 pages.",
        "The town is affected by flooding in spring.",
        "The fee must be paid as soon as possible.",
        "The Provider is the company named above.",
        "The reason is the high cost of tickets in summer.",
        "Table 2 is a list of all errors of the client.",
        "Behind the scenes is a queue that holds all jobs.",
        "Everyone is a user of the product.",
        "My boss is the best person in the world.",
        "Her daughter is a chemist of great fame in France.",
        "Choose a pan whose base covers the ring on the glass.",
        "A pocket-spring mattress manages with five centimetres.",
        "A parallelogram can be considered as a kind of trapezoid.",
        "When the rationing of food started, the rich had more money.",
        '"" is a text of no length in most languages.',
    ],
)
def test_other_sentences_ask_nothing(sentence):
    """A question that stands for something else than its answer misjudges every search."""
    assert sentence_question(sentence, sentence) is None


def test_a_word_that_the_text_has_in_small_letters_is_no_name():
    """Names keep the capital that a sentence gives to any first word."""
    sentence = "Hooks are called before the body is read."

    assert sentence_question(sentence, "Set hooks first.").text == "When are hooks called?"
    titled = "Lock Manager manages the locks of all threads."
    assert sentence_question(titled, "Take a lock.").text == "What does Lock Manager do?"


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("Provides a fixture for tests.", "What does pytest-x provide?"),
        ("Wraps a client for tests.", "What does pytest-x do?"),
        ("A library for tests of clients.", "What is pytest-x?"),
        ("A normalized, IDNA supporting URL.", "What is pytest-x?"),
        ("A library is a thing to load.", ""),
        ("A refund goes back to the card.", ""),
        ("Tests take a fixture from it.", ""),
        ("Lists of tests are read first.", ""),
    ],
)
def test_a_sentence_without_subject_goes_on_from_its_heading(answer, question):
    """References write so."""
    assert continued_heading("pytest-x", answer) == question


def test_a_fragment_under_a_clause_says_nothing_of_it():
    """`What is the pan heats unevenly?` is no question either."""
    assert continued_heading("the pan heats unevenly", "A base that was bent by heat.") == ""


def test_a_fragment_under_a_plural_says_one_of_several():
    """`What is features?` is no question."""
    assert continued_heading("features", "A broadly compatible API.") == ""
