"""The charts of a report card and of pictures; `chart` makes inline SVG of any of them.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart, and shapes differ
too; each colour becomes a CSS variable, so that the page may give it another shade in dark mode.
Of the user's texts only the names of options are drawn, where the font has the letters.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from covey.errors import MissingExtraError
from covey.report.format import significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as Scale
    from matplotlib.figure import Figure

    from covey.report.card import Dot
    from covey.report.predictions import Pair
    from covey.report.slices import Slice
    from covey.report.tradeoff import OutcomeDot, TradeOff
    from covey.report.trainings import Training

_Facts = TypeVar("_Facts")

# SVG text of the plotting library, cleaned for use inside a page.

_TAG = re.compile(r"<[^<>]*>")
_DECIMALS = re.compile(r"(\d+\.\d)\d+")
_SVG_STYLE = re.compile(r"<style\b.*?</style>", re.DOTALL)
_FONT = re.compile(r"font-family: [^;\"]*;\s*")
_STILL = re.compile(r'\s*transform="rotate\(-?0 [^"]*\)"')
_ID = re.compile(r'\s*\bid="([^"]*)"')
_REFERENCE = re.compile(r'(?:xlink:href="#|url\(#)([^")]*)')


def inline(svg: str, name: str, colours: Mapping[str, str]) -> str:
    """The <svg> element alone, an image named by the element ``<name>-words``.

    Removed are the prolog, the style sheet (it would style the page), fonts, and digits too small
    to see. Ids that nothing refers to are removed, and the others are prefixed with ``name``, since
    a page may hold an id once. A colour of the map becomes the CSS variable of its name.

    >>> svg = '<?xml?><svg width="9pt"><g id="a" style="fill: #010101"/></svg>'
    >>> inline(svg, "c", {"ink": "#010101"})
    '<svg role="img" aria-labelledby="c-words" width="9pt"><g style="fill: var(--ink)"/></svg>'
    """
    svg = _SVG_STYLE.sub("", svg[svg.index("<svg") :])
    used = set(_REFERENCE.findall(svg))
    svg = _TAG.sub(lambda tag: _tidy(tag[0], name, used, colours), svg)
    svg = re.sub(r">\s+<", "><", svg).strip()
    return svg.replace("<svg", f'<svg role="img" aria-labelledby="{name}-words"', 1)


def _tidy(tag: str, name: str, used: set[str], colours: Mapping[str, str]) -> str:
    """One tag; the text between tags, which may be the user's, is never touched."""
    tag = _FONT.sub("", _STILL.sub("", tag)).replace("\n", "")
    tag = _ID.sub(lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", tag)
    tag = tag.replace('xlink:href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    tag = tag.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    tag = tag.replace(' xmlns="http://www.w3.org/2000/svg"', "")
    for variable, colour in colours.items():
        tag = tag.replace(colour, f"var(--{variable})")
    return _DECIMALS.sub(r"\1", tag)


_INK, _SOFT, _BLUE, _RED, _GREEN, _PURPLE = (
    "#010101",
    "#020202",
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
)
_COLOURS = {
    "ink": _INK,
    "soft": _SOFT,
    "blue": _BLUE,
    "red": _RED,
    "green": _GREEN,
    "purple": _PURPLE,
}
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "covey",
    "font.size": 11.0,
    "text.parse_math": False,
    "text.color": _INK,
    "axes.edgecolor": _SOFT,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
}
_KINDS = (
    ("told", "asked", _BLUE, "o"),
    ("enqueued, told", "enqueued", _PURPLE, "D"),
    ("added", "added", _GREEN, "s"),
)
_UNTOLD = (("pending", _BLUE, "^"), ("failed", _RED, "x"))
_MOST_TICKS = 10
_MOST_PAIRS = 6  # of goals, each with a chart of its own
_LAST_LETTER = 0x0530  # Latin, Greek and Cyrillic lie below; the font of the figure has them


def plot_way(figure: Figure, dots: Sequence[Dot]) -> None:
    """Every trial as a dot above its batch, and the best so far as a line in steps."""
    figure.set_size_inches(5.4, 3.2)
    axes = figure.subplots()
    x = _spread_out(dots)
    for label, origin, colour, marker in _KINDS:
        those = [d.origin == origin and not d.excluded and d.stopped is None for d in dots]
        _plot_values(axes, (x, dots, those), marker, **_filled(colour), label=label)
    excluded = [d.excluded for d in dots]
    drawn = _plot_values(axes, (x, dots, excluded), "X", **_hollow(_SOFT), label="excluded")
    stopped = [d.stopped is not None and not d.excluded for d in dots]
    look = _hollow(_SOFT)
    drawn |= _plot_values(axes, (x, dots, stopped), "v", **look, label="stopped early")
    for status, colour, marker in _UNTOLD:
        without = [x[i] for i, d in enumerate(dots) if d.status == status]
        if without:  # without a value, drawn along the bottom
            foot = axes.get_xaxis_transform()
            y = [0.03] * len(without)
            axes.plot(
                without,
                y,
                marker,
                **_hollow(colour),
                transform=foot,
                label=f"{status}, no value",
            )
    steps = [(d.lot + side, d.best) for d in dots for side in (-0.5, 0.5) if d.best is not None]
    if steps:
        corners = list(zip(*dict.fromkeys(steps), strict=True))
        axes.plot(*corners, color=_RED, linewidth=1.8, zorder=3, label="best so far")
    axes.set(xlabel="batch", ylabel="value")
    axes.margins(y=0.1)  # keeps values off the bottom
    axes.yaxis.set_visible(bool(steps) or drawn)
    _name_batches(axes, dots)
    _plain_numbers(axes.yaxis)
    if axes.get_legend_handles_labels()[0]:  # all trials may be cancelled
        figure.legend(loc="outside upper left", ncols=3, fontsize=10, handlelength=1.2)


def _plot_values(
    axes: Axes, of: tuple[list[float], Sequence[Dot], list[bool]], marker: str, **look: Any
) -> bool:
    """Draw the values of those of the dots; whether there are any."""
    chosen = [
        (x, d.value) for x, d, those in zip(*of, strict=True) if those and d.value is not None
    ]
    if chosen:
        places, values = zip(*chosen, strict=True)
        axes.plot(places, np.array(values, dtype=float), marker, **look)
    return bool(chosen)


def plot_trainings(figure: Figure, each: Sequence[Training]) -> None:
    """The values that evaluations reported by step, and where those that were stopped ended."""
    figure.set_size_inches(5.4, 3.2)
    axes = figure.subplots()
    groups = (
        ("came to its end", [t for t in each if t.ended], _BLUE, "-", "o"),
        ("stopped early", [t for t in each if t.stopped], _RED, "-", "x"),
        ("goes on", [t for t in each if not t.ended and not t.stopped], _SOFT, "--", "^"),
    )
    for label, group, colour, line, marker in groups:
        for place, one in enumerate(group):
            style: Any = {"color": colour, "linewidth": 1.0, "alpha": 0.7, "markersize": 4.5}
            style |= {"label": label} if place == 0 else {}
            axes.plot(one.steps, one.values, line, marker=marker, markevery=[-1], **style)
    axes.set(xlabel="step", ylabel="value reported")
    _plain_numbers(axes.xaxis, 6)
    axes.locator_params(axis="x", integer=True)
    _plain_numbers(axes.yaxis)
    figure.legend(loc="outside upper left", ncols=3, fontsize=10, handlelength=1.4)


def plot_agreement(figure: Figure, pairs: Sequence[Pair]) -> None:
    """Measured against expected, with 90 % bands; the latest batch has a marker of its own."""
    figure.set_size_inches(5.4, 3.5)
    axes, latest = figure.subplots(), max(p.batch for p in pairs)
    groups = (
        (f"batch {latest}", [p for p in pairs if p.batch == latest], _RED, "D"),
        ("earlier batches", [p for p in pairs if p.batch != latest], _BLUE, "o"),
    )
    for label, group, colour, marker in groups:
        if group:
            x = [p.expected.mean for p in group]
            y = [p.measured for p in group]
            low, high = zip(*(p.expected.most for p in group), strict=True)
            axes.hlines(y, low, high, color=colour, linewidth=0.9, alpha=0.55)
            axes.plot(x, y, marker, **_filled(colour), label=label)
    ends = [p.expected.mean for p in pairs] + [p.measured for p in pairs]
    axes.plot(
        [min(ends), max(ends)],
        [min(ends), max(ends)],
        "--",
        color=_INK,
        linewidth=1.0,
        label="as expected",
    )
    axes.set(xlabel="expected, with its 90 % band", ylabel="measured")
    _plain_numbers(axes.xaxis, 4)
    _plain_numbers(axes.yaxis)
    figure.legend(loc="outside upper left", ncols=3, fontsize=10, handlelength=1.4)


def plot_slice(figure: Figure, one: Slice) -> None:
    """Expected value along one parameter with the 90 % interval; options as points with bars.

    Where trials failed, the probability of success is a dashed line with a scale at the right.
    """
    figure.set_size_inches(3.6 if one.success else 3.3, 2.5)
    axes = figure.subplots()
    means = [f.mean for f in one.expected]
    low, high = zip(*(f.most for f in one.expected), strict=True)
    places = np.array(one.at if one.numeric else range(len(one.at)), dtype=float)
    here = one.at.index(one.here) if one.here in one.at else None
    if one.numeric:
        axes.fill_between(places, low, high, color=_BLUE, alpha=0.22, linewidth=0.0)
        axes.plot(places, means, color=_BLUE, linewidth=1.8)
        _number_axis(axes, one.log)
    else:
        axes.vlines(places, low, high, color=_BLUE, linewidth=3.0, alpha=0.4)
        axes.plot(places, means, "o", **_filled(_BLUE))
        axes.set_xlim(-0.6, len(places) - 0.4)
        _name_options(axes, [str(option) for option in one.at])
    if here is not None:
        axes.plot([places[here]], [means[here]], "D", **_filled(_RED, 6.5))
    axes.set_ylabel("value")
    _plain_numbers(axes.yaxis, 4)
    if one.success:
        _success_line(axes, places, one.success, numeric=one.numeric)


def _success_line(
    axes: Axes, places: np.ndarray, success: Sequence[float], *, numeric: bool
) -> None:
    """The probability of success in percent, against a scale of its own at the right."""
    right = axes.twinx()
    right.spines["right"].set_visible(True)
    style = "--" if numeric else "_"
    right.plot(places, 100.0 * np.array(success), style, color=_RED, linewidth=1.4, markersize=14)
    right.set(ylim=(-4.0, 104.0), ylabel="success, %", yticks=(0, 50, 100))


def plot_front(figure: Figure, found: TradeOff) -> None:
    """Every pair of goals: results, those that break a limit, and the front in steps."""
    pairs = list(combinations(range(len(found.goals)), 2))[:_MOST_PAIRS]
    figure.set_size_inches(5.4, 3.4 * len(pairs))
    every = figure.subplots(len(pairs))
    for (i, j), axes in zip(pairs, np.ravel(every), strict=True):
        groups = (
            ("excluded", [d for d in found.dots if d.excluded], _hollow(_SOFT), "X"),
            ("breaks a limit", _broken(found), _hollow(_RED), "x"),
            ("dominated", _dominated(found), _filled(_BLUE), "o"),
            ("front", list(found.front), _filled(_GREEN, 6.5), "D"),
        )
        for label, dots, look, marker in groups:
            known = [d for d in dots if d.values[i] is not None and d.values[j] is not None]
            if known:
                x, y = zip(*((d.values[i], d.values[j]) for d in known), strict=True)
                axes.plot(np.array(x, float), np.array(y, float), marker, **look, label=label)
        if len(found.goals) == 2:
            edge = _steps(found)
            axes.plot(*edge, color=_GREEN, linewidth=1.4, alpha=0.7, zorder=1)
        axes.set(xlabel=_axis_name(found, i), ylabel=_axis_name(found, j))
        _plain_numbers(axes.xaxis, 5)
        _plain_numbers(axes.yaxis)
    handles = np.ravel(every)[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper left", ncols=4, fontsize=10, handlelength=1.2)


def _broken(found: TradeOff) -> list[OutcomeDot]:
    return [d for d in found.dots if not d.excluded and not d.kept]


def _dominated(found: TradeOff) -> list[OutcomeDot]:
    return [d for d in found.dots if not d.excluded and d.kept and not d.on_front]


def _axis_name(found: TradeOff, i: int) -> str:
    """The name of a goal and which way is better, if the font has its letters."""
    name, sense = found.goals[i]
    plain = name.isprintable() and max(map(ord, name)) < _LAST_LETTER and len(name) <= 30
    return f"{name if plain else f'goal {i + 1}'} ({sense})"


def _steps(found: TradeOff) -> tuple[list[float], list[float]]:
    """The edge of what a front of two goals dominates, as corners of a staircase."""
    points = [(d.values[0] or 0.0, d.values[1] or 0.0) for d in found.front]
    if not points:
        return [], []
    x, y = [points[0][0]], [points[0][1]]
    for (_, above), (right, below) in pairwise(points):
        # From the better of the first goal to the worse: one gives way before the other gains.
        x += [right, right]
        y += [above, below]
    return x, y


def plot_attained(figure: Figure, found: TradeOff) -> None:
    """The hypervolume of the front after each batch, in percent of today's."""
    figure.set_size_inches(5.4, 2.6)
    axes = figure.subplots()
    names = [name for name, _ in found.attained]
    shares = [share for _, share in found.attained]
    axes.plot(range(len(names)), shares, "o-", color=_GREEN, markersize=4.5, linewidth=1.8)
    step = max(1, -(-len(names) // _MOST_TICKS))
    axes.set_xticks(range(0, len(names), step), names[::step])
    axes.set(xlabel="batch", ylabel="% of today's hypervolume")
    axes.margins(y=0.1)
    _plain_numbers(axes.yaxis)


@contextmanager
def canvas(extra: str) -> Iterator[Figure]:
    """An empty figure in our style; needs no display, and leaves no state in matplotlib."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", extra) from error
    with rc_context(_STYLE):
        yield Figure(layout="constrained")


def chart(name: str, plot: Callable[[Figure, _Facts], None], facts: _Facts) -> str:
    """A chart as inline SVG, whose image is named by the element ``<name>-words``."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with canvas("report") as figure:
        plot(figure, facts)
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    return inline(buffer.getvalue(), name, _COLOURS)


def _filled(colour: str, size: float = 4.5) -> dict[str, Any]:
    return {"color": colour, "markersize": size, "markeredgewidth": 0.0, "alpha": 0.8}


def _hollow(colour: str) -> dict[str, Any]:
    return {"markerfacecolor": "none", "markeredgecolor": colour, "markersize": 5.5}


def _spread_out(dots: Sequence[Dot]) -> list[float]:
    """Horizontal positions (one per dot): the trials of one batch side by side."""
    sizes: dict[int, int] = {}
    for dot in dots:
        sizes[dot.lot] = sizes.get(dot.lot, 0) + 1
    seen: dict[int, int] = {}
    places = []
    for dot in dots:
        rank = seen[dot.lot] = seen.get(dot.lot, -1) + 1
        places.append(dot.lot + 0.7 * ((rank + 0.5) / sizes[dot.lot] - 0.5))
    return places


def _name_batches(axes: Axes, dots: Sequence[Dot]) -> None:
    names = {d.lot: str(d.batch) if d.batch is not None else d.origin[:3] for d in dots}
    first, last = min(names, default=0), max(names, default=0)
    step = max(1, -(-len(names) // _MOST_TICKS))
    ticks = [at for at in names if (at - first) % step == 0]
    axes.set_xticks(ticks, [names[at] for at in ticks])
    axes.set_xlim(first - 0.6, last + 0.6)


def _name_options(axes: Axes, names: list[str]) -> None:
    """Short texts unchanged; if one is long or not in the font, numbers as in the table."""
    plain = all(
        0 < len(n) <= 12 and n.isprintable() and max(map(ord, n)) < _LAST_LETTER for n in names
    )
    labels = names if plain else [str(i) for i in range(1, len(names) + 1)]
    tilt = 0 if sum(map(len, labels)) <= 24 else 35
    axes.set_xticks(range(len(names)), labels, rotation=tilt, ha="right" if tilt else "center")


def _number_axis(axes: Axes, log: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_xlim()
    if log:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
    if not log or high < 10.0 * low:
        return _plain_numbers(axes.xaxis, 4)
    axes.xaxis.set_major_locator(LogLocator(numticks=5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: significant(x)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    return None


def _plain_numbers(scale: Scale, ticks: int = 6) -> None:
    """Few ticks, each with its full number, without an offset at the end of the axis."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    scale.set_major_locator(MaxNLocator(ticks))
    scale.set_minor_locator(NullLocator())
    scale.set_major_formatter(FuncFormatter(lambda x, _: significant(x, 6)))
