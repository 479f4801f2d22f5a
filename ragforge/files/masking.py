"""Taking out of a question what may say who asked it: addresses, and numbers of people."""

import re
from dataclasses import dataclass
from typing import Final

E_MAIL: Final = "[e-mail]"
NUMBER: Final = "[number]"
_E_MAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_NUMBER = re.compile(
    r"(?<![\w.])(?:"
    r"\+\d[\d ()./-]{5,20}\d"  # +49 30 123456
    r"|\(?0\d{2,5}\)?[ /-]{1,3}\d[\d /-]{3,15}\d"  # 030 / 123 456
    r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}"  # (555) 123-4567
    r"|\d{4}(?:[ -]\d{4}){2,3}(?:[ -]\d{1,4})?"  # 1234 5678 9012 3456
    r"|[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?"  # DE00 0000 0000 0000 0000 00
    r"|(?!(?:\d{4}-\d\d?-\d\d?|\d\d?-\d\d?-\d{4})(?!-?\d))"  # no date, but 123-45-6789:
    r"(?=(?:\d-?){7})\d+(?:-\d+){2,}"
    r"|\d{7,}"
    r")(?!\w)"
)


@dataclass(frozen=True, slots=True)
class Masked:
    """A text, and how much was taken out of it."""

    text: str
    n: int


def masked(text: str) -> Masked:
    """Return a text with e-mail addresses, and numbers of telephones, cards and customers, masked.

    Numbers of seven digits and more are taken for such. Dates, versions and IP addresses stay, and
    so do names: no pattern tells those.
    """
    text, n_addresses = _E_MAIL.subn(E_MAIL, text)
    text, n_numbers = _NUMBER.subn(NUMBER, text)
    return Masked(text, n_addresses + n_numbers)
