"""`covey init`: a commented covey.toml, from flags or from answers to questions.

`parameters_of` and `space_lines` are shared with `covey next`.
"""

from __future__ import annotations

import csv
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import covey
from covey.cli.mixtures import mixtures_from, with_parts
from covey.cli.options import (
    FILE,
    Choices,
    Config,
    DryRun,
    FeatureFiles,
    Force,
    Goals,
    Integers,
    Json,
    Labels,
    Limits,
    Logs,
    Mixtures,
    PoolFile,
    Priors,
    Reals,
    Records,
    Rules,
    Worst,
)
from covey.cli.outcomes import goal_in_words, limits_in_words, worst_in_words
from covey.cli.output import ExitCode, Output, Stop, put_exactly, put_json, say
from covey.cli.rules import rules_from, toml_key, toml_lines, toml_value
from covey.cli.settings import parameter_of, parse_settings
from covey.errors import SpaceError, sentence
from covey.log.journal import read

if TYPE_CHECKING:
    from covey.space import Parameter, Pool, Space

_HOW = (
    "--real NAME=LOW:HIGH[:step=S][:log], --integer NAME=LOW:HIGH[:step=S][:log], "
    "--choice NAME=A,B,C, --choice NAME=@FILE (each may end in :when=OTHER=VALUE), "
    "--mixture A+B=TOTAL or --pool FILE"
)
_WHEN = ":when="  # after a parameter: what another has to be for it to be present
# A number as people write one; 007 is a name, and so are nan and 1_000.
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(_WHOLE.pattern + r"(\.[0-9]*)?([eE][+-]?[0-9]+)?")


def init(
    config: Config = FILE,
    real: Reals = [],
    integer: Integers = [],
    choice: Choices = [],
    mixture: Mixtures = [],
    rule: Rules = [],
    features: FeatureFiles = [],
    pool: PoolFile = None,
    label: Labels = [],
    log: Logs = [],
    goal: Goals = [],
    limit: Limits = [],
    worst: Worst = [],
    record: Records = [],
    prior: Priors = [],
    batch: Annotated[int, typer.Option("--batch", "-b", min=1, help="Points per batch.")] = 8,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed; else drawn.")] = None,
    force: Force = False,
    as_json: Json = False,
    dry_run: DryRun = False,
    command: Annotated[list[str] | None, typer.Argument(help="-- COMMAND for `covey run`")] = None,
) -> None:
    """Write a commented covey.toml; without parameters, ask for them.

    \b
    covey init --real lr=1e-5:0.1:log --integer layers=1:8 --choice opt=adam,sgd
    covey init --force --real x=0:1 --goal min -- python square.py --x={x.x}
    covey init --force --real x=0:1 --goal yield=max --goal cost=min --limit 'impurity<=2'
    covey init --force --real x=0:1 --goal a=max --goal b=min --worst a=20 --worst b=90
    covey init --force --choice model=tree,net --integer depth=1:12:when=model=tree
    covey init --force --real T=20:80:step=5 --choice 'solvent="1,4-dioxane",THF'
    covey init --force --mixture 'water+ethanol+glycerol=1:step=0.01:parts=1-2' --real T=20:80
    covey init --force --choice solvent=THF,DMF --real T=20:120 --rule 'solvent=THF: T<=60'
    covey init --force --choice ligand=@ligands.csv --real T=20:80
    covey init --force --choice ligand=XPhos,SPhos --features ligand=ligands.csv
    covey init --dry-run --pool candidates.csv --batch 12
    covey init --dry-run --pool candidates.csv --label id
    """
    output = Output(config, force=force)
    if not dry_run:
        output.require_free()
    mixtures = mixtures_from(mixture)
    tables = with_parts(parameters_of(real, integer, choice, features, config=config), mixtures)
    require_one_space(tables, pool, label, log)
    better = goal_in_words(goal)
    named = [*_outcome_lines(limit, worst, record), *_prior_lines(prior, config)]
    if not tables and pool is None:
        tables = _asked()
        better = better if isinstance(better, dict) else _answer(f"max or min [{better}]") or better
    parameters = parameters_in_tables(tables, config)
    rules = rules_from(rule, parameters, pool)
    lines = _study_lines(better, named, batch, _seed(seed, config)) + (
        _space_lines(tables, [*mixtures, *rules])
        if pool is None
        else _pool_lines(pool, label, log, config)
    )
    lines += _run_lines(command or [], _hard_to_change(parameters))
    _require_utf8(text := "\n".join(lines) + "\n")
    settings = parse_settings(text, config)  # what is written must be readable, the pool included
    said: dict[str, Any] = {"path": str(config), "parameters": list(parameters)}
    if dry_run:
        said["text"] = text
    else:
        say("\n".join(space_lines(settings.space)))
        output.write(text)
    if as_json:
        put_json("covey.init/1", said)
    else:
        put_exactly(text if dry_run else str(config))
    if not dry_run:
        say(f"next: look at it, then  covey {'run' if command else 'ask'}")


