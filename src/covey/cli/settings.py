"""`Settings`: the file covey.toml, read with every key checked."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import covey
from covey.cli.mixtures import constraint_of
from covey.cli.output import ExitCode, Stop
from covey.errors import SpaceError, StrategyError, did_you_mean
from covey.tables import bounded

if TYPE_CHECKING:  # help is quick: covey.Space and the like are loaded when first used
    from covey.arguments import StudyArguments
    from covey.log.header import OpenedLog
    from covey.outcomes import Outcomes
    from covey.space import Implies, Parameter, Pool, Space
    from covey.space.constraints import Constraint
    from covey.study import Study

_MOST = 2**24  # bytes of the file
_DEEPEST = 50  # lists and tables within each other
_BITS = 1024  # of an integer: what a float can hold

_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
    bool: "true or false",
    list: "a list in [ ]",
    dict: "a table in { }",
}
_STUDY: dict[str, Any] = {
    "goal": (str, dict),
    "limits": dict,
    "record": list,
    "worst": dict,
    "prior": list,
    "batch": int,
    "strategy": str,
    "seed": int,
    "journal": str,
}
_LAYOUT: dict[str, Any] = {
    "plate": (int, list),
    **dict.fromkeys(("shared", "distinct", "total", "controls"), dict),
    "replicates": int,
    **dict.fromkeys(("spread", "edge", "order"), str),
    **dict.fromkeys(("reserved", "effects"), list),
}
_RUN: dict[str, Any] = {"command": list, "result": str, "workers": int, "rounds": int}
_FROM_HINT = {bool: (bool,), int: (int,), float: (int, float), str: (str,)}
_FROM_HINT |= {Sequence: (list,), Mapping: (dict,)}


@dataclass(frozen=True)
class RunSettings:
    """The table [run]: what evaluates a point, and how."""

    command: tuple[str, ...] = ()
    result: Literal["stdout", "file"] = "stdout"
    workers: int | None = None  # 4, or one for each slot of the GPUs
    rounds: int | None = None  # 20, unless something else ends the run
    options: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments of a run


@dataclass(frozen=True)
class Settings:
    """A study as covey.toml describes it; paths are relative to the file."""

    path: Path
    wanted: StudyArguments
    batch: int = 8
    journal: Path = Path("covey.jsonl")
    run: RunSettings = field(default_factory=RunSettings)
    rules: tuple[Path, ...] = ()  # files of rules
    plate: Mapping[str, Any] | None = None  # the table [plate], a layout
    dispense: Sequence[Mapping[str, Any]] = ()  # the tables [[dispense]]

    @property
    def space(self) -> Space | Pool:
        """The space to search."""
        return self.wanted.space

    @property
    def outcomes(self) -> Outcomes:
        """Goals, limits and records."""
        return self.wanted.outcomes

    @property
    def files(self) -> tuple[Path, ...]:
        """The study's own files, which no command may overwrite."""
        pool = self.space.describe().get("path")
        held = () if pool is None else (Path(pool),)
        held = (
            *held,
            *_feature_files(self.space),
            *self.rules,
            *map(Path, self.wanted.prior or ()),
        )
        return (self.path, self.journal, *held)

    def study(self) -> Study:
        """The study, started or resumed."""
        return self.on(self.journal)

    def on(self, log: Any) -> Study:
        """The study on a log; None keeps it in memory."""
        return covey.Study(journal=log, **self.wanted.given)

    def changed(self, **study: Any) -> Settings:
        """The same with other arguments of the study."""
        return replace(self, wanted=replace(self.wanted, **study))

    def look(self, *, own: bool = False) -> Study:
        """The study opened read-only from its journal, which must fit these settings.

        With ``own`` in the space that the journal has, whatever the file says by now.
        """
        from covey.log.header import reopen

        contents = reopen(self.journal, read_only=True)
        return self.in_its_own_space(contents) if own else self.on(contents)

    def change(self) -> Study:
        """The study, to record what became of its trials, in the space that the journal has."""
        from covey.log.header import reopen

        return self.in_its_own_space(reopen(self.journal))

    def in_its_own_space(self, opened: OpenedLog) -> Study:
        """The study on a log, in the space that the log has."""
        return self.changed(space=opened.space(like=self.space)).on(opened)

    def differences(self, study: Study) -> list[str]:
        """What the file has otherwise than the space of a study, in words."""
        from covey.space.changes import differences
        from covey.space.description import as_described

        given = as_described(self.space, study.space.describe())
        if given.fingerprint == study.space.fingerprint:
            return []
        return differences(study.space, given) or ["the space"]


def _feature_files(space: Space | Pool) -> list[Path]:
    """The files that describe the options of choices."""
    every = space.parameters.values()
    found = (getattr(getattr(one, "features", None), "source", None) for one in every)
    return [Path(path) for path in found if path is not None]


