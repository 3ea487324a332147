import json
import zlib

import numpy as np
import pytest

import covey
from covey.arguments import checked_gp, checked_seed, each, ids_of, sequence_of
from covey.errors import HistoryError, JournalError, SpaceError, StrategyError
from covey.gp import GP
from covey.history import Point, Trial
from covey.log.journal import Journal
from covey.log.log import checked_path
from covey.outcomes import Outcomes
from covey.policies import EI


def test_trials_and_ids_are_the_same_to_a_caller():
    trial = Trial(3, Point(x=1.0))
    assert ids_of(trial) == ids_of(3) == ids_of([trial]) == ids_of(np.array([3])) == (3,)
    assert ids_of(np.int64(3)) == (3,)


def test_one_error_stands_for_all():
    plain = Outcomes.of("max")
    assert each(None, 3, plain) == ()
    assert each(0.1, 2, plain) == (0.1, 0.1)
    assert each([0.1, None], 2, plain) == (0.1, None)


def test_several_values_are_a_sequence():
    assert sequence_of(np.array([1.0, 2.0]), "values") == (1.0, 2.0)
    with pytest.raises(HistoryError, match=r"got 1\.0"):
        sequence_of(1.0, "values")


def test_seeds():
    assert checked_seed(np.int64(4)) == 4
    assert checked_seed(None) >= 0
    for wrong in (-1, 1.5, True, "0"):
        with pytest.raises(StrategyError, match="whole number >= 0"):
            checked_seed(wrong)


@pytest.mark.parametrize("wrong", [None, 1.5, {1, 2}, {1: 2}, "0"])
def test_trials_come_in_order(wrong):
    with pytest.raises(HistoryError, match="a list of these in order"):
        ids_of(wrong)


def test_a_process_and_a_path():
    assert checked_gp(None) == GP()
    assert checked_path(None) is None
    assert str(checked_path("run.jsonl")) == "run.jsonl"
    with pytest.raises(StrategyError, match="'matern'"):
        checked_gp("matern")
    with pytest.raises(JournalError, match=r"run\.jsonl"):
        checked_path(3)


# Whatever is passed by mistake: an error of ours that names it, and a log as it was


SPACE = covey.Space({"x": covey.Real(0.0, 1.0), "y": covey.Real(0.0, 1.0)})
RAGGED = [[1.0], [1.0, 2.0]]
TWO = [{"x": 0.1, "y": 0.2}, {"x": 0.3, "y": 0.4}]


@pytest.fixture
def study():
    made = covey.Study(SPACE, seed=0)
    made.add(TWO, [1.0, 2.0])
    made.enqueue(TWO)
    return made


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s: s.tell([2, 3], RAGGED), HistoryError, r"trial 2: value must be a real number"),
        (lambda s: s.tell([2, 3], [1.0, 2.0], sem=RAGGED), HistoryError, "trial 2: sem must be"),
        (lambda s: s.add(TWO, RAGGED), HistoryError, "point 1 of 2: value must be"),
        (lambda s: s.add(TWO, [1.0, 2.0], sem=RAGGED), HistoryError, "point 1: sem must be"),
        (lambda s: s.ask(time_budget=1e308), StrategyError, "time_budget.*1e\\+09"),
        (lambda s: s.ask(time_budget=10**400), StrategyError, "time_budget"),
        (lambda s: s.ask(time_budget=10**5000), StrategyError, "time_budget"),
        (lambda s: s.ask(time_budget=np.complex128(1j)), StrategyError, "time_budget"),
        (lambda s: s.ask(key=[1]), HistoryError, r"a key is a text.*got \[1\]"),
        (lambda s: s.ask(key=""), HistoryError, "a key is a text"),
        (lambda s: s.ask(fixed=np.array([0.1, 0.2])), SpaceError, "must be a dict"),
        (lambda s: s.ask(fixed=[("x", 0.1)]), SpaceError, "must be a dict"),
        (lambda s: s.ask(strategy=covey.strategies.DPP(EI(width="x"))), StrategyError, "width"),
        (lambda s: s.predict(3), SpaceError, "points is a list of points"),
        (lambda s: s.predict("x"), SpaceError, "points is a list of points"),
    ],
)
def test_a_wrong_argument_is_named_and_leaves_no_trace(study, call, error, words):
    before = study.history.events
    with pytest.raises(error, match=words):
        call(study)
    assert study.history.events == before


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: covey.Pool("a" * 5000), SpaceError, "cannot look for.*name too long"),
        (
            lambda: covey.Choice(["a", "b"], features="a" * 5000),
            SpaceError,
            "cannot look for.*name too long",
        ),
        (lambda: covey.Study(SPACE, prior=["a" * 5000]), JournalError, "look for.*name too long"),
        (lambda: covey.Choice([10**5000, 1]), SpaceError, "more than 4300 digits.*text"),
        (lambda: covey.Choice([-(10**5000), 1]), SpaceError, "more than 4300 digits.*text"),
        (lambda: EI(width=float("nan")), StrategyError, "width.*nan"),
        (lambda: EI(width="x"), StrategyError, "width.*'x'"),
        (lambda: EI(width=-1.0), StrategyError, "width"),
        (lambda: EI(width=True), StrategyError, "width"),
    ],
)
def test_what_makes_no_sense_is_not_made(make, error, words):
    with pytest.raises(error, match=words):
        make()


