"""Studies to report on, made once."""

from __future__ import annotations

import functools
import math

import pytest

import covey
from covey.report import card, page

HOSTILE = (
    "<img src=x onerror=1>",
    '"><svg/onload=1>',
    "{{7*7}}",
    "\u202eevil",
    "$x^2$ & </svg><script>alert(1)</script>",
)


def quality(point):
    """Best at lr 10^-3.2, 5 layers, lion."""
    return (
        85.0
        - 3.0 * (math.log10(point["lr"]) + 3.2) ** 2
        - 0.4 * (point["layers"] - 5) ** 2
        + {"adam": 0.0, "sgd": -4.0, "lion": 1.0}[point["opt"]]
        + 0.3 * math.sin(1e4 * point["lr"])
    )


def mixed(goal):
    """Four batches of six: told, some failed, one added, two enqueued (a repeat), the last open."""
    space = covey.Space(
        {
            "lr": covey.Real(1e-5, 1e-1, log=True),
            "layers": covey.Integer(1, 8),
            "opt": covey.Choice(["adam", "sgd", "lion"]),
        }
    )
    sign = 1.0 if goal == "max" else -1.0
    study = covey.Study(space, goal=goal, seed=1)
    for i in range(3):
        batch = study.ask(6)
        study.fail(batch[0], "out of memory")
        study.tell(batch[1:], [sign * quality(t.point) for t in batch[1:]])
        if i == 1:
            known = {"lr": 1e-3, "layers": 3, "opt": "sgd"}
            study.add([known], [sign * quality(known)])
            extra = study.enqueue([known, {"lr": 1e-3, "layers": 4, "opt": "lion"}])
            study.tell(extra, [sign * quality(t.point) for t in extra])
    last = study.ask(6)
    study.tell(last[:3], [sign * quality(t.point) for t in last[:3]])
    study.cancel(last[3])
    return study


@pytest.fixture(scope="session")
def rising():
    return mixed("max")


@pytest.fixture(scope="session")
def falling():
    return mixed("min")


@pytest.fixture(scope="session")
def pooled():
    """A pool with a label, searched for its smallest value, which lies at the end of t."""
    rows = [
        {"name": f"molecule {i}", "t": float(i % 12), "solvent": ("water", "dmso")[i % 2]}
        for i in range(24)
    ]
    pool = covey.Pool(rows[:12] + [{**r, "t": r["t"] + 0.5} for r in rows[12:]], labels=["name"])
    study = covey.Study(pool, goal="min", seed=0)
    for _ in range(3):
        batch = study.ask(4)
        study.tell(batch, [-t.point["t"] + 0.1 * (t.point["solvent"] == "dmso") for t in batch])
    return study


@pytest.fixture(scope="session")
def hostile():
    space = covey.Space(
        {
            HOSTILE[0]: covey.Real(0.0, 1.0),
            HOSTILE[1]: covey.Choice(HOSTILE),
            HOSTILE[2]: covey.Integer(0, 3),
            HOSTILE[3]: covey.Real(1.0, 2.0),
            "a$b$": covey.Choice(["</svg>", "<b>", "$y$"]),
            "picture": covey.Choice(["\U0001f600" * 3000, "漢字"]),
        }
    )
    study = covey.Study(space, seed=0)
    for _ in range(2):
        batch = study.ask(5)
        study.tell(batch, [t.point[HOSTILE[0]] for t in batch])
    return study


@pytest.fixture
def line():
    """A fresh study on a line."""
    return covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0)


@pytest.fixture(scope="session")
def long():
    """A thousand trials; the second batch by a model."""
    space = covey.Space({f"x{i}": covey.Real(0.0, 1.0) for i in range(3)})
    study = covey.Study(space, seed=0)
    for k, strategy in ((62, "random"), (8, "auto"), *[(62, "random")] * 15):
        batch = study.ask(k, strategy=strategy)
        study.tell(batch, [math.sin(5.0 * t.point["x0"]) + t.point["x1"] for t in batch])
    return study


@pytest.fixture(scope="session")
def card_of(request):
    """The card of a study of this page, by the name of its fixture; made once."""
    return functools.cache(lambda name: card(request.getfixturevalue(name)))


@pytest.fixture(scope="session")
def page_of(card_of):
    """Its page."""
    return functools.cache(lambda name: page(card_of(name)))
