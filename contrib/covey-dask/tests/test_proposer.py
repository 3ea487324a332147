from __future__ import annotations

import os
import signal
import time
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

from cases import posterior_of, uniform
from covey import Integer, Pool, Space, Study, dpp
from covey.catalog import STRATEGIES
from covey.errors import ExhaustedError, SpaceError, StrategyError
from covey.policies import EST, UCB
from covey.strategies import DPP
from covey_dask import DaskProposer, Spread, proposer, scatter
from covey_dask.scatter import Scattered, remote_belief
from covey_dask.workers import Workers

MODELLED = [name for name, make in STRATEGIES.items() if make().needs_model]
N, K = 300, 8


@pytest.fixture
def few(monkeypatch):
    """Regions of more than forty rows are large."""
    monkeypatch.setattr(scatter, "LOCAL", 40)


def pool_of(n=N):
    rows = np.random.default_rng(2).random((n, 2))
    return Pool([{"x": x, "y": y, "name": f"row {i}"} for i, (x, y) in enumerate(rows)],
                labels=["name"])  # fmt: skip


def value(trial):
    return float(np.sin(6.0 * trial.point["x"]) + trial.point["y"])


def study_of(strategy="auto", n=N, **options):
    """A study that has been told of one batch."""
    study = Study(pool_of(n), seed=3, strategy=strategy, **options)
    batch = study.ask(8, strategy="random")
    study.tell(batch, [value(trial) for trial in batch])
    return study


def rounds(study, count=2):
    for _ in range(count):
        batch = study.ask(6)
        study.tell(batch, [value(trial) for trial in batch])
    return study


@pytest.mark.parametrize("strategy", ["auto", "ucb-dpp-max"])
def test_the_log_is_as_without_a_cluster(strategy, client, few):
    alone, study = rounds(study_of(strategy)), study_of(strategy)
    with DaskProposer(study, client):
        rounds(study)
    points = [trial.point for trial in alone.history.trials]
    assert [trial.point for trial in study.history.trials] == points
    for one, other in zip(alone.history.events, study.history.events, strict=True):
        assert type(one) is type(other)
    asked, other = alone.history.models, study.history.models
    assert [model["lengths"] for model in other] == [
        pytest.approx(model["lengths"], rel=1e-6) for model in asked
    ]
    told, account = alone.diagnostics, study.diagnostics
    assert (account.strategy, account.candidates) == (told.strategy, told.candidates)
    assert (account.region, account.sampler) == (told.region, told.sampler)
    assert account.information == pytest.approx(told.information, rel=1e-6)
    assert account.certificate == pytest.approx(told.certificate, rel=1e-6)


def test_sampled_batches_are_distinct_and_new(client):
    study = study_of("ucb-dpp-sample")
    with DaskProposer(study, client):
        rounds(study)
    names = [trial.point["name"] for trial in study.history.trials]
    assert len(set(names)) == len(names) == 8 + 12


def test_open_failed_and_cancelled_trials_count_as_they_do_alone(client):
    studies = study_of(), study_of()
    for study in studies:
        a, b, c, d = study.ask(4)
        study.fail(a)
        study.cancel(b)
        study.tell(c, value(c))
    with DaskProposer(studies[1], client, parts=3):
        found = studies[1].ask(5)
    assert [t.point for t in found] == [t.point for t in studies[0].ask(5)]
    assert found[0].point != d.point


def test_what_is_fixed_is_held(client):
    rows = [{"kind": "ab"[i % 2], "x": float(i)} for i in range(60)]
    studies = []
    for _ in range(2):
        study = Study(Pool(rows), seed=0)
        batch = study.ask(4, strategy="random")
        study.tell(batch, [trial.point["x"] for trial in batch])
        studies.append(study)
    with DaskProposer(studies[1], client, parts=4):
        found = studies[1].ask(5, fixed={"kind": "a"})
    assert {trial.point["kind"] for trial in found} == {"a"}
    assert [t.point for t in found] == [t.point for t in studies[0].ask(5, fixed={"kind": "a"})]


