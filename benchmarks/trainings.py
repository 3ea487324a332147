"""Trainings to search among: curves that are made up, and networks that are really trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any

import numpy as np

import covey

_LOGS = {"batch": (16, 512), "rate": (1e-4, 1e-1), "decay": (1e-5, 1e-1), "units": (64, 1024)}
_FLAT = {"momentum": (0.1, 0.99), "layers": (1, 5), "dropout": (0.0, 0.8)}


class Made:
    """Accuracies over 50 epochs, of seven hyper-parameters such as those of LCBench.

    A training with the effective rate r = rate/(batch^½ (1 - momentum)) rises from chance to its
    level as 1 - exp(-(t/τ)^k), with τ falling in r: where training is slow at first it is often
    better in the end, since the best r is below the quickest one; dropout slows down, too. Large
    networks with neither decay nor dropout fall again after a while, and rates above a limit end
    at chance. What is best, and how much each hyper-parameter matters, is drawn for each seed.
    """

    steps, goal = 50, "max"
    space = covey.Space(
        {
            **{n: covey.Real(*_LOGS[n], log=True) for n in ("rate", "decay")},
            **{n: covey.Integer(*_LOGS[n], log=True) for n in ("batch", "units")},
            **{n: covey.Real(*_FLAT[n]) for n in ("momentum", "dropout")},
            "layers": covey.Integer(1, 5),
        }
    )

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 101])
        self.chance = rng.uniform(0.1, 0.5)
        self.top = rng.uniform(0.75, 0.98)
        self.rate = rng.uniform(-7.5, -5.5)  # log of the best effective rate
        self.limit = self.rate + rng.uniform(2.5, 4.0)  # above it nothing is learnt
        self.pace = rng.uniform(3.0, 9.0)  # epochs of the best one
        self.slope = rng.uniform(0.35, 0.7)  # how τ falls in r
        self.bend = rng.uniform(0.7, 1.1)
        self.best = {
            "decay": rng.uniform(-9.0, -4.0),
            "units": rng.uniform(4.8, 6.6),
            "layers": rng.uniform(1.5, 4.5),
            "dropout": rng.uniform(0.0, 0.5),
        }
        spans = {"decay": 3.0, "units": 1.2, "layers": 2.0, "dropout": 0.4}
        self.matter = {n: rng.uniform(0.1, 1.0) / spans[n] ** 2 for n in spans}
        self.matter_rate = rng.uniform(0.15, 0.5)
        self.fall = rng.uniform(0.0, 0.15)

    def means(self, at: Mapping[str, np.ndarray], step: float) -> np.ndarray:
        """Noise-free values after a step, of hyper-parameters by name (n,)."""
        r = np.log(at["rate"]) - 0.5 * np.log(at["batch"]) - np.log1p(-at["momentum"])
        seen = {
            "decay": np.log(at["decay"]),
            "units": np.log(at["units"]),
            "layers": at["layers"],
            "dropout": at["dropout"],
        }
        off = self.matter_rate * np.square(np.minimum(r, self.limit) - self.rate)
        off = off + sum(m * np.square(seen[n] - self.best[n]) for n, m in self.matter.items())
        level = self.top * np.exp(-0.25 * off)
        tau = self.pace * np.exp(-self.slope * (r - self.rate) + 0.8 * seen["dropout"])
        rise = 1.0 - np.exp(-np.power(step / tau, self.bend))
        loose = np.clip((seen["units"] - 5.0) / 2.0, 0.0, 1.0) * np.exp(-3.0 * seen["dropout"])
        loose = loose * np.clip(-(seen["decay"] + 5.0) / 6.0, 0.0, 1.0)
        late = np.maximum(step / tau - 2.0, 0.0)
        fall = self.fall * loose * (1.0 - np.exp(-0.1 * late))
        value = self.chance + np.maximum(level - self.chance, 0.0) * rise - fall
        return np.where(r > self.limit, self.chance, value)

    def curve(self, point: Mapping[str, Any], seed: int) -> Callable[[int], float]:
        """With some noise, which is of the evaluation on a finite set."""
        at = {n: np.array([float(v)]) for n, v in point.items()}
        noise = np.random.default_rng([seed, 7]).normal(0.0, 0.005, self.steps + 1)
        return lambda step: float(self.means(at, step)[0] + noise[step])

    def final(self, point: Mapping[str, Any], value: float) -> float:
        """What a training is worth: its value at the end without noise."""
        del value
        at = {n: np.array([float(v)]) for n, v in point.items()}
        return float(self.means(at, self.steps)[0])

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The median of random configurations, and the best of 100 000 that is then refined."""
        rng = np.random.default_rng(5)

        def drawn(u: np.ndarray) -> dict[str, np.ndarray]:
            logs = zip(u[:4], _LOGS.items(), strict=True)
            flat = zip(u[4:], _FLAT.items(), strict=True)
            found = {n: np.exp(np.log(a) + c * np.log(b / a)) for c, (n, (a, b)) in logs}
            found |= {n: a + c * (b - a) for c, (n, (a, b)) in flat}
            return {**found, "layers": np.round(found["layers"])}

        u = rng.random((7, 100_000))
        values = self.means(drawn(u), self.steps)
        middle = float(np.median(values))
        best, top = u[:, int(values.argmax())], float(values.max())
        for scale in np.geomspace(0.2, 0.002, 60):
            near = np.clip(best[:, None] + scale * rng.standard_normal((7, 2000)), 0.0, 1.0)
            values = self.means(drawn(near), self.steps)
            if values.max() > top:
                best, top = near[:, int(values.argmax())], float(values.max())
        return middle, top


