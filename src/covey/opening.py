"""Opening a study: from what a user gives and what a journal says to a recipe and a logbook."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covey.arguments import checked_gp, checked_path, checked_seed
from covey.catalog import strategy_of
from covey.errors import CoveyError, JournalError, SpaceError, StrategyError
from covey.gp import GP
from covey.header import Goal, Recipe, recipe_in, require_study, strategy_in
from covey.journal import Contents, Journal, read
from covey.logbook import Logbook
from covey.space import Pool, Space
from covey.strategies import Strategy

# Of coordinates, of which a search holds about 25,000 rows at a time: 1 GB. (Our choice.)
_MOST_COLUMNS = 5000


@dataclass(frozen=True)
class Wanted:
    """What a user gives; None where a journal, or a default, may decide."""

    space: Space | Pool
    goal: Goal
    strategy: str | Strategy | None
    seed: int | None
    gp: GP | None

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space | Pool):
            raise SpaceError(
                f"a study needs a covey.Space or a covey.Pool; got {type(self.space)!r}."
            )
        if isinstance(self.space, Space):
            _refuse_too_wide(self.space)
        if self.goal not in ("max", "min"):
            raise StrategyError(f'goal must be "max" or "min"; got {self.goal!r}.')

    @property
    def recipe(self) -> Recipe:
        """As if there were no journal."""
        return Recipe(self.space, self.goal, checked_gp(self.gp), checked_seed(self.seed))


def _refuse_too_wide(space: Space) -> None:
    """Raise if the coordinates of a search would take more memory than a study should."""
    if space.width <= _MOST_COLUMNS:
        return
    name = max(space.names, key=lambda name: space.parameters[name].width)
    raise SpaceError(
        f"the coordinates of this space have {space.width} columns, {name!r} alone "
        f"{space.parameters[name].width}, one for each option; a study takes at most "
        f"{_MOST_COLUMNS}. Write Choice(..., ordered=True) if the options have an order; else "
        "describe each option by numbers and list them in a covey.Pool."
    )


@dataclass(frozen=True)
class Opened:
    """What a study starts with."""

    recipe: Recipe
    name: str  # of the strategy
    strategy: Strategy
    book: Logbook


@contextmanager
def _no_collector() -> Iterator[None]:
    """A log is read as many small objects that all live on: to look for dead ones is in vain.

    (A third of the time it takes to load a hundred thousand events.)
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:  # a folder that may not be entered, a name that is too long
        raise JournalError(f"cannot look for {path}: {error.strerror}.") from error


def open_study(wanted: Wanted, journal: str | Path | Journal | Contents | None) -> Opened:
    """A new study, or one that goes on with its journal, or one to look at only."""
    source = journal if isinstance(journal, Journal | Contents) else checked_path(journal)
    if isinstance(source, Path) and _exists(source):
        source = reopen(source)
    if isinstance(source, Contents):
        return _look_at(wanted, source)
    if isinstance(source, Journal):
        try:
            return _resume(wanted, source)
        except CoveyError:
            source.close()
            raise
    name, strategy = strategy_of("auto" if wanted.strategy is None else wanted.strategy)
    recipe = wanted.recipe
    if source is None:
        return Opened(recipe, name, strategy, Logbook(recipe.space))
    named = {"name": name, "object": not isinstance(wanted.strategy, str | None)}
    try:
        return Opened(recipe, name, strategy, Logbook.create(source, recipe, named))
    except JournalError:
        if not source.exists():
            raise
        return open_study(wanted, source)  # somebody else began it at the same moment


def reopen(path: str | Path, *, read_only: bool = False) -> Journal | Contents:
    """An existing journal of a study; or what it holds up to the first damage, to look at."""
    found = checked_path(path)
    if found is None or not _exists(found):
        raise JournalError(f"there is no journal at {path}; Study(journal=...) starts one.")
    if read_only:
        with _no_collector():
            contents = read(found, prefix=True)
        require_study(contents.header, found)
        return contents
    with _no_collector():
        journal = Journal.open(found)
    try:
        require_study(journal.header, found)
    except JournalError:
        journal.close()
        raise
    return journal


def _resume(wanted: Wanted, journal: Journal) -> Opened:
    """Go on with a journal, if it belongs to the same problem."""
    recipe = _recipe(wanted, journal.header)
    chosen = strategy_in(journal.header) if wanted.strategy is None else wanted.strategy
    name, strategy = strategy_of(chosen)
    with _no_collector():
        return Opened(recipe, name, strategy, Logbook.resume(journal, recipe.space))


def _look_at(wanted: Wanted, contents: Contents) -> Opened:
    """Show what a journal holds; nothing can be added."""
    recipe = _recipe(wanted, contents.header)
    name, strategy = strategy_of("auto" if wanted.strategy is None else wanted.strategy)
    name = contents.header["strategy"]["name"] if wanted.strategy is None else name
    why = "this study was opened read-only"
    why += f", as its journal is damaged: {contents.damage}" if contents.damage else "."
    with _no_collector():
        return Opened(recipe, name, strategy, Logbook.sealed(contents, recipe.space, why))


def _recipe(wanted: Wanted, header: Mapping[str, Any]) -> Recipe:
    return recipe_in(header, wanted.recipe, wanted.seed, wanted.gp)
