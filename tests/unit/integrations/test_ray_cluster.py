"""CoveySearch under a real Ray: one for all tests, four logical CPUs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey import Real, Space, Study
from covey.history import Told

pytest.importorskip("ray.tune", reason="pip install 'covey[ray]'")

import ray
from ray import tune
from tests.unit.integrations.ray_searches import PARAMS

from covey.integrations.ray import CoveySearch


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    quiet = {
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    }
    with pytest.MonkeyPatch.context() as environment:
        for name, value in quiet.items():
            environment.setenv(name, value)
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        yield
        ray.shutdown()


def tuner(trainable: object, search: CoveySearch, storage: Path, **options: object) -> tune.Tuner:
    return tune.Tuner(
        trainable,
        param_space=options.pop("param_space", PARAMS),
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            search_alg=search,
            num_samples=options.pop("num_samples"),
            max_concurrent_trials=options.pop("together", 2),
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(name="run", storage_path=str(storage), verbose=0, **options),
    )


def meeting(place: Path, together: int) -> object:
    """A trainable whose trials wait for each other, so that it ends only if they run together."""

    def trainable(config: dict) -> dict:
        import time
        import uuid

        here = place / uuid.uuid4().hex
        here.touch()
        mine = len(list(place.iterdir()))
        enough = -(-mine // together) * together
        deadline = time.monotonic() + 60
        while len(list(place.iterdir())) < enough:
            if time.monotonic() > deadline:
                raise TimeoutError("the others did not come")
            time.sleep(0.02)
        return {"loss": (config["x"] - 0.3) ** 2 + (config["model"]["kind"] == "b")}

    return trainable


def test_four_trials_run_together_and_their_points_are_those_of_a_study(cluster, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    search = CoveySearch(seed=0)
    results = tuner(meeting(place, 4), search, tmp_path, num_samples=8, together=4).fit()
    assert results.num_errors == 0
    events = search.study.history.events
    assert [type(event).__name__ for event in events].count("Told") == 8
    again = Study(search.study.space, "min", seed=0)  # the same order gives the same points
    for event in events:
        if isinstance(event, Told):
            again.tell(event.ids[0], event.values[0])
        else:
            assert again.ask(1)[0].point == event.points[0]
    assert {r.config["epochs"] for r in results} == {10}
    best = results.get_best_result()
    assert best.metrics["loss"] == search.study.best.value < 0.05


class Interruption(tune.Callback):
    """Presses Ctrl+C when a number of trials are complete, once."""

    def __init__(self, after: int, mark: Path) -> None:
        self.left, self.mark = after, mark

    def on_trial_complete(
        self, iteration: int, trials: list, trial: object, **info: object
    ) -> None:
        self.left -= 1
        if self.left == 0 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGINT)


def slow(config: dict) -> dict:
    import time

    time.sleep(0.2)
    return {"loss": (config["x"] - 0.3) ** 2 + (config["model"]["kind"] == ["b"])}


def test_an_interrupted_run_goes_on_with_the_points_it_had(cluster, tmp_path):
    search = CoveySearch(seed=0)
    params = {"x": tune.uniform(0, 1), "model": {"kind": tune.choice([["a"], ["b"]])}}
    stop = Interruption(5, tmp_path / "interrupted")
    tuner(slow, search, tmp_path, num_samples=8, callbacks=[stop], param_space=params).fit()
    assert 5 <= len(search.study.history.told) < 8
    results = tune.Tuner.restore(str(tmp_path / "run"), slow).fit()
    assert len(results) == results.num_terminated == 8
    again = CoveySearch()
    again.restore_from_dir(str(tmp_path / "run"))
    assert len(again.study.history.told) == len(again.study.history.trials) == 8
    assert len({str(trial.point) for trial in again.study.history.trials}) == 8


def test_failures_and_the_end_of_a_finite_space(cluster, tmp_path):
    def trainable(config: dict) -> dict:
        if config["n"] == 1:
            raise RuntimeError("this one crashes")
        return {"loss": float("nan") if config["n"] == 2 else config["n"]}

    search = CoveySearch(seed=0)
    params = {"n": tune.randint(0, 5)}
    results = tuner(trainable, search, tmp_path, num_samples=20, param_space=params).fit()
    assert len(results) == 5
    assert results.num_errors == 1
    ended = {t.point["n"]: (t.status, t.value) for t in search.study.history.trials}
    assert ended == {
        0: ("told", 0.0),
        1: ("failed", None),
        2: ("failed", None),
        3: ("told", 3.0),
        4: ("told", 4.0),
    }


def test_a_space_in_two_places_is_refused_by_ray(cluster, tmp_path):
    search = CoveySearch(Space({"y": Real(0, 1)}), "loss", "min")
    with pytest.raises(ValueError, match="already instantiated with a search space"):
        tuner(slow, search, tmp_path, num_samples=1).fit()
