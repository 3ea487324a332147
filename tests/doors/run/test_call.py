from __future__ import annotations

import functools
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from covey.errors import StrategyError
from covey.run import Task
from covey.run.task import Function, pack, python_version

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
