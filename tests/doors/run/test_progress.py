from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import covey
from covey.run import Progress, run

SPACE = covey.Space({"x": covey.Real(-1.0, 1.0)})


def test_a_run_says_how_far_it_is():
    study = covey.Study(SPACE, goal="min", seed=0)
    study.add([{"x": 0.9}], [0.81])  # from elsewhere: not part of the run
    seen: list[Progress] = []
    with ThreadPoolExecutor(1) as pool:
        run(study, lambda p: p["x"] ** 2, batch=3, rounds=2, workers=pool, watch=seen.append)
    assert {progress.total for progress in seen} == {6}
    done = [progress.done for progress in seen]
    assert done == sorted(done)
    assert done[-1] == 6
    assert seen[-1].best == study.best.value
    assert seen[-1].left == 0.0
    assert seen[-1].waiting_for == "nothing more"
    some = next(progress for progress in seen if progress.running)
    assert "of this batch (trial" in some.waiting_for
    assert some.failed == 0
