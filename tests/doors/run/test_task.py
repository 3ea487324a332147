from __future__ import annotations

import functools
import pickle
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import StrategyError
from covey.run import Outcome, Task
from covey.run.task import Function, Retries, pack, python_version


@pytest.mark.parametrize(
    "number",
    [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), np.array([2.0]), Fraction(2), {"value": 2}],
    ids=lambda x: type(x).__name__,
)
def test_whatever_is_a_number(number):
    assert Outcome.of("a", number) == Outcome("a", "succeeded", 2.0)


NOT_REAL = [
    np.complex128(1 + 2j),
    np.array(1 + 2j),
    np.array([1 + 2j]),
    np.True_,
    np.str_("2.5"),
    np.bytes_(b"2.5"),
    b"2.5",
    np.array([1.0, 2.0]),
]


# In a process of its own NumPy's warning that it drops an imaginary part is no error.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("other", NOT_REAL, ids=repr)
def test_what_the_log_would_refuse_is_refused(other):
    """Where it ran, with a reason; not told as its real part, or as the number it spells."""
    found = Outcome.of("a", other)
    assert (found.status, found.value) == ("failed", None)
    assert "not a finite number" in found.reason
    found = Outcome.of("a", {"value": 1.0, "sem": other})
    assert (found.status, found.sem) == ("failed", None)
    assert "standard error" in found.reason


def test_what_comes_beside_the_value_is_kept_as_plain_data():
    found = Outcome.of("a", {"value": 2, "latency": np.float32(0.5), "per fold": (1, 2), 3: "x"})
    assert found.metrics == {"latency": 0.5, "per fold": [1, 2], "3": "x"}
    assert found.unkept == ()


@pytest.mark.parametrize(
    "odd", [object(), float("nan"), "\ud800", "x" * 20_000, Fraction(1, 2)], ids=type
)
def test_what_a_log_cannot_hold_is_named_and_the_value_stays(odd):
    found = Outcome.of("a", {"value": 2, "loss": 3, "odd": odd})
    assert (found.status, found.value, found.metrics) == ("succeeded", 2.0, {"loss": 3})
    assert found.unkept == ("odd",)


class Odd:
    def __float__(self):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "other",
    [None, True, "2", 2j, [2.0], float("nan"), 10**400, -1e101, {}, {"Value": 2}, Odd()],
    ids=lambda x: type(x).__name__,
)
def test_whatever_is_none(other):
    found = Outcome.of("a", other)
    assert (found.status, found.value) == ("failed", None)
    assert "not a finite number" in found.reason


@pytest.mark.parametrize("sem", [-0.1, float("inf"), "small"])
def test_a_standard_error_must_be_one(sem):
    assert "standard error" in Outcome.of("a", {"value": 2, "sem": sem}).reason


def test_an_outcome_travels():
    found = Outcome.of("a", {"value": 2, "sem": 0.0})
    assert pickle.loads(pickle.dumps(found)) == found


# Functions as calls


HERE = Path()


def evaluate(f):
    return Function(f).evaluate(Task(3, 1, "a", {"x": 1.5}, 7, None, Function(f)), HERE)


def seeded(point, seed):
    return seed


def test_a_seed_goes_to_who_takes_one():
    assert evaluate(seeded).value == 7.0
    assert evaluate(lambda p, *, seed=0: seed).value == 7.0
    assert evaluate(functools.partial(seeded, seed=1)).value == 1.0  # it has one
    assert evaluate(functools.partial(lambda a, p, seed: a + seed, 1)).value == 8.0
    assert evaluate(lambda seed: seed["x"]).value == 1.5  # a point by an odd name
    assert evaluate(lambda p, **kept: len(kept)).value == 0.0
    assert evaluate(len).value == 1.0  # a builtin
    assert evaluate(max).status == "failed"  # one without a signature


def test_the_point_is_a_dict_of_its_own():
    def spoils(point):
        point["x"] = 9.0
        return 1.0

    task = Task(3, 1, "a", {"x": 1.5}, 7, None, Function(spoils))
    assert task.call.evaluate(task, HERE).value == 1.0
    assert task.point == {"x": 1.5}


def test_what_it_raises():
    def raises(error):
        def f(point):
            raise error

        return evaluate(f)

    assert raises(ValueError("x" * 9000)).status == "failed"
    assert len(raises(ValueError("x" * 9000)).reason) == 2000
    assert raises(SystemExit()).reason == "SystemExit: "
    assert raises(KeyboardInterrupt()).status == "lost"


def test_it_is_packed_with_all_it_needs(tmp_path):
    factor = 3.0
    payload = tmp_path / "payload"
    payload.write_bytes(pack(Function(lambda p: factor * p["x"])))
    code = (
        "import pickle, sys; from pathlib import Path; from covey.run.task import Task\n"
        f"call = pickle.loads(Path({str(payload)!r}).read_bytes())\n"
        "print(call.evaluate(Task(0, 1, 'a', {'x': 2.0}, 0, None, call), Path()).value)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "6.0\n"


def test_what_cannot_be_packed_is_named():
    lock = threading.Lock()
    with pytest.raises(StrategyError, match=r"cannot pickle.*lock.*ThreadPoolExecutor"):
        pack(Function(lambda p: lock))
    assert isinstance(pickle.loads(pack(Function(len))), Function)


def test_the_version_is_that_of_the_code():
    assert python_version() == ".".join(map(str, sys.version_info[:2]))


def test_an_exception_without_words_is_a_failure_all_the_same():
    class Wordless(Exception):  # noqa: N818
        def __str__(self):
            raise RuntimeError("no words")

    def f(point):
        raise Wordless

    found = evaluate(f)
    assert (found.status, found.reason) == ("failed", "Wordless, whose message raised RuntimeError")


def test_an_answer_that_raises_when_it_is_read_is_a_failure():
    class Odd(dict):
        def get(self, key, default=None):
            raise OSError("not now")

    found = evaluate(lambda p: Odd())
    assert (found.status, found.reason) == ("failed", "OSError: not now")


# Retries


def test_the_default_forgives_machines_only():
    retries = Retries()
    assert [retries.left("lost", used) for used in range(5)] == [True] * 3 + [False] * 2
    assert [retries.left("killed", used) for used in range(3)] == [True, False, False]
    assert not retries.left("failed", 0)
    assert not retries.left("timed-out", 0)
    assert not retries.left("succeeded", 0)
    assert Retries(timed_out=1).left("timed-out", 0)


@given(st.integers(0, 2000), st.floats(0.0, 1e6), st.integers(0, 100))
def test_delays_grow_stay_small_and_can_be_repeated(used, wait, seed):
    delays = [Retries(wait=wait).delay(used, np.random.default_rng(seed)) for _ in range(2)]
    assert delays[0] == delays[1]
    longest = min(60.0, wait * 2.0 ** min(used, 32))
    assert longest / 2 <= delays[0] <= longest


def test_those_that_died_together_do_not_come_back_together():
    delays = [Retries().delay(0, np.random.default_rng([0, id])) for id in range(50)]
    assert len({round(delay, 3) for delay in delays}) > 25


@pytest.mark.parametrize(
    "wrong", [{"lost": -1}, {"failed": 1.5}, {"timed_out": True}, {"killed": -1}]
)
def test_bad_numbers_are_named(wrong):
    with pytest.raises(StrategyError, match=r"retries: .*got"):
        Retries(**wrong)


@pytest.mark.parametrize("wait", [-1.0, float("nan"), "1"])
def test_bad_waits_are_named(wait):
    with pytest.raises(StrategyError, match="retries: wait"):
        Retries(wait=wait)
