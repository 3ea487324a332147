"""The biped: its mechanics against first principles, its walk against a referee."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import solve_ivp
from scipy.stats import binomtest

pytest.importorskip("numba", reason="numba is not installed: pip install numba")

from papers.kathuria2016.optimum import Search, search
from papers.kathuria2016.problems.robot import BEST_KNOWN, NAMES, robot
from papers.kathuria2016.robot.dynamics import (
    GRAVITY,
    HIP_MASS,
    LEG,
    LEG_MASS,
    TORSO,
    TORSO_MASS,
    coriolis,
    energy,
    gravity,
    inertia,
    solved,
)
from papers.kathuria2016.robot.feedback import TOUCH_DOWN, acceleration, outputs, pull
from papers.kathuria2016.robot.impact import foot_slope, impact, struck
from papers.kathuria2016.robot.pace import motion
from papers.kathuria2016.robot.walk import NOMINAL, landed, speed, start, step, walk

angles = arrays(float, 3, elements=st.floats(-1.2, 1.2))
speeds = arrays(float, 3, elements=st.floats(-3.0, 3.0))
MASSES = np.array([LEG_MASS, HIP_MASS, LEG_MASS, TORSO_MASS])
UP = np.array([0.0, 1.0])


def places(q):
    """Where the masses are: stance leg, hip, swing leg, torso; from the stance foot at 0."""
    along = [np.array([math.sin(a), math.cos(a)]) for a in q]
    hip = LEG * along[0]
    return np.array([hip / 2.0, hip, hip - LEG / 2.0 * along[1], hip + TORSO * along[2]])


def slope(f, x, h=1e-6):
    """Of f at x, by central differences; the last axis is x."""
    steps = np.eye(len(x)) * h
    return np.stack([(f(x + s) - f(x - s)) / (2.0 * h) for s in steps], axis=-1)


@given(angles, speeds)
def test_the_inertia_is_that_of_the_masses(q, dq):
    D = inertia(q)
    np.testing.assert_array_equal(D, D.T)
    assert np.linalg.eigvalsh(D).min() > 0.0
    moved = slope(places, q) @ dq
    kinetic = 0.5 * (MASSES * np.square(moved).sum(axis=1)).sum()
    assert 0.5 * dq @ D @ dq == pytest.approx(kinetic, abs=1e-6)


@given(angles)
def test_gravity_is_the_slope_of_the_height_of_the_masses(q):
    climbed = slope(lambda at: GRAVITY * MASSES @ places(at) @ UP, q)
    np.testing.assert_allclose(gravity(q), climbed, atol=1e-6)


@given(angles, speeds)
def test_the_coriolis_matrix_follows_from_the_inertia(q, dq):
    C = coriolis(q, dq)
    turned = slope(inertia, q)  # (3, 3, 3): ∂D_ij/∂q_k
    changing = turned @ dq
    skew = changing - 2.0 * C
    np.testing.assert_allclose(skew, -skew.T, atol=1e-6)
    # Lagrange: C q' = D' q' - ½ ∂(q'ᵀ D q')/∂q.
    lagrange = changing @ dq - 0.5 * np.einsum("i,ijk,j->k", dq, turned, dq)
    np.testing.assert_allclose(C @ dq, lagrange, atol=1e-6)


@given(angles, arrays(float, (3, 2), elements=st.floats(-5.0, 5.0)))
def test_solved_solves(q, right):
    np.testing.assert_allclose(inertia(q) @ solved(inertia(q), right), right, atol=1e-9)


def test_without_torque_energy_stays():
    def falling(_, s):
        free = -coriolis(s[:3], s[3:]) @ s[3:] - gravity(s[:3])
        return np.concatenate([s[3:], np.linalg.solve(inertia(s[:3]), free)])

    s = np.array([0.1, -0.2, 0.3, 0.5, 1.0, -0.5])
    end = solve_ivp(falling, (0.0, 0.4), s, rtol=1e-10, atol=1e-10).y[:, -1]
    assert np.abs(end - s).max() > 0.1
    assert energy(end[:3], end[3:]) == pytest.approx(energy(s[:3], s[3:]), abs=1e-6)
    # Under the controller it does not: the check can fail.
    pushed = solve_ivp(lambda _, s: motion(s, NOMINAL), (0.0, 0.4), s, rtol=1e-8).y[:, -1]
    assert abs(energy(pushed[:3], pushed[3:]) - energy(s[:3], s[3:])) > 1.0


@given(
    arrays(float, 3, elements=st.floats(-0.5, 0.5)),
    arrays(float, 3, elements=st.floats(-1.0, 1.0)),
    arrays(float, 8, elements=st.floats(0.0, 0.5)),
)
def test_the_feedback_makes_the_outputs_obey(q, dq, a):
    q2 = acceleration(q, dq, a)
    h = 1e-6
    later, before = (
        outputs(q + s * h * dq + 0.5 * h * h * q2, dq + s * h * q2, a)[1] for s in (1, -1)
    )
    y, dy = outputs(q, dq, a)
    wanted = [pull(y[i], 0.1 * dy[i]) / 0.01 for i in range(2)]
    size = 1.0 + np.abs(q2).max()
    np.testing.assert_allclose((later - before) / (2.0 * h), wanted, atol=1e-5 * size)


def test_the_pull_brings_to_rest_in_finite_time():
    def at_end(law):
        s = solve_ivp(
            lambda _, s: [s[1], law(s[0], s[1])], (0.0, 12.0), [1.0, 0.0], rtol=1e-9, atol=1e-12
        )
        return np.abs(s.y[:, -1]).max()

    assert at_end(pull) < 1e-6
    # A linear law of the same kind comes closer for ever, and is not there by then.
    assert at_end(lambda y, z: -y - z) > 1e-4


def momentum(q, dq, foot, about):
    """Angular momentum of the masses about a point, the stance foot moving with ``foot``."""
    arms, moved = places(q) - about, slope(places, q) @ dq + foot
    return float((MASSES * (arms[:, 0] * moved[:, 1] - arms[:, 1] * moved[:, 0])).sum())


@given(arrays(float, 3, elements=st.floats(-0.6, 0.6)), speeds)
def test_the_laws_of_the_impact(q, dq):
    after, rest = struck(q, dq), np.zeros(2)
    foot = foot_slope(q) @ after[:5]
    np.testing.assert_allclose(foot, 0.0, atol=1e-9)  # the new stance foot sticks
    along = [np.array([math.sin(a), math.cos(a)]) for a in q]
    new = LEG * (along[0] - along[1])
    kept = momentum(q, dq, rest, new)
    # About the new contact the ground's impulse has no arm.
    assert momentum(q, after[:3], after[3:5], new) == pytest.approx(kept, abs=1e-5)
    # The trailing leg, and the torso, feel an impulse at the hip only.
    hip = LEG * along[0]
    for mass in (0, 3):
        was, now = (
            _part(q, w, foot, hip, mass) for w, foot in ((dq, rest), (after[:3], after[3:5]))
        )
        assert now == pytest.approx(was, abs=1e-5)
    assert energy_of(q, after[:3], after[3:5]) <= energy_of(q, dq, rest) + 1e-6


def test_about_the_old_contact_momentum_changes():
    q, dq = np.array([TOUCH_DOWN, -TOUCH_DOWN, 0.5]), np.array([1.55, -1.0, 0.1])
    after = struck(q, dq)
    changed = momentum(q, after[:3], after[3:5], 0.0) - momentum(q, dq, np.zeros(2), 0.0)
    assert abs(changed) > 1.0


def _part(q, dq, foot, about, mass):
    arm, moved = (places(q) - about)[mass], (slope(places, q) @ dq + foot)[mass]
    return arm[0] * moved[1] - arm[1] * moved[0]


def energy_of(q, dq, foot):
    return float(0.5 * (MASSES * np.square(slope(places, q) @ dq + foot).sum(axis=1)).sum())


def test_the_legs_change_their_names_at_impact():
    q, dq = np.array([0.3, -0.4, 0.5]), np.array([1.0, -1.0, 0.2])
    swapped, moved = impact(q, dq)
    np.testing.assert_array_equal(swapped, [-0.4, 0.3, 0.5])
    np.testing.assert_array_equal(moved, struck(q, dq)[[1, 0, 2]])


def test_the_nominal_gait():
    s = start(NOMINAL)
    for _ in range(10):
        seconds, end = step(s, NOMINAL, 1e-8)
        length = LEG * (math.sin(end[0]) - math.sin(end[1]))
        s = landed(end)
    assert length == pytest.approx(0.7654, abs=1e-4)
    assert seconds == pytest.approx(1.1215, abs=2e-4)
    assert speed(NOMINAL) == pytest.approx(0.682, abs=1e-3)
    np.testing.assert_allclose(landed(step(s, NOMINAL, 1e-8)[1]), s, atol=1e-4)  # periodic


def referee(a):
    """Ten steps by another integrator, on the same right-hand side."""

    def touch(_, s):
        return s[0] - TOUCH_DOWN

    touch.terminal, touch.direction = True, 1
    s, distance, time = start(a), 0.0, 0.0
    for _ in range(10):
        made = solve_ivp(
            lambda _, s: motion(s, a),
            (0.0, 13.0),
            s,
            method="DOP853",
            rtol=1e-8,
            atol=1e-9,
            events=touch,
        )
        end = made.y[:, -1]
        distance += LEG * (math.sin(end[0]) - math.sin(s[0]))
        time += made.t[-1]
        s = landed(end)
    return distance / time


@pytest.mark.parametrize("a", [NOMINAL, np.full(8, 0.5), np.array([0.9, 0.5, 0, 0, 0, 0, 0, 0])])
def test_a_referee_sees_the_same_speed(a):
    assert speed(a) == pytest.approx(referee(a), abs=2e-5)


def share(designs):
    """p value of "94 % of them walk" for these designs."""
    walked = sum(speed(a, tolerance=1e-6) > 0.0 for a in designs)
    return binomtest(walked, len(designs), 0.94).pvalue


def test_most_designs_walk():
    rng = np.random.default_rng(0)
    assert share(rng.random((400, 8))) > 1e-3
    assert share(NOMINAL + rng.uniform(-1.0, 1.0, (60, 8))) < 1e-3  # of these half fall


def test_a_fall_is_worth_nothing():
    fallen = np.zeros(8)
    assert walk(fallen, 10, 1e-8)[1] == math.inf
    assert speed(fallen) == 0.0
    wild = np.random.default_rng(1).uniform(-50.0, 50.0, (30, 8))
    assert all(math.isfinite(speed(a)) for a in wild)


def test_the_problem_is_the_walk_and_its_best_known_speed():
    task = robot()
    best = json.loads(BEST_KNOWN.read_text())
    at = dict(zip(NAMES, best["point"], strict=True))
    assert task.evaluate(task.space.check(at)) == pytest.approx(task.optimum, abs=1e-9)
    assert task.noise == 0.1
    assert "optimum robot" in best["command"]
    some = np.random.default_rng(2).random((50, 8))
    assert max(speed(a, tolerance=1e-6) for a in some) < task.optimum


def test_a_search_says_how_to_repeat_it():
    found = search(Search(seeds=1, generations=1, population=1, polish=5))
    assert 0.0 < found["value"] <= json.loads(BEST_KNOWN.read_text())["value"]
    assert found["command"].endswith("--generations 1 --population 1 --polish 5")
