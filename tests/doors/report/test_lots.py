import covey
from covey.history import Asked, History, Point
from covey.report.batches import recent, shown_batches


def test_lots_follow_the_log(rising):
    batches = rising.history.batches
    assert [batch.name for batch in batches] == [
        "batch 1",
        "batch 2",
        "added",
        "enqueued",
        "batch 3",
        "batch 4",
    ]
    assert [i for batch in batches for i in batch.ids] == list(range(len(rising.history)))
    assert [batch.modelled for batch in batches] == [False, False, False, False, True, True]
    for batch in batches:
        assert (
            rising.history.events[batch.place].points[0] == rising.history.trial(batch.first).point
        )


def test_the_open_lots_are_looked_at(rising, line):
    batches = rising.history.batches
    assert shown_batches(batches, rising.history.trials) == batches[-1:]
    assert shown_batches((), ()) == ()
    first, second = line.ask(2), line.ask(2)
    line.tell(second, [1.0, 2.0])
    line.tell(first[0], 1.0)
    batches = line.history.batches
    assert shown_batches(batches, line.history.trials) == batches[:1]
    line.tell(first[1], 1.0)
    line.add([{"x": 0.5}], [1.0])
    batches = line.history.batches
    assert shown_batches(batches, line.history.trials) == batches[1:2]


def test_only_results_from_elsewhere_are_looked_at_if_nothing_was_asked(line):
    line.add([{"x": 0.5}], [1.0])
    batches = line.history.batches
    assert shown_batches(batches, line.history.trials) == batches


def asked(size):
    return Asked(tuple(Point(x=i / size) for i in range(size)), "auto", ({"any": 1.0},))


def test_twelve_batches_or_forty_eight_points_are_recent():
    big = History([asked(16)] * 20).batches
    assert recent(big) == big[-12:]
    small = History([asked(1)] * 100).batches
    assert recent(small) == small[-48:]
    assert recent(covey.History().batches) == ()