def test_the_last_rows_are_found_and_then_no_more(client):
    study = study_of(n=20)
    with DaskProposer(study, client):
        rounds(study, 2)
        before = study.history
        with pytest.raises(ExhaustedError, match="asked for 6") as error:
            study.ask(6)
        assert error.value.left == 0
        assert study.history is before
    assert len({trial.point["name"] for trial in study.history.trials}) == 20


def test_a_first_batch_and_one_without_a_model_are_chosen_here(client):
    alone, study = (Study(pool_of(), seed=3) for _ in range(2))
    with DaskProposer(study, client):
        first = [t.point for t in study.ask(5)]
        second = [t.point for t in study.ask(5, strategy="random")]
    assert first == [t.point for t in alone.ask(5)]
    assert second == [t.point for t in alone.ask(5, strategy="random")]


def test_a_key_names_a_batch(client, tmp_path):
    study = study_of(journal=tmp_path / "log.jsonl")
    with DaskProposer(study, client):
        batch = study.ask(3, key="monday")
        assert study.ask(3, key="monday") == batch
    again = Study.load(tmp_path / "log.jsonl", space=pool_of())
    assert again.ask(3, key="monday") == batch


def test_who_wrote_meanwhile_is_heeded(client, tmp_path, monkeypatch):
    study = study_of(journal=tmp_path / "log.jsonl")
    other = Study.load(tmp_path / "log.jsonl", space=pool_of())
    queued, remote_belief = [], proposer.remote_belief
    wanted = [t.point for t in study_of().ask(3)]  # what would be chosen

    def slow(*args):
        if not queued:
            queued.extend(other.enqueue(wanted))
        return remote_belief(*args)

    monkeypatch.setattr(proposer, "remote_belief", slow)
    with DaskProposer(study, client):
        mine = study.ask(3)
    assert not {t.point["name"] for t in mine} & {t.point["name"] for t in queued}
    assert len(study.history.trials) == 8 + 3 + 3


def test_an_interrupt_leaves_the_log_as_it_was(client, monkeypatch):
    study = study_of()
    before = study.history

    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(proposer, "remote_belief", stop)
    with DaskProposer(study, client), pytest.raises(KeyboardInterrupt):
        study.ask(3)
    assert study.history is before
    assert len(study.ask(3)) == 3


def test_outside_all_is_as_before(client):
    study = study_of()
    before = study.proposer
    with DaskProposer(study, client) as spreading:
        assert study.proposer == spreading.propose
        with DaskProposer(study, client, parts=1):
            assert study.proposer != spreading.propose
        assert study.proposer == spreading.propose
    assert study.proposer is before
    assert client.status == "running"


def kill_a_worker(client):
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def test_workers_that_die_are_made_up_for(mortal, few, monkeypatch, caplog):
    """One between two asks, and one during the second."""
    alone, study = study_of("ucb-dpp-max"), study_of("ucb-dpp-max")
    remote_belief, deaths = proposer.remote_belief, []

    def deadly(*args):
        if not deaths:
            deaths.append(kill_a_worker(mortal))
            time.sleep(0.2)
        return remote_belief(*args)

    with DaskProposer(study, mortal, parts=4):
        first = study.ask(5)
        kill_a_worker(mortal)
        monkeypatch.setattr(proposer, "remote_belief", deadly)
        second = study.ask(5)
    points = [t.point for t in (*alone.ask(5), *alone.ask(5))]
    assert [t.point for t in (*first, *second)] == points
    assert "workers were lost" in caplog.text


def test_a_cluster_that_is_gone_is_an_error_and_nothing_is_logged(cluster):
    from distributed import Client

    study, client = study_of(), Client(cluster.scheduler_address)
    with DaskProposer(study, client):
        study.ask(2)
        before = study.history
        client.close()
        with pytest.raises(StrategyError, match="client is closed"):
            study.ask(2)
    assert study.history is before
    assert len(study.ask(2)) == 2