GOOD = {"kernel": "matern52", "lengths": [0.5, 0.5], "variance": 1.0, "noise": 0.1, "mean": 0.0}


def journal_with(path, models):
    """A journal whose last ask names these hyper-parameters, under a seal that holds."""
    study = covey.Study(SPACE, strategy="bucb", seed=0, journal=path)
    study.tell(study.ask(3), [1.0, 2.0, 3.0])
    study.ask(1)
    lines = path.read_bytes().splitlines(keepends=True)
    fields = json.loads(lines[-1])
    del fields["crc"]
    fields["models"] = models
    body = json.dumps(fields, separators=(",", ":")).encode()[:-1]
    lines[-1] = body + b',"crc":"%08x"}\n' % zlib.crc32(body)
    path.write_bytes(b"".join(lines))
    return path


@pytest.mark.parametrize(
    "models",
    [
        [{}],
        [GOOD | {"kernel": "nonsense"}],
        [GOOD | {"kernel": ["matern52"]}],
        [GOOD | {"lengths": 3}],
        [GOOD | {"lengths": ["a", "b"]}],
        [GOOD | {"lengths": [0.5, -0.5]}],
        [GOOD | {"lengths": [0.5, None]}],
        [GOOD | {"lengths": [0.5, True]}],
        [GOOD | {"lengths": {"x": 1}}],
        [GOOD | {"variance": "1"}],
        [GOOD | {"variance": 0}],
        [GOOD | {"noise": -1.0}],
        [GOOD | {"noise": [1]}],
        [GOOD | {"noise": 10**400}],
        [GOOD | {"mean": {}}],
        [GOOD | {"bent": "yes"}],
        [GOOD | {"framed": 1}],
        [GOOD, GOOD | {"mean": None}],
    ],
)
def test_hyper_parameters_of_a_log_that_make_no_sense_are_named_with_their_event(tmp_path, models):
    path = journal_with(tmp_path / "run.jsonl", models)
    for use in (lambda s: s.ask(2), lambda s: s.recommend(), lambda s: s.predict(TWO)):
        with pytest.raises(HistoryError, match="event 3"):
            use(covey.Study.load(path))
    assert len(Journal.open(path).events) == 3


@pytest.mark.parametrize("models", [[GOOD], [GOOD, GOOD], [GOOD | {"lengths": [0.5]}], []])
def test_hyper_parameters_that_make_sense_are_used_or_passed_over(tmp_path, models):
    """Those of another width, or another number of them, are where a fit starts, if at all."""
    study = covey.Study.load(journal_with(tmp_path / "run.jsonl", models))
    assert len(study.ask(2)) == 2


def test_what_is_held_fixed_breaks_no_constraint_of_its_own():
    space = covey.Space(
        {
            "T": covey.Integer(20, 120),
            "solvent": covey.Choice(["THF", "DMF"]),
            "x": covey.Real(0, 1),
        },
        where=[
            covey.Implies({"solvent": "THF"}, {"T": (None, 60)}),
            covey.Linear({"T": 1, "x": 50}, upper=150),
        ],
    )
    study = covey.Study(space, seed=0)
    with pytest.raises(SpaceError, match=r"\{'T': 80, 'solvent': 'THF'\}.*'THF': T <= 60.*80"):
        study.ask(2, fixed={"T": 80, "solvent": "THF"})
    assert study.ask(1, fixed={"T": 80})[0].point["solvent"] == "DMF"
    assert study.ask(1, fixed={"T": 60, "solvent": "THF"})
    assert study.ask(1, fixed={"T": 120})[0].point["x"] <= 0.6