def parameters_of(
    real: Sequence[str],
    integer: Sequence[str],
    choice: Sequence[str],
    features: Sequence[str] = (),
    *,
    config: Path = FILE,
) -> dict[str, dict[str, Any]]:
    """The tables of parameters that flags give, by name, in the order of the flags of each kind.

    They are those of covey.toml, and name files relative to it.
    """
    found, conditions = _parsed(((real, _real), (integer, _integer), (choice, _choice)))
    made = parameters_in_tables(found, FILE)
    for name, words in conditions.items():
        found[name]["when"] = _when(name, words, made)
    for word in features:
        _add_features(word, found)
    for entry in found.values():
        if "features" in entry:
            entry["features"] = _from(Path(entry.pop("features")), config)
    return found


def _parsed(
    flags: Sequence[tuple[Sequence[str], Callable[[str], dict[str, Any]]]],
) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]]]:
    """The tables of words such as x=0:1, by name, and what follows :when= in them."""
    found: dict[str, dict[str, Any]] = {}
    conditions: dict[str, list[str]] = {}
    for words, parse in flags:
        for word in words:
            _require_utf8(word)
            name, equals, rest = word.partition("=")
            if not equals or not name:
                raise Stop(ExitCode.USAGE, f"a parameter is given as {_HOW}; got {word!r}.")
            if name in found:
                raise Stop(ExitCode.USAGE, f"the parameter {name!r} is given twice.")
            text, *when = rest.split(_WHEN)
            try:
                found[name] = parse(text)
                parameter_of(found[name], Path())
            except (SpaceError, ValueError) as error:
                wrong = f"{name}: {sentence(error)}"
                raise Stop(ExitCode.USAGE, f"{wrong} Write {_HOW}.") from error
            if when:
                conditions[name] = when
    return found, conditions


def parameters_in_tables(
    tables: Mapping[str, Mapping[str, Any]], config: Path
) -> dict[str, Parameter]:
    """The parameters of tables, which are known to be right."""
    return {name: parameter_of(entry, config.parent) for name, entry in tables.items()}


def _add_features(word: str, found: Mapping[str, dict[str, Any]]) -> None:
    """Describe the options of a choice by a file, given as NAME=FILE."""
    name, _, file = word.partition("=")
    entry = found.get(name, {})
    if not file or entry.get("type") != "choice":
        raise Stop(
            ExitCode.USAGE,
            f"--features NAME=FILE describes the options of --choice NAME=A,B,C; got {word!r}.",
        )
    entry.pop("ordered", None)  # features leave no order to tell
    entry["features"] = file
    try:
        parameter_of(entry, Path())
    except SpaceError as error:
        raise Stop(ExitCode.USAGE, f"{name}: {sentence(error)}") from error


def _when(name: str, words: Sequence[str], found: Mapping[str, Parameter]) -> dict[str, Any]:
    """The condition in words such as model=tree and layers=2|3, read by the parents themselves."""
    from covey.space.names import unknown

    when: dict[str, Any] = {}
    for word in words:
        parent, equals, values = word.partition("=")
        try:
            if not equals or parent in when:
                raise SpaceError(
                    f"a condition is OTHER=VALUE or OTHER=A|B, once each; got {word!r}."
                )
            if parent not in found:
                raise unknown(parent, list(found), "parameter", "this space")
            options = [found[parent].parse(value) for value in values.split("|")]
            when[parent] = options[0] if len(options) == 1 else options
        except SpaceError as error:
            raise Stop(ExitCode.USAGE, f"{name}: the condition: {sentence(error)}") from error
    return when


def require_one_space(
    parameters: Mapping[str, Any],
    pool: Path | None,
    labels: Sequence[str],
    log: Sequence[str],
) -> None:
    """Refuse parameters together with a pool, and its columns without a pool."""
    if parameters and pool is not None:
        raise Stop(ExitCode.USAGE, "give parameters or a pool, not both.")
    if labels and pool is None:
        raise Stop(ExitCode.USAGE, "--label names a column of a pool; give it with --pool FILE.")
    if log and pool is None:
        raise Stop(
            ExitCode.USAGE,
            "--log names a column of a pool; give it with --pool FILE. A parameter on a log scale "
            "is given as --real NAME=LOW:HIGH:log.",
        )