def test_a_client_that_closes_during_an_ask_is_an_error_too(cluster, monkeypatch):
    from distributed import Client

    study, client = study_of(), Client(cluster.scheduler_address)
    before = study.history

    def closing(team, *args):
        client.close()
        team.core_sets(3)

    monkeypatch.setattr(proposer, "remote_belief", closing)
    with DaskProposer(study, client), pytest.raises(StrategyError, match="client is closed"):
        study.ask(2)
    assert study.history is before


def test_workers_that_are_lost_again_and_again_end_the_ask(client, monkeypatch):
    study = study_of()
    before = study.history

    def lost(*args):
        raise OSError("connection reset")

    monkeypatch.setattr(proposer, "remote_belief", lost)
    with DaskProposer(study, client), pytest.raises(StrategyError, match="lost workers 4 times"):
        study.ask(2)
    assert study.history is before


def test_workers_that_die_of_it_end_the_ask(client, monkeypatch):
    from distributed.scheduler import KilledWorker, WorkerState

    worker = WorkerState(
        address="tcp://127.0.0.1:1", status=None, pid=1, name="a", nthreads=1, memory_limit=1,
        local_directory="", nanny="", server_id="a",
    )  # fmt: skip

    def deadly(*args):
        raise KilledWorker("task", worker, 3)

    study = study_of()
    monkeypatch.setattr(proposer, "remote_belief", deadly)
    with DaskProposer(study, client), pytest.raises(StrategyError, match="want of memory"):
        study.ask(2)


def test_no_worker_in_sight_ends_the_ask(client, monkeypatch):
    def nobody(*args, **options):
        raise TimeoutError

    def lost(*args):
        raise OSError("connection reset")

    study = study_of()
    monkeypatch.setattr(proposer, "remote_belief", lost)
    monkeypatch.setattr(client, "wait_for_workers", nobody)
    with DaskProposer(study, client), pytest.raises(StrategyError, match="lost all its workers"):
        study.ask(2)


def test_only_a_pool_can_be_dealt_out(client):
    study = Study(Space({"x": Integer(0, 9)}), seed=0)
    with pytest.raises(SpaceError, match="rows of a Pool"):
        DaskProposer(study, client)


@pytest.mark.parametrize("options", [{"parts": 0}, {"checks": -1}])
def test_numbers_out_of_range_are_named(options, client):
    with pytest.raises(StrategyError, match="parts must be at least 1"):
        DaskProposer(study_of(), client, **options)


def test_what_is_no_client_is_named(cluster):
    with pytest.raises(StrategyError, match=r"takes a distributed\.Client.*got 'tcp"):
        DaskProposer(study_of(), "tcp://127.0.0.1:8786")


def test_a_closed_client_is_named(cluster):
    from distributed import Client

    client = Client(cluster.scheduler_address)
    client.close()
    with pytest.raises(StrategyError, match="client is closed"):
        DaskProposer(study_of(), client)


def test_a_time_budget_is_not_taken(client):
    study = study_of()
    with DaskProposer(study, client), pytest.raises(StrategyError, match="time_budget"):
        study.ask(2, time_budget=5.0)


def test_its_name_of_old_is_the_same_class():
    assert Spread is DaskProposer


def case(plain, members=1, parts=3):
    rows, posterior = uniform(N), posterior_of(members)
    team = Workers.of(plain, Scattered(plain, rows, parts), np.arange(N), posterior, 2**30)
    plain.tasks.clear()
    far = remote_belief(team, posterior, rows, 2, 2**30)
    return posterior.belief(rows, 2), far.by(team, 16, [])


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("name", MODELLED)
def test_every_strategy_chooses_what_it_would_on_one_machine(name, members, plain, few):
    belief, far = case(plain, members)
    strategy = STRATEGIES[name]()
    here = strategy.choose(belief, K, np.random.default_rng(5))
    there = strategy.choose(far, K, np.random.default_rng(5))
    assert there.indices == here.indices
    assert there.width == pytest.approx(here.width)
    assert (there.sampler, there.error) == (here.sampler, here.error)
    assert (there.region is None) == (here.region is None)
    if here.region is not None:
        assert there.region.tolist() == here.region.tolist()


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_however_many_parts_there_are(parts, plain, few):
    belief, far = case(plain, parts=parts)
    strategy = DPP(UCB(), then="max")
    here = strategy.choose(belief, 20, np.random.default_rng(0))
    assert strategy.choose(far, 20, np.random.default_rng(0)).indices == here.indices


