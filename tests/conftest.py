"""What every test shares: the hypothesis profile, and beliefs to try things on."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import settings
from tests.angle import Angle

from covey.belief import Belief
from covey.gp import Model, condition, observe
from covey.kernels import Matern52
from covey.space import kinds as registry
from covey.space import register

settings.register_profile("covey", derandomize=True, max_examples=50, deadline=None)
settings.load_profile("covey")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A file of tests that cannot be imported has failed.

    Where all should be there (COVEY_NO_SKIPS=1), so has a test that misses something; it says how
    to get it.
    """
    talk = session.config.pluginmanager.get_plugin("terminalreporter")
    if talk is None:
        return
    skipped = [str(one.longrepr) for one in talk.stats.get("skipped", [])]
    broken = [why for why in skipped if "unable to import module" in why and "/tests/" in why]
    wants = [why for why in skipped if "install" in why]
    if broken:  # the doctest plugin forgives them, for the sake of extras that are not there
        talk.write_line(f"\n{len(broken)} files of tests cannot be imported; see the summary below")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if wants and os.environ.get("COVEY_NO_SKIPS") == "1":
        talk.write_line(f"\n{len(wants)} skipped for want of something; see the summary below")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _belief(
    seed: int, n: int = 40, d: int = 2, observations: int = 6, noise: float = 0.05
) -> Belief:
    rng = np.random.default_rng(seed)
    x, at = rng.random((observations, d)), rng.random((n, d))
    y = np.sin(6.0 * x[:, 0]) + rng.standard_normal(observations)
    data = observe(x, y, np.full(observations, np.nan))
    kernel = Matern52(tuple(rng.uniform(0.2, 0.8, d)), 1.0)
    return condition([Model(kernel, noise)], data).belief(at, round=3)


@pytest.fixture
def kinds(monkeypatch):
    """Kinds of parameters registered in a test are forgotten after it."""
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))


@pytest.fixture
def angle(kinds):
    """The kind "angle" is known."""
    register(Angle)


@pytest.fixture
def few_candidates(monkeypatch):
    """A search looks at 500 candidates: joint draws of f at thousands take seconds."""
    monkeypatch.setattr("covey.candidates._WIDE", 250)
    monkeypatch.setattr("covey.candidates._NEAR", 50)


@pytest.fixture(scope="session")
def make_belief() -> Callable[..., Belief]:
    """A belief about random candidates after a few random observations."""
    return _belief