@cache
def digits() -> tuple[np.ndarray, ...]:
    """Images (n, 64) and digits (n,) of 600 to train on, and of the other 1197."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = (x[order] / 16.0).astype(np.float32), y[order]
    return x[:600], y[:600], x[600:], y[600:]


class Digits:
    """A network with one hidden layer, trained by gradients with momentum on 600 images of digits.

    The value is the mean log loss on the other 1197, at most twice that of guessing. The ranges of
    the seven hyper-parameters are wide: half of all random points learn nothing.
    """

    steps, goal = 27, "min"
    space = covey.Space(
        {
            "rate": covey.Real(1e-5, 10.0, log=True),
            "momentum": covey.Real(0.0, 0.99),
            "batch": covey.Integer(8, 256, log=True),
            "units": covey.Integer(4, 256, log=True),
            "decay": covey.Real(1e-6, 1.0, log=True),
            "dropout": covey.Real(0.0, 0.9),
            "start": covey.Real(0.01, 10.0, log=True),
        }
    )
    ends = (2.303, 0.065)  # `python -m benchmarks.curves digits`, and the best of all runs

    def __init__(self, seed: int) -> None:
        del seed

    def curve(self, point: Mapping[str, Any], seed: int) -> Callable[[int], float]:
        """Trains one epoch at each call."""
        network = _Network(point, np.random.default_rng([seed, 11]))

        def step(number: int) -> float:
            del number
            with np.errstate(all="ignore"):
                network.train_an_epoch()
                loss = network.loss()
            worst = 2.0 * math.log(10.0)
            return min(loss, worst) if math.isfinite(loss) else worst

        return step

    def final(self, point: Mapping[str, Any], value: float) -> float:
        """What was measured."""
        del point
        return value


class _Network:
    """Weights from 64 pixels to hidden units and from these to 10 digits, and their speeds."""

    def __init__(self, point: Mapping[str, Any], rng: np.random.Generator) -> None:
        wide = int(point["units"])
        spread = float(point["start"]) * np.sqrt([2 / 64, 2 / wide])
        first = rng.normal(0, spread[0], (64, wide)), rng.normal(0, spread[1], (wide, 10))
        self._weights = [*(one.astype(np.float32) for one in first)]
        self._weights += [np.zeros(wide, np.float32), np.zeros(10, np.float32)]
        self._speeds = [np.zeros_like(one) for one in self._weights]
        self._size, self._keep = int(point["batch"]), 1.0 - float(point["dropout"])
        self._rate, self._momentum = float(point["rate"]), float(point["momentum"])
        self._decays = (float(point["decay"]),) * 2 + (0.0, 0.0)
        self._rng = rng

    def train_an_epoch(self) -> None:
        """Go through the images once, in random order."""
        x, y, _, _ = digits()
        order = self._rng.permutation(len(x))
        for start in range(0, len(x), self._size):
            rows = order[start : start + self._size]
            self._move(self._slopes(x[rows], y[rows]))

    def _slopes(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
        w = self._weights
        hidden = x @ w[0] + w[2]
        kept = self._rng.random(hidden.shape, np.float32) < self._keep
        mask = (hidden > 0) * kept / np.float32(self._keep)
        hidden = hidden * mask
        error = _softmax(hidden @ w[1] + w[3])
        error[np.arange(len(y)), y] -= 1.0
        error /= len(y)
        back = (error @ w[1].T) * mask
        return x.T @ back, hidden.T @ error, back.sum(0), error.sum(0)

    def _move(self, slopes: tuple[np.ndarray, ...]) -> None:
        for i, (slope, decay) in enumerate(zip(slopes, self._decays, strict=True)):
            self._speeds[i] *= self._momentum
            self._speeds[i] -= self._rate * (slope + decay * self._weights[i])
            self._weights[i] += self._speeds[i]

    def loss(self) -> float:
        """The mean log loss on the images that are not trained on."""
        w, (_, _, x, y) = self._weights, digits()
        chances = _softmax(np.maximum(x @ w[0] + w[2], 0.0) @ w[1] + w[3])
        return float(-np.log(np.maximum(chances[np.arange(len(y)), y], 1e-12)).mean())


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


Training = Made | Digits
TASKS: dict[str, type[Made] | type[Digits]] = {"made": Made, "digits": Digits}