def test_greedy_on_a_large_region_goes_by_core_sets(plain, few):
    _, far = case(plain)
    found = DPP(UCB(), then="max").choose(far, K, np.random.default_rng(0))
    assert found.sampler == "greedy"
    assert {"region", "core_set", "check"} <= set(plain.tasks)


def test_copies_are_put_back_as_on_one_machine(plain, few):
    belief, far = case(plain)
    coarse = np.full(belief.at.shape[1], 0.5)
    strategy = DPP(UCB(), then="max")
    before = strategy.choose(far, K, np.random.default_rng(0))
    here = strategy.choose(replace(belief, resolution=coarse), K, np.random.default_rng(0))
    rough = replace(far, resolution=coarse)
    there = strategy.choose(rough, K, np.random.default_rng(0))
    assert there.indices == here.indices
    assert there.indices != before.indices  # there were some
    assert len(there.reasons) == len(before.reasons) == K


def test_a_small_region_is_chosen_from_here(plain):
    _, far = case(plain)
    DPP(UCB(), then="max").choose(far, K, np.random.default_rng(0))
    assert "core_set" not in plain.tasks


def test_without_checks_it_says_what_it_did(client, few):
    study = study_of("ucb-dpp-max")
    with DaskProposer(study, client, checks=0):
        found = study.ask(K)
    sampler = f"greedy on core-sets, the first 0 of {K - 1} picks proven"
    assert study.diagnostics.sampler == sampler
    assert len({t.point["name"] for t in found}) == K


@pytest.mark.parametrize("then", ["max", "sample"])
@pytest.mark.parametrize("k", [1, 2])
def test_batches_of_one_and_two(k, then, plain, few):
    belief, far = case(plain)
    strategy = DPP(EST(), then=then)
    here = strategy.choose(belief, k, np.random.default_rng(5))
    there = strategy.choose(far, k, np.random.default_rng(5))
    assert there.indices == here.indices


def test_what_is_drawn_by_name_is_drawn_so(plain, few):
    _, far = case(plain)
    found = DPP(UCB(), method="spectral").choose(far, K, np.random.default_rng(0))
    assert found.sampler == "spectral"


def test_draws_of_a_large_region_follow_the_kernel(plain, monkeypatch):
    """Against all pairs enumerated; and uniform pairs do not pass for such draws."""
    monkeypatch.setattr(scatter, "LOCAL", 5)
    rows, posterior = uniform(9), posterior_of(noise=1e-3)
    belief = posterior.belief(rows, 2)
    team = Workers.of(plain, Scattered(plain, rows, 2), np.arange(9), posterior, 2**30)
    far = remote_belief(team, posterior, rows, 2, 2**30).by(team, 16, [])
    draws = [
        DPP(UCB(), method="walk").choose(far, 3, np.random.default_rng(i)).indices
        for i in range(600)
    ]
    head = draws[0][0]
    rest = [i for i in range(9) if i != head]
    kernel = belief.after_looking_at([head]).information()
    pairs = list(combinations(rest, 2))
    weights = np.exp([dpp.log_determinant(kernel, list(pair)) for pair in pairs])

    def agreement(drawn):
        seen = Counter(tuple(sorted(pair)) for pair in drawn)
        return chisquare(
            [seen[pair] for pair in pairs], len(drawn) * weights / weights.sum()
        ).pvalue

    rng = np.random.default_rng(0)
    assert agreement([batch[1:] for batch in draws]) > 1e-3
    assert agreement([rng.choice(rest, 2, replace=False).tolist() for _ in range(600)]) < 1e-3
