"""Draw the picture of docs/failures.md: where trials fail, as learnt, and how many still do.

Run it from the root of the repository: `python docs/pictures/draw_failures.py`; it writes
failures.png beside itself, in a minute.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from covey import Real, Space, Study

SQUARE = Space({"heat": Real(20.0, 120.0), "dose": Real(0.0, 1.0)})
BATCH, ROUNDS, SEEDS, SIDE = 8, 8, 5, 81


def output(heat: float, dose: float) -> float:
    """Rises with the heat."""
    return heat / 100.0 - (dose - 0.4) ** 2


def decomposes(heat: float, dose: float) -> bool:
    """The hotter, the smaller the dose that is borne."""
    return heat + 40.0 * dose > 90.0


def one_run(seed: int, *, told: bool) -> tuple[Study, list[int]]:
    """A study, and how many failed in each batch; not ``told``, Covey never hears of it."""
    study, failed = Study(SQUARE, seed=seed), []
    for _ in range(ROUNDS):
        batch = study.ask(BATCH)
        bad = [trial for trial in batch if decomposes(**trial.point)]
        good = [trial for trial in batch if not decomposes(**trial.point)]
        failed.append(len(bad))
        if bad:
            (study.fail if told else study.cancel)(bad)
        if good:
            study.tell(good, [output(**trial.point) for trial in good])
    return study, failed


def main() -> None:
    """Run the studies and draw both panels."""
    runs = {told: [one_run(seed, told=told) for seed in range(SEEDS)] for told in (True, False)}
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    study = runs[True][0][0]
    heat, dose = np.linspace(20.0, 120.0, SIDE), np.linspace(0.0, 1.0, SIDE)
    found = study.predict([{"heat": x, "dose": y} for y in dose for x in heat]).success
    if found is not None:
        shown = left.contourf(
            heat, dose, found.reshape(SIDE, SIDE), np.linspace(0.0, 1.0, 11), cmap="RdYlBu"
        )
        figure.colorbar(shown, ax=left, label="probability of success")
    left.plot([90.0, 50.0], [0.0, 1.0], "k--", linewidth=1.0, label="the border")
    for trials, marker, name in (
        (study.history.told, "ko", "told"),
        (study.history.failed, "kx", "failed"),
    ):
        at = np.array([(t.point["heat"], t.point["dose"]) for t in trials])
        left.plot(*at.T, marker, markersize=4.5, label=name, clip_on=False)
    left.set(xlabel="heat", ylabel="dose", title=f"{BATCH * ROUNDS} trials of one study")
    left.legend(loc="upper left", fontsize=9, framealpha=0.9)
    for told, colour, name in (
        (True, "#0072b2", "study.fail(trials)"),
        (False, "#d55e00", "not told of failures"),
    ):
        counts = np.mean([failed for _, failed in runs[told]], axis=0)
        right.plot(range(1, ROUNDS + 1), counts, "o-", color=colour, label=name)
    right.set(
        xlabel="batch",
        ylabel=f"failed, of {BATCH}",
        ylim=(-0.2, BATCH + 0.2),
        title=f"mean of {SEEDS} studies",
    )
    right.legend(loc="center right", fontsize=9)
    figure.savefig(Path(__file__).with_name("failures.png"), dpi=110)


if __name__ == "__main__":
    main()
