from covey.policies import enough


def test_enough_is_ten_batches_or_one_percent():
    assert enough(5, 1000) == 50
    assert enough(5, 100_000) == 1000
    assert enough(5, 20) == 20
