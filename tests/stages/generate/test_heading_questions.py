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
        ("Resetting passwords", "", "How do I reset passwords?"),
        ("Opening hours", "", "What should I know about opening hours?"),
        ("Working hours", "", "What should I know about working hours?"),
        ("Open source licenses", "", "What should I know about open source licenses?"),
        ("Open a terminal", "", "How do I open a terminal?"),
        ("Trouble with logins", "", "What can I do about trouble with logins?"),
        ("Setting and disabling timeouts", "", "How do I set and disable timeouts?"),
        ("Adding and frobbing", "", "How do I go about adding and frobbing?"),
        ("Delete your account", "", "How do I delete my account?"),
        ("What a return costs", "Returns", "What does a return cost (Returns)?"),
        ("What seasoning is", "", "What is seasoning?"),
        ("How the refund is paid", "", "How is the refund paid?"),
        ("How long delivery takes", "", "How long does delivery take?"),
        ("Training and development", "", "What should I know about training and development?"),
        ("Why we renewed old cards", "", "What should I know about why we renewed old cards?"),
        ("When a policy applies", "", "When does a policy apply?"),
        ("How prices work", "", "How do prices work?"),
        ("How it works", "Larkspur Circle", "How does Larkspur Circle work?"),
        (
            "If the item does not fit",
            "Delivery",
            "What happens if the item does not fit (Delivery)?",
        ),
        ("Returns", "get_user()", "What does get_user() return?"),
        ("Returns", "Gift cards", "What should I know about returns (Gift cards)?"),
        ("Shipping policy 2025", "", "What should I know about shipping policy 2025?"),
        ("Cooking with acids", "Pans", "How do I go about cooking with acids (Pans)?"),
        ("Error when joining", "Rooms", "What can I do about an error when joining (Rooms)?"),
        ("TLS errors with proxies", "", "What can I do about TLS errors with proxies?"),
        ("Import a certificate", "TLS", "How do I import a certificate (TLS)?"),
        ("How to lock a thread", "", "How do I lock a thread?"),
        ("Limitations", "Rate limits", "What are the limitations of rate limits?"),
        ("Setup", "How to use TLS", "What should I know about setup (How to use TLS)?"),
        ("Usage", "What is TLS?", "What should I know about usage (What is TLS?)?"),
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
    asked = heading_question(heading, title, "Locks are taken in their order.")

    assert asked is not None
    assert asked.text == question


@pytest.mark.parametrize(
    "heading",
    ["Recap", "Welcome!", "Technical Details", "See also", "FAQ", "Check it", "F to M", "Fixed"],
)
def test_heading_that_says_nothing_is_not_asked(heading):
    """It stands on every page."""
    assert heading_question(heading, "Guide", "Locks end.") is None


def test_a_heading_is_the_subject_of_what_goes_on_from_it():
    """References say of each name what it does, without saying the name again."""
    asked = heading_question("pytest-httpx", "Packages", "Provides a fixture for tests.")

    assert asked is not None
    assert asked.text == "What does pytest-httpx provide (Packages)?"