def _require_utf8(text: str) -> None:
    """Refuse command-line bytes that are not UTF-8, which Python passes on as lone surrogates.

    The file could not be written, or not be read on another machine.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        odd = text[error.start : error.end].encode("utf-8", "surrogateescape")
        raise Stop(
            ExitCode.USAGE, f"{odd!r} is not UTF-8 text; names and options are. Write them so."
        ) from error


def _range(text: str, kind: Callable[[str], Any]) -> dict[str, Any]:
    """The arguments of a parameter in LOW:HIGH, with step=S and log after it in any order."""
    low, *parts = text.split(":")
    high, more = (parts[0], parts[1:]) if parts else ("", [])
    steps = [word.removeprefix("step=") for word in more if word.startswith("step=")]
    if not parts or len(steps) > 1 or [w for w in more if w[:5] != "step="] not in ([], ["log"]):
        raise ValueError(f"{text!r} is no range LOW:HIGH, LOW:HIGH:step=S or LOW:HIGH:log.")
    try:
        step = {"step": kind(steps[0])} if steps else {}
        logs = {"log": True} if "log" in more else {}
        return {"low": kind(low), "high": kind(high), **logs, **step}
    except ValueError as error:
        numbers = "whole numbers" if kind is int else "numbers"
        what = "ends and the step" if steps else "ends"
        way = " Decimals have a point: 0.5." if "," in text else ""
        raise ValueError(f"the {what} of {text!r} are no {numbers}.{way}") from error


def _real(text: str) -> dict[str, Any]:
    return {"type": "real", **_range(text, float)}


def _integer(text: str) -> dict[str, Any]:
    return {"type": "integer", **_range(text, int)}


def _choice(text: str) -> dict[str, Any]:
    """A line of CSV; options that are all numbers are numbers, in the order of their size.

    Or @FILE: all options that the first column of a file names, described by its other columns.
    """
    if text.startswith("@"):
        from covey.space.features import options_in

        return {"type": "choice", "options": list(options_in(text[1:])), "features": text[1:]}
    try:
        lines = list(csv.reader([text], strict=True, skipinitialspace=True))
    except csv.Error as error:
        raise ValueError(f"{text!r} is no line of CSV ({error}).") from error
    options = [word.strip() for line in lines for word in line]
    if not options or "" in options:
        raise ValueError(f"{text!r} has an empty option.")
    if not all(_NUMBER.fullmatch(word) and math.isfinite(float(word)) for word in options):
        return {"type": "choice", "options": options}
    kind = int if all(_WHOLE.fullmatch(word) for word in options) else float
    return {"type": "choice", "options": sorted(map(kind, options)), "ordered": True}


def space_lines(space: Space | Pool) -> list[str]:
    """The space in words, a line for each parameter, to show the user how it was understood."""
    from covey.space.names import listed

    if isinstance(space, covey.Pool):
        labels = f", labels {listed(space.labels)}" if space.labels else ""
        logs = f" ({listed(space.log)} in logs)" if space.log else ""
        return [f"  {space.size} candidates, inputs {listed(space.inputs)}{logs}{labels}"]
    longest = max(map(len, space.names))
    return [
        *(
            f"  {name}: {' ' * (longest - len(name))}{parameter.words()}{_only(parameter)}"
            for name, parameter in space.parameters.items()
        ),
        *(f"  where {rule}" for rule in space.constraints),
    ]


def _only(parameter: Parameter) -> str:
    return "" if parameter.when is None else f"; only when {parameter.when}"


def _asked() -> dict[str, Mapping[str, Any]]:
    """Ask for parameters, one by one; without a terminal, say which flags to use instead."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Stop(ExitCode.USAGE, f"no parameters were given; use {_HOW}.")
    say("One parameter at a time; an empty name ends the list.")
    parameters: dict[str, Mapping[str, Any]] = {}
    while True:
        name = _answer("name" if parameters else "name of the first parameter")
        if name:
            parameters[name] = _asked_parameter()
            say(f"  {name}: {parameter_of(parameters[name], Path()).words()}")
        elif parameters:
            return parameters


def _asked_parameter() -> dict[str, Any]:
    while True:
        rest = _answer(
            "  LOW:HIGH, LOW:HIGH:log or LOW:HIGH:step=5; A,B,C for a choice; "
            "1:8:int for whole numbers"
        )
        whole = rest.endswith(":int")
        parse = _choice if "," in rest else _integer if whole else _real
        try:
            entry = parse(rest.removesuffix(":int"))
            parameter_of(entry, Path())
        except (SpaceError, ValueError) as error:
            say(f"  {sentence(error)} Once more.")
        else:
            return entry


