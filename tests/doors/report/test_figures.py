from covey.report.card import card
from covey.report.figures import (
    agreement_figure,
    of_calibration,
    of_diversity,
    of_slice,
    of_way,
    slice_figure,
    way_figure,
)
from covey.report.predictions import Calibration, Coverage, Forecast, Pair
from covey.report.slices import Diversity, Near, Slice

AROUND = Forecast(1.0, 0.5, (0.7, 1.3), (0.2, 1.8))


def test_the_way_has_a_row_for_each_trial(card_of):
    found = way_figure(card_of("rising"))
    assert len(found.rows) == 27
    assert found.rows[0][1:3] == ("1", "failed")
    assert {row[1] for row in found.rows} == {"1", "2", "3", "4", "added", "enqueued"}


def test_a_long_way_is_cut_and_says_so(card_of):
    made = card_of("long")
    assert len(made.way) == 1000
    assert "Only the last" not in way_figure(made).words
    longer = type(made)(**{f: getattr(made, f) for f in made.__slots__} | {"way": made.way * 2})
    assert "Only the last 1000 of 2000 trials are drawn." in way_figure(longer).words


def test_pairs(card_of):
    found = agreement_figure(card_of("rising").calibration)
    assert len(found.rows) == len(card_of("rising").calibration.pairs) == 8
    assert agreement_figure(Calibration((), (), "")) is None
    many = tuple(Pair(i, 1, AROUND, 1.0, 0.0) for i in range(400))
    assert "Only the last 300 are drawn." in agreement_figure(Calibration(many, (), "")).words


def test_options_are_numbered_in_the_table(card_of):
    by_name = {one.name: slice_figure(one, i) for i, one in enumerate(card_of("rising").slices, 1)}
    assert by_name["opt"].head[0] == "no."
    assert [row[:2] for row in by_name["opt"].rows] == [("1", "adam"), ("2", "sgd"), ("3", "lion")]
    assert by_name["lr"].head[0] == "lr"
    assert len({figure.name for figure in by_name.values()}) == 3


# Summaries in a sentence


def test_the_way(card_of, line):
    up, down = of_way(card_of("rising")), of_way(card_of("falling"))
    assert "(larger is better)" in up
    assert "(smaller is better)" in down
    assert "; no value of 2 pending, 3 failed." in up
    line.tell(line.ask(2), [3.0, 3.0])
    assert of_way(card(line)).startswith("Over 1 lot of points the best value stayed at 3 ")
    line.tell(line.ask(1), [4.5])
    assert "went from 3 to 4.5" in of_way(card(line))


def test_a_way_without_values(line):
    line.fail(line.ask(2))
    assert of_way(card(line)) == "2 trials, none told yet; no value of 2 failed."


def test_coverage_stands_beside_what_is_expected():
    found = Calibration((), (Coverage(0.5, 7, 16), Coverage(0.9, 14, 16)), "")
    assert "7 of 16 (44 %) inside the 50 % band, 8 expected" in of_calibration(found)
    assert "14 of 16 (88 %) inside the 90 % band, 14.4 expected" in of_calibration(found)


def test_a_slice():
    low, high = (Forecast(m, 0.1, (m, m), (m, m)) for m in (1.0, 3.0))
    one = Slice("a<b", True, False, (0.0, 1.0), (low, high), 1.0, 2.0, 3)
    assert of_slice(one) == (
        "Along a<b the expected value runs from 1 to 3; the best point has 1. 3 values not shown."
    )


def test_diversity_is_stated_even_if_there_is_nothing_to_compare():
    assert of_diversity(Diversity(1, 2, None, None, None, 0, 0)) == [
        "Duplicates in the batch: 0. Points that repeat an earlier one: 0."
    ]
    lines = of_diversity(Diversity(3, 2, Near(0.12345, 4, 6), 0.5, Near(0.25, 5, 1), 0, 0))
    assert "trials 4 and 6, 0.123 apart" in lines[0]
    assert "trial 5, 0.25 from trial 1" in lines[1]
