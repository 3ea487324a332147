"""Choosing the points of plates: shared values first, then points that keep the budgets.

All of it works on candidates and a belief about them: `Offer` says which candidates share what,
`choose` goes from plate to plate, and `filled` puts what was chosen into wells. How candidates are
made and what is known about them is the business of `propose`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from covey.arrays import to_numpy
from covey.belief import Belief, Beliefs
from covey.errors import ExhaustedError, SpaceError, is_whole, several
from covey.plates.layout import Layout
from covey.plates.placement import TRIES, Scaffold, placed, scaffold_of
from covey.plates.spreading import in_spread, settled
from covey.policies import UCB, judge

if TYPE_CHECKING:
    from covey.arrays import Array, Indices, Mask

BEST = 5  # upper bounds whose mean ranks a level
_BETA = 9.0  # of these bounds: three standard deviations, since a plate is all at one level
_SLACK = 1e-9  # of a total, for sums of decimals
_STREAM = 7  # of the random numbers of wells, apart from those of points

Pick = Callable[[Belief, int], Sequence[int]]
"""Chooses k candidates of a belief: a strategy, or a design."""


class Ranking(NamedTuple):
    """Levels by what speaks for them, the highest first; and what that is, in words."""

    scores: Mapping[int, float]
    why: str = ""


Rank = Callable[[Belief, "Indices", "Mask"], Ranking]
"""Ranks the levels (n,) of free candidates (n,)."""


_MOST_PLATES = 1000  # of one ask: days of work, and wells that are placed one by one


@dataclass(frozen=True)
class PlateOrder:
    """So many plates of a layout."""

    layout: Layout
    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.layout, Layout):
            raise SpaceError(f"a layout is made with covey.Layout(...); got {self.layout!r}.")
        if not is_whole(self.count, 1):
            raise SpaceError(f"the number of plates is a whole number >= 1; got {self.count!r}.")
        if self.count > _MOST_PLATES:
            raise SpaceError(
                f"at most {_MOST_PLATES} plates can be asked for at once; got {self.count}."
            )
        if self.layout.spread == "plates" and self.count % self.layout.replicates:
            raise SpaceError(
                f"with the {self.layout.replicates} copies of a point on different plates, plates "
                f"come in sets of {self.layout.replicates}; got {self.count}. Ask for "
                f"{self.layout.replicates} plates at once (-n {self.layout.replicates})."
            )

    @property
    def constrained(self) -> bool:
        """Whether the layout has a say in which points are chosen."""
        return bool(self.layout.shared or self.layout.distinct or self.layout.total)


@dataclass(frozen=True)
class Draft:
    """Plates that hold the same points, before these are chosen: one, or a set of copies."""

    names: tuple[str, ...]
    scaffolds: tuple[Scaffold, ...]
    rngs: tuple[np.random.Generator, ...] = field(repr=False)

    @property
    def places(self) -> tuple[int, ...]:
        """Points of each block."""
        return self.scaffolds[0].places

    @property
    def points(self) -> int:
        """Points of each plate."""
        return sum(self.places)


def drafted(order: PlateOrder, seed: int, before: int) -> list[Draft]:
    """The plates to fill, named p1, p2, ... after the ``before`` plates that there are."""
    layout = order.layout
    together = layout.replicates if layout.spread == "plates" else 1
    drafts, patterns = [], set[frozenset[tuple[int, str]]]()
    for first in range(before + 1, before + 1 + order.count, together):
        numbers = range(first, first + together)
        rngs = tuple(np.random.default_rng([seed, number, _STREAM]) for number in numbers)
        scaffolds: list[Scaffold] = []
        for rng in rngs:
            # Copies of one block stand in the same column of every plate of a set.
            again = bool(scaffolds) and layout.blocks_by is not None
            scaffolds.append(scaffolds[0] if again else scaffold_of(layout, rng, patterns))
            patterns.add(scaffolds[-1].pattern)
        drafts.append(Draft(tuple(f"p{n}" for n in numbers), tuple(scaffolds), rngs))
    return drafts


@dataclass(frozen=True)
class Offer:
    """What candidates share: ids (n,) of their plate level and their block level, and budgets."""

    plate: Indices  # (n,): candidates of one plate level may share a plate
    block: Indices  # (n,): candidates of one block level may share a row or column
    groups: Mapping[str, Indices] = field(default_factory=dict)  # under `distinct`: value ids
    amounts: Mapping[str, Array] = field(default_factory=dict)  # under `total`: of one point
    words: Mapping[int, str] = field(default_factory=dict)  # plate level -> its values
    plate_columns: tuple[slice, ...] = ()  # of candidates: of each parameter shared by plate
    block_columns: tuple[slice, ...] = ()  # and of each that is the same in a block

    def __len__(self) -> int:
        return len(self.plate)


def offer_of(
    layout: Layout,
    at: Array,
    columns: Callable[[str], slice],
    points: Callable[[Sequence[int]], Sequence[Mapping[str, Any]]],
) -> Offer:
    """The offer of candidates (n, d); ``columns`` finds those of a parameter."""
    shared, by_block = layout.shared_by("plate"), layout.shared_by("row", "column")
    of_plate = tuple(columns(name) for name in shared)
    of_block = (*of_plate, *(columns(name) for name in by_block))
    (plate, first), (block, _) = _ids(at, of_plate), _ids(at, of_block)
    shown = points(first.tolist()) if shared else ()
    words = {i: _in_words({n: point[n] for n in shared}) for i, point in enumerate(shown)}
    groups = {name: _ids(at, [columns(name)])[0] for name in layout.distinct}
    amounts: dict[str, Array] = {}
    if layout.total:
        every = points(range(len(at)))
        for name in layout.total:
            values = np.array([float(point.get(name) or 0.0) for point in every])
            amounts[name] = values * layout.copies
    return Offer(plate, block, groups, amounts, words, of_plate, of_block)


def _ids(at: Array, columns: Sequence[slice]) -> tuple[Indices, Indices]:
    """For each row (n,) the id of its values in these columns, and the first row of each id."""
    if not columns:
        return np.zeros(len(at), dtype=np.intp), np.zeros(min(len(at), 1), dtype=np.intp)
    some = np.round(np.hstack([at[:, one] for one in columns]), 9) + 0.0
    _, first, ids = np.unique(some, axis=0, return_index=True, return_inverse=True)
    return ids.reshape(-1), first


def _in_words(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in values.items()
    )


@dataclass(frozen=True)
class PlateBlock:
    """Places of a plate that share values: a row, a column, or all of them."""

    candidates: Indices  # (n,) at its level
    on_plate: Indices  # (m,) those of its plate, at all levels
    before: tuple[int, ...]  # chosen for blocks before it
    sizes: tuple[int, ...]  # points that it has, and blocks after it
    kept: Mapping[str, float]  # of each total, for blocks after it


class Budgets:
    """At most so many distinct values, at most so much in total, over the points of a plate."""

    def __init__(self, layout: Layout, offer: Offer) -> None:
        self._layout, self._offer = layout, offer

    def __bool__(self) -> bool:
        return bool(self._offer.groups or self._offer.amounts)

    def open(
        self,
        some: Indices,
        chosen: Sequence[int],
        lacking: int,
        kept: Mapping[str, float] | None = None,
    ) -> Mask:
        """Which of some free candidates (m,) may come next, so that ``lacking`` can follow in all.

        ``kept`` of each total is not theirs. The look ahead is greedy where several values, or
        values and totals, are bound at once.
        """
        out, layout = self._of_few_values(some, chosen, lacking), self._layout
        for name, amounts in self._offer.amounts.items():
            left = self._left(name, chosen) - (kept or {}).get(name, 0.0)
            out &= _affordable(amounts[some], lacking, left)
            for kind, ids in self._offer.groups.items():
                held = {*ids[list(chosen)].tolist()}
                within = held, layout.distinct[kind]
                out &= _cheap_values(ids[some], amounts[some], within, lacking, left)
        return out

    def _of_few_values(self, some: Indices, chosen: Sequence[int], lacking: int) -> Mask:
        """`open`, by the values of `distinct` alone."""
        out = np.ones(len(some), dtype=bool)
        for name, ids in self._offer.groups.items():
            used = np.unique(ids[list(chosen)]).astype(np.intp)
            out &= _few_values(ids[some], used, lacking, self._layout.distinct[name])
        return out

    def block(
        self, level: int, on_plate: Mask, before: Sequence[int], sizes: Sequence[int]
    ) -> PlateBlock:
        """A block at a level: the next of so many ``sizes``, all from candidates of its plate.

        What the others cost at least is kept for them.
        """
        every = np.flatnonzero(on_plate)
        every = every[self._of_few_values(every, before, sum(sizes))]
        of = self._offer.block[every]
        kept = {}
        for name, amounts in self._offer.amounts.items():
            piles = []
            for one in np.unique(of).tolist():
                its_own = sizes[0] if one == level else 0  # the cheapest are for this block
                piles.append(np.sort(amounts[every[of == one]])[its_own:])
            kept[name] = _cheapest(piles, sizes[1:])
        return PlateBlock(every[of == level], every, tuple(before), tuple(sizes), kept)

    def open_in(self, block: PlateBlock, chosen: Sequence[int]) -> Indices:
        """The candidates of a block that may come next after some that it has."""
        free = np.setdiff1d(block.candidates, chosen, assume_unique=True)
        if not self:
            return free
        so_far, size = [*block.before, *chosen], block.sizes[0]
        out = self.open(free, so_far, size - len(chosen), block.kept)
        if len(block.sizes) > 1:  # values that later blocks can share
            wide = np.setdiff1d(block.on_plate, chosen, assume_unique=True)
            fits = self._of_few_values(wide, so_far, sum(block.sizes) - len(chosen))
            out &= np.isin(free, wide[fits])
        return free[out]

    def _left(self, name: str, chosen: Sequence[int]) -> float:
        """What is left of a total."""
        total = self._layout.total[name]
        used = float(self._offer.amounts[name][list(chosen)].sum())
        return total + _SLACK * abs(total) - used

    def why_not(self, free: Mask, need: int) -> str:
        """Why so many points cannot be chosen among free candidates; empty if they can."""
        some = np.flatnonzero(free)
        if len(some) < need:
            return f"{several(len(some), 'candidate')} left for {several(need, 'point')}"
        for name, ids in self._offer.groups.items():
            most = self._layout.distinct[name]
            counts = np.sort(np.bincount(ids[some]))[::-1]
            if int(counts[:most].sum()) < need:
                return f"{several(most, 'value')} of {name} have too few candidates"
        for name, amounts in self._offer.amounts.items():
            least = float(np.sort(amounts[some])[:need].sum())
            if least > self._left(name, ()):
                total = self._layout.total[name]
                return f"the total of {name} would be {least:.4g} or more, and {total:g} is allowed"
        return "" if self.open(some, (), need).any() else "the budgets exclude one another"


def _few_values(ids: Indices, used: Indices, lacking: int, most: int) -> Mask:
    """Candidates with value ids (m,) after which at most ``most`` values can give ``lacking``."""
    rest = most - len(used)
    if rest <= 0:
        return np.isin(ids, used)
    counts = np.bincount(ids, minlength=int(max(ids.max(initial=0), used.max(initial=0))) + 1)
    have = int(counts[used].sum())
    counts[used] = 0
    ranked = np.sort(counts)[::-1]
    # With this value, and then the values that have most candidates, enough are left.
    top = ranked[min(rest, len(ranked)) - 1]
    best = np.where(counts >= top, ranked[:rest].sum(), counts + ranked[: rest - 1].sum())
    enough = have + best >= lacking
    enough[used] = have + ranked[:rest].sum() >= lacking
    return np.asarray(enough[ids])


def _affordable(amounts: Array, lacking: int, left: float) -> Mask:
    """Candidates (m,) with which ``lacking`` in all, the others cheapest, still fit in ``left``."""
    cheapest = np.sort(amounts)[:lacking]
    if len(cheapest) < lacking:
        return np.zeros(len(amounts), dtype=bool)
    cost = np.where(
        amounts <= cheapest[-1], cheapest.sum(), amounts + cheapest[: lacking - 1].sum()
    )
    return np.asarray(cost <= left)


def _cheapest(piles: list[Array], sizes: Sequence[int]) -> float:
    """The least that blocks of so many points cost, each from one pile of ascending amounts.

    It is exact for blocks of one size: the next points of a pile cost no less than those before.
    """
    total = 0.0 if piles else np.inf
    for size in sorted(sizes, reverse=True) if piles else ():
        costs = [pile[:size].sum() if len(pile) >= size else np.inf for pile in piles]
        best = int(np.argmin(costs))
        total, piles[best] = total + float(costs[best]), piles[best][size:]
    return total


def _cheap_values(
    ids: Indices, amounts: Array, within: tuple[set[int], int], lacking: int, left: float
) -> Mask:
    """Candidates (m,) whose value, with those held and the cheapest others, keeps a total."""
    used, most = within
    out, values = np.ones(len(ids), dtype=bool), np.unique(ids).tolist()
    cost = {v: np.sort(amounts[ids == v])[:lacking].mean() for v in values}
    cheap = sorted(values, key=cost.__getitem__)
    for value in values:
        held = used | {value}
        held |= {*[v for v in cheap if v not in held][: max(most - len(held), 0)]}
        together, mine = np.isin(ids, [*held]), ids == value
        fits = np.zeros(len(ids), dtype=bool)
        fits[together] = _affordable(amounts[together], lacking, left)
        out[mine] = fits[mine]
    return out


@dataclass(frozen=True)
class Chosen:
    """Candidates chosen for each draft, block by block, and why its level was."""

    picks: list[list[int]]
    reasons: list[str]


def choose(
    offer: Offer,
    layout: Layout,
    drafts: Sequence[Draft],
    belief: Belief,
    pick: Pick,
    rank: Rank,
) -> Chosen:
    """Choose the points of every plate: its level first, then points at that level.

    The level is the one that ``rank`` puts first, among those with room for a plate: at first one
    that spreads what was seen, then the one whose `BEST` highest upper bounds have the highest mean
    by the model. Then, one level down, those of
    its rows or columns. After each, the belief is the one after looking at what was chosen, so that
    the next plate differs.
    """
    budgets, free = Budgets(layout, offer), np.ones(len(offer), dtype=bool)
    picks, reasons = [], []
    for draft in drafts:
        ranking = rank(belief, offer.plate, free)
        level = _level(offer, budgets, free, draft, ranking.scores)
        on_plate: list[int] = []
        for number in range(len(draft.places)):
            allowed = free & (offer.plate == level)
            ranks: Mapping[int, float] = {level: 0.0}
            if layout.blocks_by is not None:
                ranks = rank(belief, offer.block, allowed).scores
            block = _block(budgets, allowed, on_plate, draft.places[number:], ranks)
            if block is None:
                raise ExhaustedError(
                    f"plate {draft.names[0]}: a {layout.blocks_by} has room for "
                    f"{several(draft.places[number], 'point')}, and no value of what it shares "
                    "allows as many new ones that keep the layout; use fewer wells in it, or relax "
                    "distinct and total.",
                    left=int(allowed.sum()),
                )
            chosen = _within(budgets, belief, block, pick)
            on_plate += chosen
            free[chosen] = False
            belief = looked_at(belief, chosen)
        picks.append(on_plate)
        said = offer.words.get(level, "")
        reasons.append(f"on a plate with {said}, {ranking.why}" if said else "")
    return Chosen(picks, reasons)


def looked_at(belief: Belief, chosen: Sequence[int], on: Indices | None = None) -> Belief:
    """The belief once these will have been observed, which are under way from now on."""
    at = np.asarray(to_numpy(belief.at[list(chosen)]))
    under_way = at if belief.under_way is None else np.vstack([belief.under_way, at])
    awaited = None
    if belief.parts and not isinstance(belief, Beliefs):
        here = belief.mean[list(chosen)]
        awaited = here if belief.awaited is None else np.concatenate([belief.awaited, here])
    seen = belief.after_looking_at(list(chosen), on)
    return replace(seen, under_way=under_way, awaited=awaited)


def upper_bounds(belief: Belief) -> Array:
    """What candidates may reach, (n,); of several goals, what their bounds add to the front."""
    return judge(UCB(beta=_BETA), belief).scores


def by_upper_bounds(belief: Belief, ids: Indices, free: Mask) -> Ranking:
    """The mean of the five highest upper bounds of each level."""
    scores = upper_bounds(belief)
    means = {}
    for level in np.unique(ids[free]).tolist():
        some = scores[free & (ids == level)]
        means[level] = float(np.sort(some)[-BEST:].mean())
    return Ranking(means, "whose best points have the highest upper bounds")


def by_spread(
    offer: Offer, seen: Array, rng: np.random.Generator, then: Rank | None = None
) -> Rank:
    """Levels `in_spread`, given points (m, d) beside those under way; once `settled`, ``then``."""

    def rank(belief: Belief, ids: Indices, free: Mask) -> Ranking:
        columns = offer.plate_columns if ids is offer.plate else offer.block_columns
        levels, first = np.unique(ids[free], return_index=True)
        if not columns:
            return Ranking(dict.fromkeys(levels.tolist(), 0.0))
        at = np.asarray(to_numpy(belief.at))[np.flatnonzero(free)[first]]
        there = seen if belief.under_way is None else np.vstack([seen, belief.under_way])
        values, had = ([some[:, c] for c in columns] for some in (at, there))
        if then is not None and settled(values, had):
            return then(belief, ids, free)
        order = levels[in_spread(values, had, rng)]
        scores = {level: -float(place) for place, level in enumerate(order.tolist())}
        return Ranking(scores, "to spread the first values of what plates share")

    return rank


def _level(
    offer: Offer, budgets: Budgets, free: Mask, draft: Draft, ranks: Mapping[int, float]
) -> int:
    """The best plate level that has room for all points of a plate."""
    why = ""
    for level in sorted(ranks, key=lambda one: (-ranks[one], one)):
        reason = budgets.why_not(free & (offer.plate == level), draft.points)
        if not reason:
            return level
        why = why or reason
    lacking = "there are not as many"
    if offer.words:
        lacking = "no value of what is shared allows as many"
    raise ExhaustedError(
        f"plate {draft.names[0]} has room for {several(draft.points, 'point')}, and {lacking} that "
        f"are new and keep the layout: {why or 'no candidate is left'}. Use a smaller plate, more "
        "controls or replicates, or relax the layout.",
        left=int(free.sum()),
    )


def _block(
    budgets: Budgets,
    allowed: Mask,
    before: Sequence[int],
    sizes: Sequence[int],
    ranks: Mapping[int, float],
) -> PlateBlock | None:
    """The next block, at the best level that has room for its points; None if there is none."""
    for level in sorted(ranks, key=lambda one: (-ranks[one], one)):
        block = budgets.block(level, allowed, before, sizes)
        if len(block.candidates) >= sizes[0] and len(budgets.open_in(block, ())):
            return block
    return None


def _within(budgets: Budgets, belief: Belief, block: PlateBlock, pick: Pick) -> list[int]:
    """Points of one block: picks in turn, less those that would break a budget; then again.

    A value of `distinct` counts once, so a full group stays open.
    """
    k, chosen = block.sizes[0], list[int]()
    while len(chosen) < k:
        some = budgets.open_in(block, chosen)
        if not len(some):
            raise ExhaustedError(
                f"{several(len(chosen), 'point')} of {k} keep distinct and total of the layout, "
                "and no candidate is left that would; relax one of them.",
                left=len(chosen),
            )
        now = looked_at(belief, chosen, on=some) if chosen else belief.on(some)
        for place in pick(now, min(k - len(chosen), len(some))):
            i = int(some[place])
            if not (budgets and chosen) or i in budgets.open_in(block, chosen):
                chosen.append(i)
    return chosen


def filled(
    layout: Layout, drafts: Sequence[Draft], features: Sequence[Array], tries: int = TRIES
) -> dict[str, Any]:
    """The wells of all plates as an event holds them; ``features`` (n, q) of the points of each.

    Points are numbered through, draft by draft and block by block.
    """
    wells: list[list[Any]] = []
    controls: list[list[Any]] = []
    first, name_of = 0, layout.grid.name
    for draft, values in zip(drafts, features, strict=True):
        plates = zip(draft.names, draft.scaffolds, draft.rngs, strict=True)
        for copy, (name, scaffold, rng) in enumerate(plates, start=1):
            found = placed(layout, scaffold, values, rng, tries)
            for place, row in enumerate(found.wells.tolist()):
                for replicate, well in enumerate(row, start=copy):
                    order = found.order[well]
                    wells.append([name, name_of(well), first + place, replicate, order])
            for well, control, replicate in scaffold.controls:
                row = [name, name_of(well), control, replicate, found.order[well]]
                controls.append(row)
        first += draft.points
    return {"layout": layout.describe(), "wells": wells, "controls": controls}
