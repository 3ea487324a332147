"""Write the frozen journal of this version: ``python -m tests.reliability.golden``.

Anew with each new kind of event until the version is released, and never again: a journal of a
version that is out there does not change.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.reliability.golden.state import state_of

import covey
from covey.history import (
    Began,
    Dispatched,
    Ended,
    Excluded,
    Extended,
    Included,
    Late,
    Lost,
    Moved,
    Noted,
    Reported,
    Retried,
    Told,
)

HERE = Path(__file__).parent
SPACE = covey.Space(
    {
        "rate": covey.Real(1e-5, 1.0, log=True),
        "layers": covey.Integer(1, 8),
        "solvent": covey.Choice(["water", "éther", None]),
        "dry": covey.Choice([False, True]),
    }
)


def write(path: Path) -> covey.Study:
    """A study to which everything happens that can happen."""
    study = covey.Study(SPACE, goal="min", seed=20261115, journal=path)
    point = {"rate": 0.01, "layers": 3, "solvent": "éther", "dry": True}
    study.add([point, {**point, "layers": 4}], [3.25, -0.1], sem=[0.5, None], key="old notebook")
    study.tell(study.ask(4, key="first plate"), [1.0, 2.0, 0.1 + 0.2, 1e-300], key="first results")
    # By the model, whose hyper-parameters are written down.
    batch = study.ask(4, strategy="bucb")
    study.note(Dispatched(batch[0].id, 1, "covey-golden-6-a1", 2**63 - 1))
    study.note(Dispatched(batch[1].id, 1, "covey-golden-7-a1", 7))
    study.tell(batch[0], 0.75, sem=0.25)
    study.note(Late(batch[0].id, 1, 0.5))
    study.note(Lost((batch[1].id,), "the machine went away"))
    study.fail(batch[2], "exploded: 100 °C")
    study.cancel(batch[3], "no vial")
    own = study.enqueue([point, {**point, "solvent": None, "dry": False}], key="mine")
    study.tell(own[1], -3.0)
    study.amend(own[1], -2.5, "a typo")
    study.tell(batch[1], 0.125)  # after it was lost: a late result is never thrown away
    # Kinds that 0.1 did not have.
    more = study.enqueue([{**point, "layers": n} for n in (5, 6, 7)])
    named = {"value": 0.5, "impurity": 1.25}
    study.note(Told((more[0].id,), (named,), (0.125,), ({"operator": "é"},), goal="value"))
    study.note(Told((more[1].id,), ({"yield": 61.0, "cost": 33.0},)))
    study.note(Excluded((own[1].id, batch[0].id), "the cell was wet"))
    study.note(Included((batch[0].id,), "another cell"))
    study.note(Noted((own[1].id, more[0].id), "cloudy, 18 °C"))
    study.fail(more[2], "a leak")
    study.note(Retried((more[2].id,)))
    study.note(Dispatched(more[2].id, 1, "covey-golden-14-a1", 14))
    study.note(Reported(more[2].id, 1, 10, 0.25))
    study.note(Extended(SPACE.describe(), SPACE.fingerprint, "to what it is already"))
    _fill_a_plate_and_fail(study)
    return study


def _fill_a_plate_and_fail(study: covey.Study) -> None:
    layout = covey.Layout(plate=6, shared={"dry": "plate"}, controls={"blank": 1}, replicates=2)
    (plate,) = study.ask_plates(1, layout, strategy="random")
    readings = {well.name: 0.5 + 0.25 * place for place, well in enumerate(plate.used)}
    study.tell_plate(plate, readings, marks={plate.used[-1].name: "bubble"})
    wells = [well.name for well in plate.used if well.trial is not None]
    study.amend_wells(plate, {wells[0]: 0.75}, "a dilution was forgotten")
    study.mark_wells(plate, wells[1:3], "dust, 18 °C", key="seen later")
    study.unmark_wells(plate, wells[1], "it was the neighbour")
    trial = study.history[plate.trials[0]]
    study.note(Moved((trial.id,), ({**trial.point, "layers": 2},), "as it was built"))
    worthless = study.enqueue([{"rate": 0.01, "layers": 8, "solvent": "éther", "dry": True}])
    study.tell(worthless, [9.0])
    study.fail(worthless, "a loose cable", told=True)
    study.note(Began("0a1b2c3d", 4711, "tern", {"total": 12, "batch": 4, "slots": None}))
    study.note(Ended("0a1b2c3d", "Ctrl-C, at 18 °C"))


if __name__ == "__main__":
    target = HERE / f"{covey.__version__}.jsonl"
    state = state_of(write(target))
    text = json.dumps(state, indent=1, ensure_ascii=False)
    target.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
