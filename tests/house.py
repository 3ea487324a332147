"""The size of the house, measured: python -m tests.house prints it beside its budgets.

Lines and files, floors (the longest chain of rooms that import one another), public names that are
defined twice, and what one ask goes through.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "covey"
CORE = (
    *("arrays", "covariance", "kernels", "belief", "gp", "dpp", "policies", "strategies"),
    *("baselines", "catalog", "candidates", "space.parameters", "space.choice", "space.space"),
    *("history", "learn", "selection", "spread", "propose", "study"),
)


class Budget(NamedTuple):
    """The most that something may come to; above the target only for a reason."""

    most: int
    target: int
    why: str = ""


BUDGETS = {
    "core lines": Budget(
        12_500,
        6_500,
        "four ways to draw from a k-DPP, two array libraries and the events of 0.2 belong to it; "
        "batches without copies, and the reasons of their points, took 250 lines more, where "
        "trials fail 300, beliefs about several goals 600, a space that grows 100, mixtures 100, "
        "options with features 70, earlier studies as a prior mean 250, plates in history, fit "
        "and choice 860, corrections of wells and points as they were run 230, "
        "times and reasons of trials 100.",
    ),
    "files": Budget(
        183,
        120,
        "earlier studies; running: slots, budgets, standing, bars, watching, stopping, joining; "
        "learning curves; "
        "values in steps; "
        "a space that grows, "
        "its log and its command; where trials fail, what a "
        "batch is expected to gain, and goals and limits, a chapter each in math, model, log, "
        "report and commands; plates in a report; "
        "mixtures, their arithmetic and the spaces that they flatten; "
        "features of options, and molecules among them; sheets as people have them: tables, "
        "workbooks, dates, columns, deviations, intake and recording; conditions and rules, "
        "with the protocol of parameters and ascents each by itself; plates: layout, placement, "
        "choice, offers, wells, reader files, pick lists, machines, maps, asking, shifts and "
        "commands.",
    ),
    "floors": Budget(10, 10),
    "names defined twice": Budget(
        3,
        0,
        "covey.maximize and covey.dpp.maximize are both public; so are the Mixture of parts and "
        "that of Gaussians, and the report on a study and to report a value, and no other word "
        "says either.",
    ),
    "files of an ask": Budget(
        38, 25, "fit, history, log and space are chapters of three to eight files each; wells."
    ),
    "longest file": Budget(500, 500),
}


def modules(source: Path = SOURCE) -> dict[str, Path]:
    """Every module by its dotted name, packages without ``__init__``."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = ("covey", *path.relative_to(source).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_core(name: str) -> bool:
    """Whether a module belongs to what a newcomer reads first."""
    inner = name.removeprefix("covey.")
    return any(inner == core or inner.startswith(f"{core}.") for core in CORE)


def lines(path: Path) -> int:
    """Of a file, all of them."""
    return len(path.read_text(encoding="utf-8").splitlines())


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(source: Path = SOURCE) -> dict[str, set[str]]:
    """What each module imports at run time, names followed through packages to where they are."""
    every = modules(source)
    trees = {name: tree_of(path) for name, path in every.items()}
    exported = {
        (package, alias.asname or alias.name): (node.module, alias.name)
        for package, path in every.items()
        if path.name == "__init__.py"
        for node in ast.walk(trees[package])
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }

    def home(module: str, name: str) -> str:
        while (module, name) in exported and f"{module}.{name}" not in every:
            module, name = exported[module, name]
        return f"{module}.{name}" if f"{module}.{name}" in every else module

    found: dict[str, set[str]] = defaultdict(set)
    for name, path in every.items():
        if path.name in ("__init__.py", "__main__.py"):
            continue
        for node in _at_run_time(trees[name]):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("covey"):
                found[name] |= {home(node.module, alias.name) for alias in node.names}
    ours = {name: {n for n in names if n in every and n != name} for name, names in found.items()}
    up = {"covey.study": "covey.run.api"}  # the one import that points up, and only when called
    return {name: names - {up.get(name, "")} for name, names in ours.items()}


def _at_run_time(tree: ast.Module) -> list[ast.AST]:
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    return [node for node in ast.walk(tree) if id(node) not in skipped]


def room(name: str) -> str:
    """What a reader walks through as one: a file, or a package of them.

    The rooms beside the core, ``large`` and ``log``, serve several floors, so each of their files
    counts for itself.
    """
    parts = name.split(".")
    return ".".join(parts[:3] if parts[1:2] in (["large"], ["log"]) else parts[:2])


def floors(source: Path = SOURCE) -> list[str]:
    """The longest chain of rooms that import one another, from the top down."""
    below: dict[str, set[str]] = defaultdict(set)
    for name, names in imports(source).items():
        below[room(name)] |= {room(other) for other in names} - {room(name)}

    longest: dict[str, tuple[str, ...]] = {}
    try:
        for name in TopologicalSorter(below).static_order():
            lower = (longest[other] for other in sorted(below[name]))
            longest[name] = (name, *max(lower, key=len, default=()))
    except CycleError as error:
        raise ValueError(f"rooms import one another in a circle: {error.args[1]}") from error
    return list(max(longest.values(), key=len))


def defined_twice(source: Path = SOURCE) -> dict[str, list[str]]:
    """Public functions and classes that two modules define under one name."""
    where: dict[str, list[str]] = defaultdict(list)
    for name, path in modules(source).items():
        for node in tree_of(path).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(name)
    return {name: places for name, places in where.items() if len(places) > 1}


def files_of_an_ask() -> set[str]:
    """Files whose functions run while a study with results asks for a batch."""
    import covey

    study = covey.Study(covey.Space({f"x{i}": covey.Real(0, 1) for i in range(2)}), seed=0)
    first = study.ask(20)
    study.tell(first, [sum(t.point.values()) for t in first])
    seen: set[str] = set()

    def note(frame: object, event: str, arg: object) -> None:
        del arg
        if event == "call":
            seen.add(frame.f_code.co_filename)  # type: ignore[attr-defined]

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        study.ask(10)
    finally:
        sys.setprofile(before)
    return {name for name in seen if name.startswith(str(SOURCE))}


def measure(source: Path = SOURCE) -> dict[str, int]:
    """What can be read off the files; contracts for strangers are no rooms, and not counted."""
    every = modules(source)
    rooms = [name for name in every if not f"{name}.".startswith("covey.testing.")]
    return {
        "files": len(rooms),
        "lines": sum(map(lines, every.values())),
        "core files": sum(map(is_core, every)),
        "core lines": sum(lines(path) for name, path in every.items() if is_core(name)),
        "floors": len(floors(source)),
        "names defined twice": len(defined_twice(source)),
        "longest file": max(map(lines, every.values())),
    }


def over_budget(found: dict[str, int]) -> list[str]:
    """What has grown beyond its budget; of what was not measured nothing is said."""
    return [what for what in BUDGETS if found.get(what, 0) > BUDGETS[what].most]


def table(found: dict[str, int]) -> str:
    """What there is, beside what there may be."""
    rows = [f"{'':22}{'now':>8}{'budget':>8}{'target':>8}"]
    for what, now in found.items():
        budget = BUDGETS.get(what)
        may = f"{budget.most:>8,}{budget.target:>8,}  {budget.why}" if budget else ""
        rows.append(f"{what:22}{now:>8,}{may}".rstrip())
    return "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(table({**measure(), "files of an ask": len(files_of_an_ask())}) + "\n")
