from covey.report.figures import agreement_figure, slice_figure, way_figure
from covey.report.predictions import Calibration, Forecast, Pair

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
