"""Test functions to maximise, of an (n, d) array in natural units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from covey.arrays import Array
from covey.bench import hartmann6_values


@dataclass(frozen=True)
class Function:
    """A function on a box, and its largest value there."""

    f: Callable[[Array], Array]
    box: tuple[tuple[float, float], ...]
    optimum: float


def _forrester(x: Array) -> Array:
    return -((6.0 * x[:, 0] - 2.0) ** 2) * np.sin(12.0 * x[:, 0] - 4.0)


def _branin(x: Array) -> Array:
    a, b = x.T
    bowl = b - 5.1 / (4.0 * np.pi**2) * a**2 + 5.0 / np.pi * a - 6.0
    return -(bowl**2) - 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(a) - 10.0


def _camel(x: Array) -> Array:
    a, b = x.T
    return -(4.0 - 2.1 * a**2 + a**4 / 3.0) * a**2 - a * b - (4.0 * b**2 - 4.0) * b**2


def _cosines(x: Array) -> Array:
    u = 1.6 * x - 0.5
    return 1.0 - (u**2 - 0.3 * np.cos(3.0 * np.pi * u)).sum(axis=1)


def _levy(x: Array) -> Array:
    w = 1.0 + (x - 1.0) / 4.0
    inner = (w[:, :-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(np.pi * w[:, :-1] + 1.0) ** 2)
    last = (w[:, -1] - 1.0) ** 2 * (1.0 + np.sin(2.0 * np.pi * w[:, -1]) ** 2)
    return -(np.sin(np.pi * w[:, 0]) ** 2 + inner.sum(axis=1) + last)


def _michalewicz(x: Array) -> Array:
    i = np.arange(1, x.shape[1] + 1)
    return (np.sin(x) * np.sin(i * x**2 / np.pi) ** 20).sum(axis=1)


def _rosenbrock(x: Array) -> Array:
    return -(100.0 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1.0 - x[:, :-1]) ** 2).sum(axis=1)


def _rastrigin(x: Array) -> Array:
    return -(x**2 - 10.0 * np.cos(2.0 * np.pi * x) + 10.0).sum(axis=1)


def _styblinski(x: Array) -> Array:
    return -0.5 * (x**4 - 16.0 * x**2 + 5.0 * x).sum(axis=1)


def _griewank(x: Array) -> Array:
    waves = np.cos(x / np.sqrt(np.arange(1, x.shape[1] + 1))).prod(axis=1)
    return -((x**2).sum(axis=1) / 4000.0 - waves + 1.0)


def _ackley(x: Array) -> Array:
    far = 20.0 * np.exp(-0.2 * np.sqrt((x**2).mean(axis=1)))
    return far + np.exp(np.cos(2.0 * np.pi * x).mean(axis=1)) - 20.0 - np.e


def _sphere(x: Array) -> Array:
    return -((x - 0.3) ** 2).sum(axis=1)


FUNCTIONS = {
    "forrester1": Function(_forrester, ((0.0, 1.0),), 6.020740055),
    "branin2": Function(_branin, ((-5.0, 10.0), (0.0, 15.0)), -0.39788735773),
    "camel2": Function(_camel, ((-2.0, 2.0), (-1.0, 1.0)), 1.0316284535),
    "cosines2": Function(_cosines, ((0.0, 1.0),) * 2, 1.6),
    "levy4": Function(_levy, ((-10.0, 10.0),) * 4, 0.0),
    "rastrigin4": Function(_rastrigin, ((-4.0, 5.12),) * 4, 0.0),
    "michalewicz5": Function(_michalewicz, ((0.0, np.pi),) * 5, 4.687658179),
    "hartmann6": Function(hartmann6_values, ((0.0, 1.0),) * 6, 3.3223680114),
    "styblinski6": Function(_styblinski, ((-5.0, 5.0),) * 6, 39.16616570377 * 6),
    "griewank6": Function(_griewank, ((-30.0, 50.0),) * 6, 0.0),
    "rosenbrock8": Function(_rosenbrock, ((-2.0, 2.0),) * 8, 0.0),
    "ackley10": Function(_ackley, ((-15.0, 30.0),) * 10, 0.0),
    "sphere20": Function(_sphere, ((0.0, 1.0),) * 20, 0.0),
}
"""Smooth and multimodal, of 1 to 20 dimensions (the number ends the name)."""


def _first_six(x: Array) -> Array:
    return hartmann6_values(x[:, :6])


MANY_INPUTS = {
    f"{name}{d}": Function(f, (box,) * d, optimum)
    for d in (20, 50)
    for name, f, box, optimum in (
        ("hartmann6of", _first_six, (0.0, 1.0), FUNCTIONS["hartmann6"].optimum),
        ("levy", _levy, (-10.0, 10.0), 0.0),
    )
}
"""Of many inputs, of which six matter or all."""
