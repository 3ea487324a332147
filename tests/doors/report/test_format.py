import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import several
from covey.report.format import plus_minus, share_of, shown, significant


@given(st.floats(-1e300, 1e300), st.integers(3, 8))
def test_a_number_reads_back_to_so_many_digits(x, digits):
    assert float(significant(x, digits)) == pytest.approx(
        x, rel=0.6 * 10.0 ** (1 - digits), abs=5e-324
    )


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.0, "0"), (-0.0, "0"), (84.1234, "84.12"), (100000.0, "100000"), (-2e-7, "-2e-07")],
)
def test_numbers_without_powers_of_ten_where_possible(x, text):
    assert significant(x) == text


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (82.94, 3.14, "82.9 ± 3.1"),
        (-0.0001, 0.01, "0.000 ± 0.010"),
        (5.0, 0.0, "5 ± 0"),
        (1e100, 2e99, "1e+100 ± 2e+99"),
        (1.0, 1e-12, "1.00000000 ± 0.00000000"),
    ],
)
def test_a_mean_has_the_decimals_of_its_deviation(mean, std, text):
    assert plus_minus(mean, std) in (text, "-" + text)


def test_counts():
    assert share_of(0, 0) == "0 of 0"
    assert share_of(1, 3) == "1 of 3 (33 %)"
    assert (several(1, "point"), several(0, "batch")) == ("1 point", "0 batches")


@given(st.text())
def test_what_is_shown_prints_and_is_short(text):
    out = shown(text)
    assert out.isprintable()
    assert len(out) <= 80 * 10


def test_values_of_every_kind():
    assert shown("a\x1b[31mb\u202e") == "a\\x1b[31mb\\u202e"
    assert shown("x" * 200) == "x" * 79 + "…"
    assert shown(True) == "True"
    assert shown(len) == "<built-in function len>"
    assert shown(_named) == "_named"
    assert "0x" not in shown(object())
    assert shown((1, 2)) == "(1, 2)"


def _named():
    """A function shows its name, not its address."""
