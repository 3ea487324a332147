"""Scores of cross-validation as values of trials, and those far out."""

from __future__ import annotations

import numpy as np
import pytest

from covey import Real, Space

sklearn = pytest.importorskip("sklearn", reason="pip install 'covey[sklearn]'")

from covey import Study
from covey.integrations.sklearn import Scores, far_out


@pytest.fixture
def study():
    return Study(Space({"x": Real(0, 1)}), seed=0)


def told(study):
    return [trial.value for trial in study.history.told]


def test_a_disaster_is_told_as_merely_bad(study):
    Scores(study).tell(study.ask(4), np.array([0.0, 2.0, 4.0, -1e6]))
    assert told(study) == [0.0, 2.0, 4.0, 1.0 - 10.0 * (4.0 - 1.0)]
    assert study.history.told[0].sem is None


def test_the_fence_only_falls(study):
    scores = Scores(study)
    wide, gathered = [0.0, 1.0, 2.0, 3.0], [2.93, 2.94, 2.95, 2.96, 2.97, 2.98, 2.99, 3.0]
    scores.tell(study.ask(4), np.array(wide))
    scores.tell(study.ask(8), np.array(wide + gathered))
    assert far_out(np.array(wide + gathered)) > 0.0  # alone it would raise the next to this
    scores.tell(study.ask(1), np.array([*wide, *gathered, 0.5]))
    assert told(study)[-1] == 0.5


def test_only_the_last_scores_are_of_the_batch(study):
    scores = Scores(study)
    scores.tell(study.ask(2), np.array([1.0, 2.0]))
    scores.tell(study.ask(1), np.array([1.0, 2.0, 3.0]))
    assert told(study) == [1.0, 2.0, 3.0]


def test_what_is_not_finite_failed(study):
    Scores(study).tell(study.ask(4), np.array([np.nan, 1.0, np.inf, -np.inf]))
    assert told(study) == [1.0]
    assert len(study.history.failed) == 3
    assert study.history.pending == ()


def test_without_a_single_score_all_failed(study):
    Scores(study).tell(study.ask(2), np.array([np.nan, np.nan]))
    assert len(study.history.failed) == 2


def test_equal_scores_have_no_fence(study):
    """A plateau has no scale by which anything is far out."""
    Scores(study).tell(study.ask(5), np.array([1.0, 1.0, 1.0, 1.0, -7.0]))
    assert told(study)[-1] == -7.0
    assert far_out(np.array([])) is None
