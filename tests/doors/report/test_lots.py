import covey
from covey.history import Asked, History, Point
from covey.report.batches import looked_at, recent


def test_lots_follow_the_log(rising):
    lots = rising.history.batches
    assert [lot.name for lot in lots] == [
        "batch 1",
        "batch 2",
        "added",
        "enqueued",
        "batch 3",
        "batch 4",
    ]
    assert [i for lot in lots for i in lot.ids] == list(range(len(rising.history)))
    assert [lot.modelled for lot in lots] == [False, False, False, False, True, True]
    for lot in lots:
        assert rising.history.events[lot.place].points[0] == rising.history.trial(lot.first).point


def test_the_open_lots_are_looked_at(rising, line):
    lots = rising.history.batches
    assert looked_at(lots, rising.history.trials) == lots[-1:]
    assert looked_at((), ()) == ()
    first, second = line.ask(2), line.ask(2)
    line.tell(second, [1.0, 2.0])
    line.tell(first[0], 1.0)
    lots = line.history.batches
    assert looked_at(lots, line.history.trials) == lots[:1]
    line.tell(first[1], 1.0)
    line.add([{"x": 0.5}], [1.0])
    lots = line.history.batches
    assert looked_at(lots, line.history.trials) == lots[1:2]


def test_only_results_from_elsewhere_are_looked_at_if_nothing_was_asked(line):
    line.add([{"x": 0.5}], [1.0])
    lots = line.history.batches
    assert looked_at(lots, line.history.trials) == lots


def asked(size):
    return Asked(tuple(Point(x=i / size) for i in range(size)), "auto", ({"any": 1.0},))


def test_twelve_batches_or_forty_eight_points_are_recent():
    big = History([asked(16)] * 20).batches
    assert recent(big) == big[-12:]
    small = History([asked(1)] * 100).batches
    assert recent(small) == small[-48:]
    assert recent(covey.History().batches) == ()
