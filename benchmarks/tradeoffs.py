"""Problems with several goals: made up, from engineering, a fermentation, and a trained network.

Goals are minimised; slacks of at least 0 keep the limits. A point is a row of numbers, one for each
parameter of the space: of an option its index, and nan where the parameter is absent. An evaluation
that fails has goals that are nan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import covey
from benchmarks.trainings import digits
from covey.arrays import Array
from covey.hypervolume import hypervolume

Bounds = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Problem:
    """Goals to minimise and limits to keep, on a box."""

    bounds: Bounds
    worst: tuple[float, ...]  # the reference point
    goals: Callable[[Array], Array]  # (n, d) -> (n, m)
    slacks: Callable[[Array], Array] | None = None  # (n, d) -> (n, c)

    def values(self, x: Array) -> tuple[Array, Array]:
        """Goals (n, m) and slacks (n, c)."""
        return self.goals(x), np.zeros((len(x), 0)) if self.slacks is None else self.slacks(x)

    def volume(self, goals: Array, slacks: Array) -> float:
        """The hypervolume of those results (n, m) that keep the limits and did not fail."""
        kept = (slacks >= 0.0).all(axis=1) & np.isfinite(goals).all(axis=1)
        return hypervolume(-goals[kept], -np.array(self.worst))

    def design(self, seed: int, size: int) -> Array:
        """The first points, scrambled Sobol."""
        from scipy.stats import qmc

        unit = qmc.Sobol(len(self.bounds), scramble=True, rng=seed).random(size)
        return self.of_unit(unit)

    def of_unit(self, unit: Array) -> Array:
        """Points (n, d) of numbers in [0, 1]."""
        low, high = np.array(self.bounds).T
        return np.asarray(low + (high - low) * unit)

    @property
    def space(self) -> covey.Space:
        """The box."""
        return covey.Space({f"x{i}": covey.Real(*b) for i, b in enumerate(self.bounds)})

    def point(self, row: Array) -> dict[str, Any]:
        """The point of a row of numbers."""
        return {f"x{i}": float(value) for i, value in enumerate(row)}

    def row(self, point: Mapping[str, Any]) -> list[float]:
        """The row of numbers of a point."""
        return [point[f"x{i}"] for i in range(len(self.bounds))]


def zdt1(x: Array) -> Array:
    """Zitzler, Deb & Thiele 2000: a convex front."""
    g = 1.0 + 9.0 * x[:, 1:].mean(axis=1)
    return np.column_stack([x[:, 0], g * (1.0 - np.sqrt(x[:, 0] / g))])


def zdt2(x: Array) -> Array:
    """Zitzler, Deb & Thiele 2000: a concave front."""
    g = 1.0 + 9.0 * x[:, 1:].mean(axis=1)
    return np.column_stack([x[:, 0], g * (1.0 - np.square(x[:, 0] / g))])


def zdt3(x: Array) -> Array:
    """Zitzler, Deb & Thiele 2000: a front in five pieces."""
    g = 1.0 + 9.0 * x[:, 1:].mean(axis=1)
    share = x[:, 0] / g
    wave = share * np.sin(10.0 * np.pi * x[:, 0])
    return np.column_stack([x[:, 0], g * (1.0 - np.sqrt(share) - wave)])


def dtlz2(x: Array) -> Array:
    """Deb, Thiele, Laumanns & Zitzler 2002: an eighth of a sphere."""
    g = 1.0 + np.square(x[:, 2:] - 0.5).sum(axis=1)
    a, b = 0.5 * np.pi * x[:, 0], 0.5 * np.pi * x[:, 1]
    return np.column_stack([g * np.cos(a) * np.cos(b), g * np.cos(a) * np.sin(b), g * np.sin(a)])


def bnh(x: Array) -> Array:
    """Binh & Korn 1997."""
    a, b = x.T
    return np.column_stack([4.0 * a**2 + 4.0 * b**2, (a - 5.0) ** 2 + (b - 5.0) ** 2])


def bnh_slacks(x: Array) -> Array:
    """Two circles: inside the one, outside the other."""
    a, b = x.T
    return np.column_stack([25.0 - (a - 5.0) ** 2 - b**2, (a - 8.0) ** 2 + (b + 3.0) ** 2 - 7.7])


def vehicle(x: Array) -> Array:
    """Mass, acceleration and intrusion in a crash, by thicknesses of five parts (Liao 2008)."""
    a, b, c, d, e = x.T
    mass = 1640.2823 + 2.3573285 * a + 2.3220035 * b + 4.5688768 * c + 7.7213633 * d + 4.4559504 * e
    acceleration = (
        6.5856 + 1.15 * a - 1.0427 * b + 0.9738 * c + 0.8364 * d - 0.3695 * a * d
        + 0.0861 * a * e + 0.3628 * b * d - 0.1106 * a**2 - 0.3437 * c**2 + 0.1764 * d**2
    )  # fmt: skip
    intrusion = (
        -0.0551 + 0.0181 * a + 0.1024 * b + 0.0421 * c - 0.0073 * a * b + 0.024 * b * c
        - 0.0118 * b * d - 0.0204 * c * d - 0.008 * c * e - 0.0241 * b**2 + 0.0109 * d**2
    )  # fmt: skip
    return np.column_stack([mass, acceleration, intrusion])


def brake(x: Array) -> Array:
    """Mass and stopping time of a disc brake: radii, force, number of surfaces."""
    inner, outer, force, surfaces = x.T
    area, solid = outer**2 - inner**2, outer**3 - inner**3
    mass = 4.9e-5 * area * (surfaces - 1.0)
    return np.column_stack([mass, 9.82e6 * area / (force * surfaces * solid)])


def brake_slacks(x: Array) -> Array:
    """Distance of the radii, pressure, temperature and torque."""
    inner, outer, force, surfaces = x.T
    area, solid = outer**2 - inner**2, outer**3 - inner**3
    return np.column_stack(
        [
            outer - inner - 20.0,
            0.4 - force / (3.14 * area),
            1.0 - 2.22e-3 * force * solid / area**2,
            2.66e-2 * force * surfaces * solid / area - 900.0,
        ]
    )


def penicillin(x: Array) -> Array:
    """Penicillin, to be maximised, carbon dioxide and hours of a fed batch (Liang & Lai 2021).

    Volume of the culture, biomass, temperature, glucose, rate and concentration of the feed, and
    pH. Steps of an hour until the vessel is full, the glucose used up, or the yield falls.
    """
    volume, biomass, heat, glucose, feed, concentration, ph = x.T.copy()
    acid = 10.0**-ph
    growth = 0.092 / (1.0 + 1e-10 / acid + acid / 7e-5)
    growth *= 7e3 * np.exp(-5100.0 / (1.9872 * heat)) - 1e33 * np.exp(-50000.0 / (1.9872 * heat))
    dried = 2.5e-4 * np.expm1(5.0 * (heat - 373.0) / (273.0 - 373.0))
    product, gas = np.zeros(len(x)), np.zeros(len(x))
    hours, runs = np.full(len(x), 2500.0), np.ones(len(x), dtype=bool)
    for hour in range(1, 2501):
        swell = feed - volume * dried
        thinned = swell / volume
        grown = growth * glucose / (0.15 * biomass + glucose) * biomass
        made = 0.005 * glucose / (2e-4 + glucose + glucose**2 / 0.1) * biomass
        more = grown - biomass * thinned
        used = grown / 0.45 + made / 0.9 + 0.014 * biomass
        eaten = feed * concentration / volume - used - glucose * thinned
        gained = made - 0.04 * product - product * thinned
        breath = 0.143 * more + 4e-7 * biomass + 1e-4
        product += np.where(runs, gained, 0.0)
        volume += np.where(runs, swell, 0.0)
        biomass += np.where(runs, more, 0.0)
        glucose += np.where(runs, eaten, 0.0)
        gas += np.where(runs, breath, 0.0)
        over = runs & ((volume > 180.0) | (glucose < 0.0) | (gained < 1e-11))
        hours[over] = hour
        runs &= ~over
        if not runs.any():
            break
    return np.column_stack([-product, gas, hours])


# A network: its accuracy on digits, and its latency.

_LOGS = {"rate": (1e-4, 0.5), "units": (4, 512), "batch": (8, 256), "decay": (1e-6, 1e-2)}
_OPTIONS = ("adam", "sgd")


def network(x: Array) -> Array:
    """One minus the accuracy of each network (n, 6), and its latency in ms."""
    return np.array([_trained(*row) for row in x]).reshape(len(x), 2)


def _trained(
    rate: float, units: float, batch: float, decay: float, option: float, momentum: float
) -> tuple[float, float]:
    """What one network comes to; nan if it is out of memory, or does not come to an end."""
    adam = _OPTIONS[int(option)] == "adam"
    if units * batch > 2**14 or (adam and rate > 0.05):
        return np.nan, np.nan
    rng = np.random.default_rng(0)
    wide = int(units)
    weights = [
        rng.normal(0.0, np.sqrt(2.0 / a), (a, b)).astype(np.float32)
        for a, b in ((64, wide), (wide, 10))
    ]
    weights += [np.zeros(wide, np.float32), np.zeros(10, np.float32)]
    step = _Adam(weights, rate) if adam else _Momentum(weights, rate, momentum)
    x, y, other_x, other_y = digits()
    with np.errstate(all="ignore"):
        for _ in range(9):
            for rows in np.array_split(rng.permutation(len(x)), max(1, int(len(x) // batch))):
                step(_slopes(weights, x[rows], y[rows], decay))
        scores = np.maximum(other_x @ weights[0] + weights[2], 0.0) @ weights[1] + weights[3]
    wrong = np.mean(scores.argmax(axis=1) != other_y) if np.isfinite(scores).all() else 0.9
    return float(wrong), 0.5 + sum(one.size for one in weights) / 2e4


def _slopes(weights: list[Array], x: Array, y: Array, decay: float) -> list[Array]:
    first, second, bias, out = weights
    hidden = np.maximum(x @ first + bias, 0.0)
    scores = hidden @ second + out
    error = np.exp(scores - scores.max(axis=1, keepdims=True))
    error /= error.sum(axis=1, keepdims=True)
    error[np.arange(len(y)), y] -= 1.0
    error /= len(y)
    back = (error @ second.T) * (hidden > 0)
    slopes = [x.T @ back + decay * first, hidden.T @ error + decay * second]
    return [*slopes, back.sum(axis=0), error.sum(axis=0)]


class _Momentum:
    """Steps of stochastic gradients with momentum."""

    def __init__(self, weights: list[Array], rate: float, momentum: float) -> None:
        self._weights, self._rate, self._momentum = weights, rate, momentum
        self._speeds = [np.zeros_like(one) for one in weights]

    def __call__(self, slopes: list[Array]) -> None:
        for i, slope in enumerate(slopes):
            self._speeds[i] = self._momentum * self._speeds[i] - self._rate * slope
            self._weights[i] += self._speeds[i]


class _Adam:
    """Steps of Kingma & Ba 2015."""

    def __init__(self, weights: list[Array], rate: float) -> None:
        self._weights, self._rate, self._steps = weights, rate, 0
        self._means = [np.zeros_like(one) for one in weights]
        self._squares = [np.zeros_like(one) for one in weights]

    def __call__(self, slopes: list[Array]) -> None:
        self._steps += 1
        first, second = 1.0 - 0.9**self._steps, 1.0 - 0.999**self._steps
        for i, slope in enumerate(slopes):
            self._means[i] += 0.1 * (slope - self._means[i])
            self._squares[i] += 0.001 * (np.square(slope) - self._squares[i])
            size = np.sqrt(self._squares[i] / second) + 1e-8
            self._weights[i] -= self._rate * (self._means[i] / first) / size


class Network(Problem):
    """Six hyper-parameters, one of which only one of the optimisers has."""

    @property
    def space(self) -> covey.Space:
        """Rate, units, size of a batch, decay, optimiser; and momentum where that has one."""
        whole = ("units", "batch")
        return covey.Space(
            {
                **{
                    name: (covey.Integer if name in whole else covey.Real)(low, high, log=True)
                    for name, (low, high) in _LOGS.items()
                },
                "optimizer": covey.Choice(_OPTIONS),
                "momentum": covey.Real(0.0, 0.99, when={"optimizer": "sgd"}),
            }
        )

    def of_unit(self, unit: Array) -> Array:
        """Points (n, 6) of numbers in [0, 1]."""
        low, high = np.array([*_LOGS.values()]).T
        x = np.column_stack([low * (high / low) ** unit[:, :4], unit[:, 4] >= 0.5, unit[:, 5]])
        x[:, 1:3] = np.round(x[:, 1:3])
        x[:, 5] = np.where(x[:, 4] > 0.0, 0.99 * x[:, 5], np.nan)
        return x

    def point(self, row: Array) -> dict[str, Any]:
        """The point of a row of numbers."""
        rate, units, batch, decay, option, momentum = map(float, row)
        sizes = {"rate": rate, "units": int(units), "batch": int(batch), "decay": decay}
        point = {**sizes, "optimizer": _OPTIONS[int(option)]}
        return point if np.isnan(momentum) else {**point, "momentum": momentum}

    def row(self, point: Mapping[str, Any]) -> list[float]:
        """The row of numbers of a point."""
        option = _OPTIONS.index(point["optimizer"])
        return [*(point[name] for name in _LOGS), option, point.get("momentum", np.nan)]


UNIT = ((0.0, 1.0),)
PROBLEMS = {
    "zdt1": Problem(UNIT * 6, (1.1, 1.1), zdt1),
    "zdt2": Problem(UNIT * 6, (1.1, 1.1), zdt2),
    "zdt3": Problem(UNIT * 6, (1.1, 1.1), zdt3),
    "dtlz2": Problem(UNIT * 6, (1.1, 1.1, 1.1), dtlz2),
    "bnh": Problem(((0.0, 5.0), (0.0, 3.0)), (140.0, 50.0), bnh, bnh_slacks),
    "vehicle": Problem(((1.0, 3.0),) * 5, (1864.72022, 11.81993945, 0.2903999384), vehicle),
    "brake": Problem(
        ((55.0, 80.0), (75.0, 110.0), (1000.0, 3000.0), (11.0, 20.0)),
        (5.7771, 3.9651),
        brake,
        brake_slacks,
    ),
    "penicillin": Problem(
        (
            *((60.0, 120.0), (0.05, 18.0), (293.0, 303.0), (0.05, 18.0)),
            *((0.01, 0.5), (500.0, 700.0), (5.0, 6.5)),
        ),
        (25.935, 57.612, 935.5),
        penicillin,
    ),
    "network": Network(UNIT * 6, (0.5, 2.5), network),
}
