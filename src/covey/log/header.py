"""Opening a study: the header of its log, which has its recipe, and the log itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covey.earlier import Earlier, PriorStudies
from covey.errors import CoveyError, JournalError, JournalMismatch, SpaceError, StrategyError
from covey.gp import GP
from covey.learn import NAMES, Recipe
from covey.log.extension import space_known_by, stages
from covey.log.journal import Journal, read
from covey.log.log import Log, Logbook, ReadOnlyLog, checked_path, exists, no_collector
from covey.outcomes import Outcomes
from covey.selection import Strategy
from covey.space import Pool, Space, space_from_description
from covey.space.changes import differences
from covey.space.description import as_described

if TYPE_CHECKING:
    from covey.arguments import StudyArguments

_HEADER: dict[str, Any] = {
    "space": dict,
    "fingerprint": str,
    "goal": str | dict,
    "strategy": dict,
    "seed": int,
    "gp": dict,
}


_FIRST_NAMES = "0.1"  # of a header that says nothing about names


def header_of(recipe: Recipe, strategy: Mapping[str, Any]) -> dict[str, Any]:
    """The header of a new log; a strategy that is an object can only be named in it."""
    header = {
        "space": recipe.space.describe(),
        "fingerprint": recipe.space.fingerprint,
        **recipe.outcomes.describe(),
        "strategy": dict(strategy),
        "names": recipe.names,
        "seed": recipe.seed,
        "gp": recipe.gp.describe(),
    }
    if recipe.earlier:  # whole, so that the log needs no other file
        header["prior"] = [study.describe() for study in recipe.earlier]
    return header if recipe.resolution is None else {**header, "resolution": recipe.resolution}


def require_study(header: Mapping[str, Any], name: str | Path) -> None:
    """Raise JournalError unless the header is that of a study."""
    missing = [field for field in _HEADER if field not in header]
    if missing:
        raise JournalError(
            f"{name} is not the journal of a study: its header lacks {', '.join(missing)}."
        )
    odd = [field for field, kind in _HEADER.items() if not isinstance(header[field], kind)]
    if not odd and not header["strategy"].keys() >= {"name", "object"}:
        odd = ["strategy"]
    if odd:
        raise JournalError(f"{name}: its header makes no sense of {', '.join(odd)}.")
    outcomes_in(header)


def strategy_in(header: Mapping[str, Any]) -> str:
    """The strategy a journal was started with."""
    written = header["strategy"]
    if written["object"]:
        raise StrategyError(
            f"this journal used a strategy object ({written['name']}), which a log cannot hold; "
            "pass it again, as strategy=..."
        )
    return str(written["name"])


def names_in(header: Mapping[str, Any]) -> str:
    """The version whose strategies the names in a journal stand for."""
    written = header.get("names", _FIRST_NAMES)
    if written not in (_FIRST_NAMES, NAMES):  # another strategy would choose other batches
        raise JournalError(
            f"this journal means by the names of strategies what covey {written} does, which this "
            "covey does not know; it was written by a newer one, please upgrade."
        )
    return str(written)


def gp_in(header: Mapping[str, Any]) -> GP:
    """The Gaussian process a journal was started with."""
    unknown = set(header["gp"]).difference(field.name for field in fields(GP))
    if unknown:  # ignoring a setting would change the batches
        raise JournalError(
            "this journal was started with a GP that this covey does not know "
            f"({', '.join(sorted(unknown))}); it was written by a newer one, please upgrade."
        )
    return GP(**header["gp"])


def recipe_in(
    header: Mapping[str, Any], given: StudyArguments, lines: Iterable[Mapping[str, Any]] = ()
) -> Recipe:
    """The recipe of a journal, if it agrees with what is given (None: not given).

    It was started with all of it but the space, which ``lines``, its events, may have extended.
    Earlier studies are compared by the names of their files: these may be gone by now, or have gone
    on, and the header has what it needs of them.
    """
    passed = stages(header, lines)
    space = as_described(given.space, passed[-1]["space"])
    made = Recipe(
        space,
        outcomes_in(header),
        gp_in(header),
        header["seed"],
        header.get("resolution"),
        tuple(map(Earlier.from_description, header.get("prior", ()))),
        names=names_in(header),
    )
    for what, written, now in (
        ("space", passed[-1]["fingerprint"], space.fingerprint),
        *_outcomes(made.outcomes, given.outcomes),
        ("seed", made.seed, given.seed),
        ("gp", made.gp, given.gp),
        ("resolution", made.alike, given.resolution),
        ("prior", [study.name for study in made.earlier], _names(given.prior)),
    ):
        if now is None or written == now:
            continue
        if what == "space":
            raise _other_space(passed, space)
        raise JournalMismatch(
            f"the journal belongs to a study with another {what} ({written!r}, not {now!r}). "
            f"Use the {what} it was started with, or another file."
        )
    return made


def _names(prior: PriorStudies | None) -> list[str] | None:
    return None if prior is None else [Path(path).name for path in prior]


def outcomes_in(header: Mapping[str, Any]) -> Outcomes:
    """The outcomes of the study of a journal."""
    parts = (header.get(name) for name in ("limits", "record", "worst"))
    try:
        return Outcomes.of(header["goal"], *parts)
    except StrategyError as error:
        raise JournalError(f"the header of this journal makes no sense: {error}") from error


def _outcomes(written: Outcomes, given: Outcomes) -> Iterator[tuple[str, Any, Any]]:
    """Goals, limits and the like, as written and as given, if they are."""
    then, now = written.describe(), given.describe()
    yield "goal", then["goal"], None if written.goals == given.goals else now["goal"]
    for name in ("limits", "record", "worst"):
        yield name, then.get(name), now.get(name)


def _other_space(passed: Sequence[Mapping[str, Any]], given: Space | Pool) -> JournalMismatch:
    """The error for a space that is not the one a journal is searching now."""
    last = passed[-1]
    if any(stage["fingerprint"] == given.fingerprint for stage in passed):
        when = f" on {str(last['at'])[:10]}" if last.get("at") else ""
        said = "; ".join(differences(given, space_known_by(last, given)))
        return JournalMismatch(
            f"the space of this study was extended since{when} ({last.get('reason', '')}): "
            f"{said}. Go on with "
            "the space as it is now: Study.load(journal) has it, and in covey.toml write the same. "
            "To change it back: Study.load(journal, space, extend=reason), or `covey extend`."
        )
    if isinstance(given, Pool) != (last["space"].get("kind") == "pool"):
        said = "; ".join(_differences(last, given))  # which says that this cannot be gone on with
        return JournalMismatch(f"the journal belongs to a study with another space: {said}.")
    began = "started with" if len(passed) == 1 else "extended to"
    return JournalMismatch(
        f"the journal belongs to a study with another space. Here is different: "
        f"{'; '.join(_differences(last, given))}."
        + (f" {given.path} may have changed since, or been read otherwise." if given.path else "")
        + f" Use the space it was {began}, or another file; or go on with this one, and keep all "
        "results: `covey extend --reason ...`, or Study.load(journal, space, extend=reason)."
    )


def _differences(last: Mapping[str, Any], given: Space | Pool) -> list[str]:
    """What is different in words, as far as the log can tell."""
    try:
        said = differences(space_known_by(last, given), given)
    except SpaceError:  # what was there cannot be built again
        said = []
    return said or ["what a log cannot hold, such as a function or an object"]


# Opening a study, from the user's arguments and an existing journal.


Find = Callable[[str | Strategy, str], tuple[str, Strategy]]
"""Turns a strategy, or the name of one as of a version, into both: `covey.catalog.strategy_of`."""


@dataclass(frozen=True)
class OpenedStudy:
    """Recipe, strategy and log of a study that was opened."""

    recipe: Recipe
    name: str  # of the strategy
    strategy: Strategy
    book: Logbook


@dataclass(frozen=True)
class OpenedLog:
    """A log and its events so far, read once: a study that is opened rests on these alone.

    What others append from then on is read later, as by any study that is open.
    """

    log: Log
    lines: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, log: Log) -> OpenedLog:
        """Read all of a log."""
        return cls(log, log.read(0))

    def space(self, like: Space | Pool | None = None) -> Space | Pool:
        """Return the space that the study of the log searches.

        ``like`` is the one that it will be extended to: then what a log cannot hold may be missing.
        """
        last = stages(self.log.header, self.lines)[-1]
        if like is None:
            return space_from_description(last["space"])
        return space_known_by(last, like)


def open_study(
    wanted: StudyArguments, journal: str | Path | Log | OpenedLog | None, find: Find
) -> OpenedStudy:
    """Start a study, or resume one from its log; a read-only log makes it read-only."""
    if isinstance(journal, Log):
        return _resume(wanted, OpenedLog.of(journal), find)
    if isinstance(journal, OpenedLog):
        return _resume(wanted, journal, find)
    path = checked_path(journal)
    if path is not None and exists(path):
        return _resume(wanted, reopen(path), find)
    recipe = wanted.recipe
    name, strategy = find("auto" if wanted.strategy is None else wanted.strategy, recipe.names)
    if path is None:
        return OpenedStudy(recipe, name, strategy, Logbook(recipe.space))
    named = {"name": name, "object": not isinstance(wanted.strategy, str | None)}
    try:
        log = Journal.create(path, header_of(recipe, named))
    except JournalError:
        if not path.exists():
            raise
        return open_study(wanted, path, find)  # another process created it at the same moment
    return OpenedStudy(recipe, name, strategy, Logbook(recipe.space, log))


def reopen(path: str | Path, *, read_only: bool = False) -> OpenedLog:
    """Open the journal of a study; ``read_only``: what it holds up to the first damage."""
    at = checked_path(path)
    if at is None or not exists(at):
        raise JournalError(f"there is no journal at {path}; Study(journal=...) starts one.")
    with no_collector():
        log = ReadOnlyLog(str(at), read(at, prefix=True)) if read_only else Journal.open(at)
    try:
        require_study(log.header, at)
        return OpenedLog.of(log)
    except JournalError:
        log.close()
        raise


def _resume(wanted: StudyArguments, opened: OpenedLog, find: Find) -> OpenedStudy:
    """Resume from a log, which must belong to the same study; a read-only one is not written."""
    log, lines = opened.log, opened.lines
    try:
        require_study(log.header, log.name)
        recipe = recipe_in(log.header, wanted, lines)
        name, strategy = _strategy(log, wanted.strategy, find, recipe.names)
        with no_collector():
            return OpenedStudy(recipe, name, strategy, Logbook(recipe.space, log, lines))
    except CoveyError:
        log.close()
        raise


def _strategy(
    log: Log, wanted: str | Strategy | None, find: Find, names: str
) -> tuple[str, Strategy]:
    """The strategy that is wanted, else that of the log; a log that is only read needs none."""
    try:
        return find(strategy_in(log.header) if wanted is None else wanted, names)
    except StrategyError:
        if wanted is not None or not isinstance(log, ReadOnlyLog):
            raise
        return log.header["strategy"]["name"], find("auto", names)[1]
