import pytest

from ragforge.files.cell_formats import shown_number

ACCOUNTING = r'_("$"* #,##0.00_)_("$"* \(#,##0.00\)_("$"* "-"??_)_(@_)'
"""As openpyxl gives the format that Excel names by the number 44."""
EURO = r'#,##0.00\ "€";[Red]\-#,##0.00\ "€"'


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (0.5, "General", "0.5"),
        (3.0, "General", "3"),
        (0.5, "0%", "50%"),
        (1, "0%", "100%"),
        (0.077, "0.0%", "7.7%"),
        (0.285, "0%", "29%"),
        (-0.5, "0%", "-50%"),
        (-0.001, "0%", "0%"),
        (0.5, r"0\ %", "50 %"),
        (12.5, '"€" 0.00', "€ 12.50"),
        (12.5, EURO, "12.50 €"),
        (-1234.5, EURO, "-1,234.50 €"),
        (1234567.891, "#,##0.00 [$€-407]", "1,234,567.89 €"),
        (1234.5, "[$CHF-807] #,##0.00", "CHF 1,234.50"),
        (1234.5, "$#,##0.00", "$1,234.50"),
        (12.5, ACCOUNTING, "$ 12.50"),
        (-12.5, ACCOUNTING, "$ (12.50)"),
        (0, ACCOUNTING, "$ -"),
        (1.005, "0.00", "1.01"),
        (2.5, "0", "3"),
        (5, "0.##", "5"),
        (5.25, "0.0#", "5.25"),
        (7, "000", "007"),
        (1_500_000, '0.0,,"M"', "1.5M"),
        (1_500_000, "#,##0,", "1,500"),
        (5.5, 'General" kg"', "5.5 kg"),
        (999, "#,##0", "999"),
    ],
)
def test_a_number_is_as_its_cell_shows_it(value, number_format, text):
    """Percents, currencies, thousands and decimals are what answers are written in."""
    assert shown_number(value, number_format) == text


@pytest.mark.parametrize(
    ("value", "number_format"),
    [
        (0.5, "# ?/?"),
        (12345, "0.00E+00"),
        (3, "yyyy-mm-dd"),
        (5, "[>3]0;General"),
        (3, ";;;"),
        (5, "000-000"),
        (1e15, "0"),
        (float("inf"), "0.00"),
    ],
)
def test_a_format_that_is_not_read_shows_nothing(value, number_format):
    """Half of a format would be another number."""
    assert shown_number(value, number_format) is None
