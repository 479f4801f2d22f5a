import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.files.formats.query_log import Masked, masked


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("mail ann.lee+x@mail.example.org please", "mail [e-mail] please"),
        ("call +49 30 1234567 now", "call [number] now"),
        ("call (555) 123-4567", "call [number]"),
        ("030 / 123 45 67?", "[number]?"),
        ("SSN 123-45-6789", "SSN [number]"),
        ("policy 12-3456-789-0", "policy [number]"),
        ("order 12345678 is late", "order [number] is late"),
        ("card 1234 5678 9012 3456", "card [number]"),
        ("IBAN DE12 5001 0517 0648 4898 90", "IBAN [number]"),
    ],
)
def test_traces_of_people_are_taken_out(text, left):
    """A published set must not name who asked."""
    assert masked(text) == Masked(left, 1)


@pytest.mark.parametrize(
    "text",
    [
        "since 2024-01-15, 15.01.2024 or 01-02-2024",
        "upgrade 0.27.2 to 0.28.0",
        "pages 10-20, 1-2-3, 2023-2024 or at 2024-1-5",
        "bind to 127.0.0.1:8080 and 192.168.100.200",
        "error 404, limit 100000",
        "use @pytest.fixture or user@host",
        "SHA256 of python3.11",
    ],
)
def test_dates_versions_and_addresses_of_machines_stay(text):
    """Questions about them would mean nothing without."""
    assert masked(text) == Masked(text, 0)


@given(st.text(max_size=300))
def test_masking_again_changes_nothing(text):
    """The same log must give the same file, also from its own output."""
    once = masked(text).text

    assert masked(once).text == once
