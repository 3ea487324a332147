"""CoveySampler with several workers: threads, and processes that share a storage."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")


from tests.unit.integrations.optuna_studies import SQUARE, bowl, points

from covey.integrations.optuna import CoveySampler

# Two that choose at one moment from different results may meet, and here all choose all the time:
# the objectives take none.
MOST_SHARED = 2


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_hardly_ever_share_a_point(threads):
    study = optuna.create_study(sampler=CoveySampler(seed=0, search_space=SQUARE))
    study.optimize(bowl, n_trials=8 * threads // 3, n_jobs=threads)
    assert len(set(points(study.trials))) >= len(study.trials) - MOST_SHARED


def test_workers_that_share_a_seed_do_not_share_their_first_draws():
    study = optuna.create_study(sampler=CoveySampler(seed=0))
    twin = optuna.load_study(
        study_name=study.study_name, storage=study._storage, sampler=CoveySampler(seed=0)
    )
    first, second = study.ask(SQUARE), twin.ask(SQUARE)
    assert not set(first.params.values()) & set(second.params.values())


WORKER = """
import json, sys, threading, time
from pathlib import Path
import optuna
from covey.integrations.optuna import CoveySampler

kind, folder, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
optuna.logging.set_verbosity(optuna.logging.ERROR)
if kind == "sqlite":
    storage = optuna.storages.RDBStorage(
        f"sqlite:///{folder / 'study.db'}", engine_kwargs={"connect_args": {"timeout": 60}}
    )
else:
    log = optuna.storages.journal.JournalFileBackend(str(folder / "study.log"))
    storage = optuna.storages.JournalStorage(log)
space = {
    "x": optuna.distributions.FloatDistribution(0.0, 1.0),
    "k": optuna.distributions.CategoricalDistribution([None, True, "a", 2.5]),
}
sampler = CoveySampler(seed=0, search_space=space)
study = optuna.load_study(study_name="shared", storage=storage, sampler=sampler)

def ask(gate, asked):
    gate.wait()
    asked.append(study.ask(space))

for wave in range(2):
    (folder / f"ready-{wave}-{name}").touch()
    while len(list(folder.glob(f"ready-{wave}-*"))) < 2:
        time.sleep(0.001)
    gate, asked = threading.Barrier(4), []
    threads = [threading.Thread(target=ask, args=(gate, asked)) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for trial in asked:
        study.tell(trial, trial.params["x"] ** 2)
    print(json.dumps([trial.params for trial in asked]))
"""


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_two_processes_that_ask_at_once_never_share_a_point(kind, tmp_path):
    """Twice eight asks, four in each of two processes, all of them at the same moment."""
    if kind == "sqlite":
        storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    else:
        log = optuna.storages.journal.JournalFileBackend(str(tmp_path / "study.log"))
        storage = optuna.storages.JournalStorage(log)
    optuna.create_study(study_name="shared", storage=storage)
    command = [sys.executable, "-c", WORKER, kind, str(tmp_path)]
    workers = [
        subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    said = [worker.communicate(timeout=100)[0].splitlines() for worker in workers]
    waves = [json.loads(wave) for lines in said for wave in lines]
    asked = [json.dumps(point, sort_keys=True) for wave in waves for point in wave]
    assert len(asked) == len(set(asked)) == 16
    if kind == "sqlite":
        storage.engine.dispose()


EIGHT = """
import os, sys
import optuna
from covey.integrations.optuna import CoveySampler

optuna.logging.set_verbosity(optuna.logging.ERROR)

def objective(trial):
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    value = (x - 0.3) ** 2 + (y - 0.6) ** 2
    for step in range(4):
        trial.report(value + 0.5 ** step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value

def work():
    if sys.argv[1].startswith("sqlite"):
        storage = sys.argv[1]
    else:
        log = optuna.storages.journal.JournalFileBackend(sys.argv[1])
        storage = optuna.storages.JournalStorage(log)
    study = optuna.create_study(
        storage=storage, study_name="shared", load_if_exists=True,
        sampler=CoveySampler(seed=0),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4),
    )
    study.optimize(objective, n_trials=3)

children = []
for _ in range(8):  # forks, so that what takes long is imported once
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    children.append(pid)
sys.exit(any([os.waitpid(pid, 0)[1] for pid in children]))
"""


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_eight_processes_with_pruning_hardly_ever_share_a_point(kind, tmp_path):
    """With SQLite the study is made first: Optuna cannot make the tables eight times at once."""
    path = tmp_path / "study"
    where = f"sqlite:///{path}" if kind == "sqlite" else str(path)
    if kind == "sqlite":
        optuna.create_study(storage=where, study_name="shared")
    done = subprocess.run(
        [sys.executable, "-c", EIGHT, where], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    storage = where
    if kind == "journal":
        log = optuna.storages.journal.JournalFileBackend(where)
        storage = optuna.storages.JournalStorage(log)
    study = optuna.load_study(study_name="shared", storage=storage)
    assert len(study.trials) == 24
    assert len(set(points(study.trials))) >= 24 - MOST_SHARED
    assert {trial.state.name for trial in study.trials} == {"COMPLETE", "PRUNED"}