def _answer(question: str) -> str:
    sys.stderr.write(f"{question}: ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise Stop(ExitCode.INTERRUPTED, "stopped; nothing was written.")
    return line.strip()


def _outcome_lines(limit: Sequence[str], worst: Sequence[str], record: Sequence[str]) -> list[str]:
    """The lines about limits, the worst values that count and records, if there are any."""
    lines = []
    if limits := limits_in_words(limit):
        bounds = ", ".join(
            f"{toml_key(name)} = {toml_value(list(it))}" for name, it in limits.items()
        )
        lines.append(f"limits = {{{bounds}}}  # bounds that outcomes have to keep")
    if counting := worst_in_words(worst):
        values = ", ".join(f"{toml_key(name)} = {it!r}" for name, it in counting.items())
        lines.append(f"worst = {{{values}}}  # from where goals count")
    if record:
        lines.append(f"record = {toml_value(list(record))}  # told beside them, kept and shown")
    return lines


def _prior_lines(prior: Sequence[Path], path: Path) -> list[str]:
    """The line about earlier studies, if there are any; each has to be there."""
    missing = next((file for file in prior if not file.is_file()), None)
    if missing is not None:
        raise Stop(ExitCode.USAGE, f"--prior names a journal; there is no file {str(missing)!r}.")
    if not prior:
        return []
    return [f"prior = {toml_value([_from(file, path) for file in prior])}  # earlier studies"]


def _goal_line(goal: str | Mapping[str, str]) -> str:
    if isinstance(goal, str):
        return f'goal = "{goal}"          # max or min'
    senses = ", ".join(f'{toml_key(name)} = "{sense}"' for name, sense in goal.items())
    return f"goal = {{{senses}}}"


def _study_lines(
    goal: str | Mapping[str, str], named: Sequence[str], batch: int, seed: int
) -> list[str]:
    return [
        "# A study of Covey. `covey ask` chooses the next batch, `covey tell` takes results.",
        "",
        "[study]",
        _goal_line(goal),
        *named,
        f"batch = {batch}             # points of one batch",
        '# strategy = "auto"    # or est-dpp-sample, ucb-dpp-max, bucb, lp-ucb, thompson, ...',
        f"seed = {seed}",
        'journal = "covey.jsonl"  # everything that happens, one line each; keep it',
        "",
    ]


def _pool_lines(pool: Path, labels: Sequence[str], log: Sequence[str], path: Path) -> list[str]:
    said = f"labels = {toml_value(list(labels))}"
    return [
        "[pool]",
        f"file = {toml_value(_from(pool, path))}",
        f"{'' if labels else '# '}{said}  # columns that the model does not see",
        "# inputs = []  # those it sees; else all others",
        f"{'' if log else '# '}log = {toml_value(list(log))}  # those it sees in logs",
        "",
    ]


def _space_lines(
    parameters: Mapping[str, Mapping[str, Any]], constraints: Sequence[Mapping[str, Any]]
) -> list[str]:
    lines: list[str] = []
    for name, entry in parameters.items():
        lines += [f"[parameters.{toml_key(name)}]"]
        lines += [*(f"{key} = {toml_value(entry[key])}" for key in entry), ""]
    return [
        *lines,
        "# Known constraints, as many as there are:",
        "# [[constraints]]",
        "# weights = {x = 1.0, y = 1.0}",
        "# upper = 1.0         # or lower, or equal; or instead of them a mixture of parts:",
        '# mixture = ["x", "y"]',
        "# total = 1.0",
        "# [[constraints]]",
        '# when = {solvent = "THF"}  # or rules = "rules.csv", a table of such rules',
        "# then = {T = {high = 60}}",
        "",
        *toml_lines(constraints),
    ]


def _hard_to_change(parameters: Mapping[str, Parameter]) -> str:
    """A parameter that wells may share, for an example: one with few values, if there is any."""
    few = sorted(parameters, key=lambda name: parameters[name].size or 10**9)
    return few[0] if few else ""


def _run_lines(command: Sequence[str], name: str) -> list[str]:
    example = '["python", "train.py", "--lr={x.lr}"]'
    said = f"command = {toml_value(list(command))}"
    shared = f'{toml_key(name)} = "plate"' if name else ""
    return [
        "[run]",
        said if command else f"# command = {example}  # for `covey run`",
        '# result = "stdout"  # the value is its last line; or "file": JSON at {result}',
        "# rounds = 20",
        "# workers = 4  # or gpus = 8: a slot each",
        "# timeout = 3600  # seconds, from the start of an evaluation",
        "",
        "# [plate]  # for `covey plate ask`: how a plate is filled",
        "# plate = 96",
        f"# shared = {{{shared}}}  # one value for each plate, row or column",
        "# controls = {blank = 4}  # see docs/plates.md for the rest, and for [[dispense]]",
        "# replicates = 2",
    ]


def _seed(seed: int | None, path: Path) -> int:
    """The given seed, else that of an existing journal, else a new one."""
    from covey.arguments import checked_seed

    journal = path.parent / "covey.jsonl"
    if seed is None and journal.exists():
        return int(read(journal, prefix=True).header.get("seed", 0))
    return checked_seed(seed)


def _from(file: Path, path: Path) -> str:
    """The path of a file that the settings name, relative to their folder."""
    here = path.absolute().parent
    return os.path.relpath(file.absolute(), here)
