"""Questions that headings of manuals stand for."""

import pytest

from ragforge.stages.generate.heading_questions import heading_question


@pytest.mark.parametrize(
    ("heading", "title", "question"),
    [
        ("Add types", "Python Types Intro", "How do I add types (Python Types Intro)?"),
        ("Declaring types", "", "How do I declare types?"),
        ("Running tests", "Guide", "How do I run tests (Guide)?"),
        ("Enabling TLS", "", "How do I enable TLS?"),
        ("Import a certificate", "TLS", "How do I import a certificate (TLS)?"),
        ("How to lock a thread", "", "How do I lock a thread?"),
        ("Limitations", "Rate limits", "What are the limitations of rate limits?"),
        ("Installation", "FastAPI", "How do I install FastAPI?"),
        ("tls_min_version", "TLS", "What does tls_min_version do (TLS)?"),
        ("--max-connections", "", "What does --max-connections do?"),
        ("Threads vs. processes", "", "What is the difference between threads and processes?"),
        ("Import maps", "", "What should I know about import maps?"),
        ("String formatting", "", "What should I know about string formatting?"),
        ("OpenAPI", "", "What should I know about OpenAPI?"),
        ("Timeouts and retries", "", "What should I know about timeouts and retries?"),
    ],
)
def test_heading_is_asked_as_a_user_asks(heading, title, question):
    """A set of stilted questions says little about a search that people use."""
    asked = heading_question(heading, title)

    assert asked is not None
    assert asked.text == question


@pytest.mark.parametrize("heading", ["Recap", "Technical Details", "See also", "FAQ", "Check it"])
def test_heading_that_says_nothing_is_not_asked(heading):
    """It stands on every page."""
    assert heading_question(heading, "Guide") is None
