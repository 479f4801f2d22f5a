"""The card that a report opens with: what it comes to, drawn and in words."""

from typing import Final

from ragforge.evaluating.formatting import signed
from ragforge.report.decision import Decision, Difference
from ragforge.report.page.charts import WIDTH, Frame, Scale, framed
from ragforge.report.page.markup import Html, drawn_text, element, join, with_code

_HEIGHT: Final = 64
_LINE: Final = 34
_WHISKER: Final = 6
_ROOM: Final = 1.25
"""How far the axis goes beyond the interval."""
_WORDS: Final = {
    "winner": "Decided",
    "careful": "Not for sure",
    "tie": "No difference shown",
    "mixed": "Not decided",
    "unknown": "Unknown",
    "level": "One run",
}


def decision_card(decision: Decision) -> Html:
    """Return the card: outcome, interval, what it rests on, what to do next."""
    rests = [
        join([element("dt", name), element("dd", text)])
        for name, text in (("Measure", decision.measure), *decision.rests_on)
    ]
    return element(
        "section",
        element("p", _WORDS[decision.kind], class_="outcome"),
        element("h2", decision.headline, id="decision-title", dir="auto"),
        element(
            "div",
            element("div", *(element("p", text) for text in decision.found), class_="found"),
            difference_bar(decision.difference) if decision.difference else None,
            class_="why",
        ),
        element("dl", *rests),
        element("p", element("strong", "Next: "), *with_code(decision.next_step), class_="next"),
        id="decision",
        class_=f"decision is-{decision.kind}",
        aria_labelledby="decision-title",
    )


def difference_bar(difference: Difference) -> Html:
    """Return the interval of a difference about the line of no difference."""
    ends = difference.interval
    reach = _ROOM * max(abs(ends.low), abs(ends.high), abs(difference.value)) or 1.0
    across = Scale(-reach, reach, 8, WIDTH - 8)
    low, middle, high, zero = (
        f"{across.place(value):.1f}" for value in (ends.low, difference.value, ends.high, 0)
    )
    drawn = [
        element("line", class_="zero", x1=zero, x2=zero, y1=18, y2=50),
        element("line", class_="reach", x1=low, x2=high, y1=_LINE, y2=_LINE),
        *(
            element("line", class_="reach", x1=x, x2=x, y1=_LINE - _WHISKER, y2=_LINE + _WHISKER)
            for x in (low, high)
        ),
        element("circle", class_="middle", cx=middle, cy=_LINE, r=5),
        drawn_text("A better", class_="side of-a", x=8, y=12),
        drawn_text("same", class_="side", x=zero, y=12),
        drawn_text("B better", class_="side of-b", x=WIDTH - 8, y=12),
        drawn_text(signed(difference.value), class_="value", x=middle, y=62),
    ]
    title = f"{difference.b} (B) less {difference.a} (A)"
    told = f"{signed(difference.value)}, interval {signed(ends.low)} to {signed(ends.high)}"
    figure = framed(Frame("decision-bar", title, told, _HEIGHT), *drawn, class_="difference")
    caption = element(
        "figcaption",
        element("bdi", difference.b),
        " (B) less ",
        element("bdi", difference.a),
        " (A)",
    )
    return element("figure", caption, figure)
