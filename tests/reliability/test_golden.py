"""R9: journals of every released version load to the state they had, for ever."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.reliability.golden.state import state_of
from tests.reliability.mutants import planted
from tests.reliability.verdict import Broken, demand

import covey
from covey.baselines import Hallucinated
from covey.errors import JournalError
from covey.history import Event, Late
from covey.learn import NAMES
from covey.log.journal import Journal, header_line, read
from covey.policies import UCB
from covey.strategies import DPP

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.jsonl"))
STATE = "a frozen journal loads to another state"


def check_golden(path: Path, read_only: bool = False) -> covey.Study:
    """Load a copy, and compare with what was written beside it when it was made."""
    expected = json.loads(path.with_name(f"{path.stem}.json").read_text(encoding="utf-8"))
    try:
        study = covey.Study.load(path, read_only=read_only)
    except JournalError as error:
        raise Broken(f"{STATE}: {error}") from error
    found = json.loads(json.dumps(state_of(study)))
    for name, value in expected.items():
        demand(found[name] == value, STATE, name, found[name], value)
    return study


@pytest.fixture(params=GOLDEN, ids=lambda path: path.stem)
def golden(request, tmp_path):
    for suffix in (".jsonl", ".json"):
        name = f"{request.param.stem}{suffix}"
        shutil.copy(request.param.with_name(name), tmp_path / name)
    return tmp_path / request.param.name


def test_there_is_a_frozen_journal_of_this_version():
    assert f"{covey.__version__}" in [path.stem for path in GOLDEN]


def test_a_frozen_journal_loads_to_the_state_it_had(golden):
    before = golden.read_bytes()
    check_golden(golden, read_only=True)
    check_golden(golden)
    assert golden.read_bytes() == before


def test_a_frozen_journal_can_be_gone_on_with(golden):
    study = check_golden(golden)
    count = len(study.history)
    batch = study.ask(2)
    assert [trial.id for trial in batch] == [count, count + 1]
    study.tell(batch, [9.0, 8.0])
    assert study.ask(4, key="first plate") == list(study.history.trials[2:6])
    assert len(covey.Study.load(golden).history) == count + 2


def rewrite_header(path: Path, **fields: object) -> None:
    """Make the header of a journal say something else."""
    header, rest = path.read_bytes().split(b"\n", 1)
    said = {**json.loads(header), **fields}
    for reserved in ("covey", "min_reader", "created", "crc"):
        del said[reserved]
    path.write_bytes(header_line(said) + rest)


@pytest.mark.parametrize("name", ["ucb-dpp-max", "ucb-dpp-sample", "ucb-pe", "bucb"])
@pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
def test_a_frozen_journal_goes_on_with_the_strategies_that_its_names_stood_for(
    version, name, tmp_path
):
    """Those of UCB had the width of the theorem until 0.3."""
    (golden,) = [path for path in GOLDEN if path.stem == version]
    path = Path(shutil.copy(golden, tmp_path))
    rewrite_header(path, strategy={"name": name, "object": False})
    theorem = UCB("theory")
    own = {
        "bucb": Hallucinated(theorem),
        "ucb-dpp-sample": DPP(theorem, then="sample"),
    }.get(name, DPP(theorem, then="max"))

    def chosen(strategy=None):
        study = covey.Study.load(path).rehearsal()
        trials = study.ask(3, strategy=strategy)
        return study.diagnostics.width, [trial.point for trial in trials]

    width, points = chosen(own)
    assert chosen() == chosen(name) == (width, points)
    space = covey.Study.load(path).space
    named = covey.Study(space, "min", name, journal=path)  # as a covey.toml has it
    assert [trial.point for trial in named.ask(3)] == points
    assert named.diagnostics.width == width > 4.0


def test_names_of_strategies_that_a_newer_covey_gave_another_meaning_are_not_guessed_at(tmp_path):
    path = tmp_path / "run.jsonl"
    covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0, journal=path)
    assert covey.Study.load(path).recipe.names == NAMES
    rewrite_header(path, names="9.0")
    with pytest.raises(JournalError, match=r"9\.0.*upgrade"):
        covey.Study.load(path)


def test_the_frozen_journal_of_this_version_holds_every_kind_of_event():
    events = read(GOLDEN[-1]).events
    kinds = {kind.__name__.lower() for kind in Event.__args__}
    assert {event["type"] for event in events} == kinds
    assert any("models" in event for event in events)
    assert any("key" in event for event in events)
    assert Late in Event.__args__


def test_what_the_first_frozen_journal_says():
    """By hand, so that the state beside it cannot be wrong in the same way."""
    history = check_golden(GOLDEN[0], read_only=True).history
    statuses = [trial.status for trial in history.trials]
    assert statuses == ["told"] * 8 + ["failed", "cancelled", "pending", "told"]
    told = [3.25, -0.1, 1.0, 2.0, 0.30000000000000004, 1e-300, 0.75, 0.125]
    assert [trial.value for trial in history.trials[:8]] == told
    assert history.trials[11].value == -2.5
    assert [trial.sem for trial in history.trials[:7]] == [0.5, *[None] * 5, 0.25]
    assert history.trials[0].point["solvent"] == "éther"
    assert history.attempts(6)[0].seed == 2**63 - 1
    assert (history.asked_count, history.rounds) == (8, 2)
    assert history.best("min").id == 11


def test_what_the_second_frozen_journal_says_beyond_the_first():
    history = check_golden(GOLDEN[1], read_only=True).history
    assert history.trials[11].excluded
    assert history.reason(11) == "the cell was wet"
    assert history.reason(9) == "no vial"
    assert (history[-1].status, history[-1].value) == ("failed", None)
    assert history[-1].reason == "a loose cable"
    assert history[-1].asked_at <= history[-1].ended_at
    assert [trial.id for trial in history.counted] == [0, 1, 2, 3, 4, 5, 6, 7, 12, 15, 16]
    assert (history[12].value, history[12].values["impurity"]) == (0.5, 1.25)
    assert (history[13].value, history[13].values) == (None, {"yield": 61.0, "cost": 33.0})
    assert (history[14].status, history.reports(14)[0].value) == ("pending", 0.25)
    assert history.notes(12) == ("cloudy, 18 °C",)
    assert history[15].status == history[16].status == "told"  # by the wells of a plate
    assert history.best("min").id == 1


@pytest.mark.parametrize("defect", ["keys not replayed", "newest first"])
def test_frozen_journals_would_catch(golden, defect):
    with pytest.raises(Broken, match=STATE), planted(defect):
        check_golden(golden)


# ---------------------------------------------------------------- journals of versions to come


def appended(path: Path, event: dict[str, object]) -> None:
    with Journal.open(path) as journal:
        journal.append(event)


def test_a_newer_covey_may_add_fields_and_events_that_can_be_passed_over(golden):
    trials = check_golden(golden).history.trials
    appended(golden, {"type": "weather", "v": 3, "ignorable": True, "sun": True})
    told = {"type": "told", "v": 1, "ids": [10], "values": [4.0], "by": "a robot of next year"}
    appended(golden, told)
    history = covey.Study.load(golden).history
    assert history.trials[10].value == 4.0
    assert history.trials[:10] == trials[:10]


@pytest.mark.parametrize("event", [{"type": "weather", "v": 1}, {"type": "told", "v": 3}])
def test_what_a_newer_covey_wrote_is_not_guessed_at(golden, event):
    appended(golden, event)
    with pytest.raises(JournalError, match=r"newer covey.*upgrade"):
        covey.Study.load(golden)