def read_settings(path: Path) -> Settings:
    """Read and check covey.toml."""
    try:
        text = bounded(path, _MOST).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise Stop(
            ExitCode.CONFLICT,
            f"there is no {path}; `covey init` writes one, or name yours with --config.",
        ) from error
    except OSError as error:
        raise Stop(ExitCode.FAILED, f"cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Stop(ExitCode.INVALID, f"{path} is not UTF-8 text: {error}.") from error
    return parse_settings(text, path)


def _way(text: str, error: tomllib.TOMLDecodeError) -> str:
    """What to do about a line with a decimal comma, which TOML does not know."""
    at = re.search(r"at line ([0-9]+)", str(error))
    line = text.splitlines()[int(at[1]) - 1].strip() if at else ""
    comma = re.search(r"[=:]\s*[+-]?[0-9]+,[0-9]", line)
    return f" Numbers have a decimal point there; the line is {line!r}." if comma else ""


def parse_settings(text: str, path: Path) -> Settings:
    """Settings from the text of a file, which need not exist yet."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Stop(ExitCode.INVALID, f"{path} is not TOML: {error}.{_way(text, error)}") from error
    except RecursionError as error:
        raise Stop(
            ExitCode.INVALID, f"{path} nests lists or tables too deeply to be read."
        ) from error
    except ValueError as error:  # Python reads no integer of more than some thousand digits
        raise Stop(ExitCode.INVALID, f"{path} holds a number too long to be read.") from error
    try:
        _require_sane(tables)
        return _settings(tables, path)
    except (SpaceError, StrategyError) as error:
        raise Stop(ExitCode.INVALID, f"{path}: {error}") from error


def _require_sane(tables: Mapping[str, Any]) -> None:
    """Refuse integers too large for a float and very deep nesting, which messages cannot show."""
    level: list[Any] = [tables]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                inner += value.values()
            elif isinstance(value, list):
                inner += value
            elif isinstance(value, int) and value.bit_length() > _BITS:
                digits = round(value.bit_length() * 0.30103)
                raise SpaceError(f"it holds an integer of about {digits} digits; 300 are enough.")
        if not inner:
            return
        level = inner
    raise SpaceError(f"it nests lists or tables more than {_DEEPEST} levels deep.")


def _settings(tables: Mapping[str, Any], path: Path) -> Settings:
    from covey.arguments import StudyArguments
    from covey.catalog import strategy_of

    known = ("study", "parameters", "constraints", "pool", "run", "plate", "dispense")
    _require_known(tables, known, "the file")
    study = _typed(tables.get("study", {}), _STUDY, "[study]")
    goal = study.get("goal", "max")
    if isinstance(goal, str) and goal not in ("max", "min"):
        raise SpaceError(
            f'[study]: goal must be "max" or "min", or a table of several, got {goal!r}.'
        )
    if study.get("batch", 1) < 1 or study.get("seed", 0) < 0:
        raise SpaceError("[study]: batch must be at least 1, and seed at least 0.")
    if "strategy" in study:
        strategy_of(study["strategy"])  # the error names the nearest one
    journal = path.parent / study.pop("journal", "covey.jsonl")
    if "prior" in study:
        study["prior"] = [path.parent / str(one) for one in study["prior"]]
    space = space_of(tables, path)
    named = [row["rules"] for row in tables.get("constraints", []) if "rules" in row]
    rules = tuple(path.parent / name for name in named)
    batch = study.pop("batch", 8)
    run, wanted = _run_settings(tables), StudyArguments(space, **study)
    found = Settings(path, wanted, batch, journal, run, rules)
    return with_plates(found, tables.get("plate"), tables.get("dispense", ()))


def _run_settings(tables: Mapping[str, Any]) -> RunSettings:
    """Read the table [run]; beside the command it may have what is an option of a run."""
    options = _run_options()
    table = _typed(tables.get("run", {}), {**_RUN, **options}, "[run]")
    if "command" in table:
        table["command"] = tuple(str(word) for word in table["command"])
    own = {key: value for key, value in table.items() if key in _RUN}
    return RunSettings(**own, options={key: table[key] for key in table if key in options})


def _run_options() -> dict[str, Any]:
    """Return the types that TOML may give each option of a run, by the option's own type."""
    from covey.run.plan import RunOptions

    kinds = {}
    for name, hint in get_type_hints(RunOptions).items():
        members = [get_origin(one) or one for one in get_args(hint) or (hint,)]
        kinds[name] = tuple(kind for one in members for kind in _FROM_HINT.get(one, ()))
    in_file = (name for name in kinds if kinds[name] and name not in ("join", "progress"))
    return {name: bool if kinds[name] == (bool,) else kinds[name] for name in in_file}


def with_plates(settings: Settings, plate: Any, dispense: Any) -> Settings:
    """Settings with a layout of plates and rules for pick lists, both checked."""
    if plate is None and not dispense:
        return settings
    from covey.plates.layout import Layout
    from covey.plates.picking import Dispense

    try:
        if plate is not None:
            Layout.from_description(_typed(plate, _LAYOUT, "[plate]")).against(settings.space)
        for rule in dispense:
            Dispense.from_table(rule)
    except TypeError as error:
        raise SpaceError(f"[plate] or [[dispense]]: {error}.") from error
    return replace(settings, plate=plate, dispense=tuple(dispense))


def space_of(tables: Mapping[str, Any], path: Path) -> Space | Pool:
    """Return the space of [parameters] and [[constraints]], or of [pool], in a file's tables."""
    if ("pool" in tables) == ("parameters" in tables):
        raise SpaceError("give either a table [parameters.NAME] for each parameter, or [pool].")
    if "pool" in tables:
        pool = _typed(
            tables["pool"], {"file": str, "inputs": list, "labels": list, "log": list}, "[pool]"
        )
        if "file" not in pool:
            raise SpaceError("[pool] needs file, a CSV or Parquet file of candidates.")
        return covey.Pool(path.parent / pool.pop("file"), **pool)
    named = tables["parameters"]
    if not isinstance(named, Mapping) or not all(isinstance(t, Mapping) for t in named.values()):
        raise SpaceError('write each parameter as a table: [parameters.lr], then type = "real" ...')
    parameters = {name: _parameter(name, entry, path.parent) for name, entry in named.items()}
    where: list[Constraint] = []
    for row in tables.get("constraints", []):
        if isinstance(row, Mapping) and row.keys() & {"when", "then", "rules"}:
            where += _rules(row, parameters, path)
        else:
            where.append(constraint_of(row, _typed))
    return covey.Space(parameters, where=where)


def _parameter(name: str, entry: Mapping[str, Any], folder: Path) -> Parameter:
    try:
        return parameter_of(entry, folder)
    except SpaceError as error:
        raise SpaceError(f"[parameters.{name}]: {error}") from error


def parameter_of(entry: Mapping[str, Any], folder: Path) -> Parameter:
    """Return the parameter that a table describes; its files are named relative to a folder."""
    from covey.space.parameters import kinds, registered

    kind = entry.get("type")
    made = registered(kind) if isinstance(kind, str) else None
    if made is None:
        *others, last = (f'"{known}"' for known in kinds())
        raise SpaceError(
            f"type must be {', '.join(others)} or {last}, got {kind!r}."
            f"{did_you_mean(kind, kinds())}"
        )
    keys = inspect.signature(made).parameters
    given = {key: value for key, value in entry.items() if key != "type"}
    _require_known(given, keys, "it")
    needed = [key for key, one in keys.items() if one.default is one.empty]
    if not given.keys() >= set(needed):
        raise SpaceError(f"a {kind} needs {' and '.join(needed)}.")
    if isinstance(given.get("features"), str):  # as all paths, relative to the file
        given["features"] = folder / given["features"]
    return made(**given)


def _rules(
    row: Mapping[str, Any], parameters: Mapping[str, Parameter], path: Path
) -> list[Implies]:
    """The rule of a row with when and then, or the rules of the file that it names."""
    from covey.space import read_rules

    kinds = {"when": dict, "then": dict} if "rules" not in row else {"rules": str}
    given = _typed(row, kinds, "[[constraints]]")
    if "rules" not in given:
        if len(given) < 2:
            raise SpaceError(
                "[[constraints]]: a rule needs when and then, such as "
                'when = {solvent = "THF"} and then = {T = {high = 60}}.'
            )
        return [covey.Implies(given["when"], given["then"])]
    return read_rules(path.parent / given["rules"], parameters)


def _typed(table: Any, kinds: Mapping[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise SpaceError(f"{where} must be a table, got {table!r}.")
    _require_known(table, kinds, where)
    for key, value in table.items():
        wrong = isinstance(value, bool) != (kinds[key] is bool)
        if wrong or not isinstance(value, kinds[key]):
            allowed = kinds[key] if isinstance(kinds[key], tuple) else (kinds[key],)
            names = [_WORDS[kind] for kind in allowed if not (kind is int and float in allowed)]
            raise SpaceError(f"{where}: {key} must be {' or '.join(names)}, got {value!r}.")
    return dict(table)


def _require_known(table: Iterable[str], known: Iterable[str], where: str) -> None:
    for key in table:
        if key not in known:
            hint = did_you_mean(key, known)
            raise SpaceError(f"{where} has no key {key!r}; it may have {', '.join(known)}.{hint}")
