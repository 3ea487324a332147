"""A page to print: the plate as it looks from above, on one sheet of A4 in landscape."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.plates.layout import row_name

if TYPE_CHECKING:
    from covey.history import Point
    from covey.plates.wells import Plate, Well

_STYLE = """
@page { size: A4 landscape; margin: 8mm; }
* { box-sizing: border-box; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
body { font: 9pt/1.25 system-ui, sans-serif; color: #111; margin: 0; width: 281mm; }
header { display: flex; justify-content: space-between; align-items: baseline; height: 9mm; }
h1 { font-size: 15pt; margin: 0; }
h1 small { font-size: 10pt; font-weight: normal; margin-left: 4mm; }
.fill { font-size: 9pt; }
table { border-collapse: collapse; table-layout: fixed; width: 281mm; height: var(--all); }
th { font-weight: 600; font-size: 8pt; }
th:first-child { width: 7mm; }
td { border: 0.2mm solid #777; padding: 0.4mm; text-align: center; vertical-align: middle;
  overflow: hidden; font-size: var(--small); line-height: 1.1; height: var(--high); }
td b { font-size: var(--big); display: block; }
td i { font-style: normal; color: #333; display: block; white-space: nowrap; overflow: hidden; }
td.control { border: 0.7mm solid #111; background: repeating-linear-gradient(45deg, #fff 0 1mm,
  #ddd 1mm 1.4mm); }
td.control b { font-size: var(--small); overflow-wrap: anywhere; }
td.empty { background: #f4f4f4; color: #999; }
td.done { text-decoration: underline; }
td.marked b { text-decoration: line-through; }
footer { margin-top: 2mm; font-size: 7.5pt; }
footer p { margin: 0 0 0.6mm; }
"""
_WIDE = 274.0  # mm: all columns together
_LETTER = 0.19  # mm: of a letter, for each point of its size
_SHADES = ("#ffffff", "#eef4fb", "#dceaf7", "#c9dff3", "#b5d3ee")


def plate_map(plate: Plate, decimal: str = ".") -> str:
    """The page as HTML that needs nothing else: print it, or save it as PDF.

    A well shows its trial, copy and run order, and its first parameters where there is room.
    """
    grid = plate.grid
    room = _room(grid.columns)
    names = _varying(plate)[: room["lines"]]
    keys = _keys(plate, names, int((_WIDE / grid.columns - 1.0) / (_LETTER * room["small"])))
    shade = _shades(plate, names)
    head = "".join(f"<th>{column + 1}</th>" for column in range(grid.columns))
    rows = []
    for row in range(grid.rows):
        wells = plate.wells[row * grid.columns : (row + 1) * grid.columns]
        cells = "".join(
            _cell(well, _lines(well, names, keys, decimal), shade.get(well.name, ""))
            for well in wells
        )
        rows.append(f"<tr><th>{row_name(row)}</th>{cells}</tr>")
    footer = [*_footer(plate, names, keys), *_controls(plate, decimal)]
    high = 164.0 - 3.4 * max(0.0, sum(-(-len(line) // 190) for line in footer) - 3.0)
    sizes = f"--small:{room['small']}pt;--big:{room['big']}pt;--all:{high:.1f}mm;"
    sizes += f"--high:{(high - 2) / grid.rows - 0.6:.1f}mm"
    shared = ", ".join(f"{n} = {_short(v, decimal)}" for n, v in _same(plate).items())
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f"<title>Plate {escape(plate.name)}</title><style>{_STYLE}</style></head><body>"
        f"<header><h1>Plate {escape(plate.name)}<small>{escape(shared)}</small></h1>"
        "<span class='fill'>Date ______________ &nbsp; Operator ______________ &nbsp; "
        "A1 is at the top left</span></header>"
        f"<table style='{sizes}'><thead><tr><th></th>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
        f"<footer>{''.join(f'<p>{escape(line)}</p>' for line in footer)}</footer></body></html>\n"
    )


def _keys(plate: Plate, names: list[str], room: int) -> dict[tuple[str, str], str]:
    """Short marks for the values that are too long for a well; the footer says which is which."""
    points = _points(plate)
    shown = {name: sorted({str(p.get(name)) for p in points}) for name in names}
    taken = {text for texts in shown.values() for text in texts if len(text) <= room}
    found: dict[tuple[str, str], str] = {}
    for name, texts in shown.items():
        wide = [t for t in texts if len(t) > room and not _is_number(name, points)]
        for number, text in enumerate(wide, start=1):
            tried = (f"{name[:n].upper()}{number}" for n in range(1, len(name) + 1))
            key = next((mark for mark in tried if mark not in taken), f"{name} {number}*")
            taken.add(key)
            found[name, text] = key
    return found


def _points(plate: Plate) -> list[Point]:
    """The points of its samples, one for each well."""
    return [well.point for well in plate.wells if well.trial is not None and well.point]


def _is_number(name: str, points: list[Point]) -> bool:
    return _numeric([point.get(name) for point in points if point.get(name) is not None])


def _lines(
    well: Well, names: list[str], keys: dict[tuple[str, str], str], decimal: str
) -> list[str]:
    """What a well shows of its point."""
    if well.point is None:
        return []
    values = [(name, well.point.get(name)) for name in names]
    return [keys.get((name, str(v))) or _short(v, decimal) for name, v in values]


def _room(columns: int) -> dict[str, Any]:
    """Sizes of text, and lines of parameters, that fit so many columns."""
    if columns <= 8:
        return {"small": 8, "big": 11, "lines": 6}
    if columns <= 12:
        return {"small": 6.5, "big": 9, "lines": 4}
    if columns <= 24:
        return {"small": 4.2, "big": 5.5, "lines": 1}
    return {"small": 3, "big": 3.4, "lines": 0}


def _cell(well: Well, lines: list[str], shade: str) -> str:
    title = escape(f"{well.name}: {well.role}")
    if well.order is None:
        return f"<td class='empty' title='{title}'></td>"
    done = " marked" if well.mark else " done" if well.value is not None else ""
    if well.trial is None:
        what, kind = well.role.removeprefix("control:"), f"control{done}"
    else:
        copy = f"<small>.{well.replicate}</small>" if (well.replicate or 1) > 1 else ""
        return (
            f"<td class='{done.strip()}' style='background:{shade}' title='{title}'>"
            f"<b>{well.trial}{copy}</b>{''.join(f'<i>{escape(line)}</i>' for line in lines)}"
            f"<i>#{well.order}</i></td>"
        )
    named = escape(what).replace("_", "_<wbr>").replace("-", "-<wbr>")
    return f"<td class='{kind}' title='{title}'><b>{named}</b><i>#{well.order}</i></td>"


def _same(plate: Plate) -> dict[str, Any]:
    """What is the same all over the plate."""
    points = _points(plate)
    names = [
        n for n in plate.parameters if points and all(p.get(n) == points[0].get(n) for p in points)
    ]
    return {name: points[0].get(name) for name in names}


def _varying(plate: Plate) -> list[str]:
    same = _same(plate)
    return [name for name in plate.parameters if name not in same]


def _shades(plate: Plate, names: list[str]) -> dict[str, str]:
    """A shade for each well by its prediction; by its first parameter where there is none."""
    wells = [well for well in plate.wells if well.trial is not None and well.point]
    if wells and all(well.predicted is not None for well in wells):
        values: list[Any] = [well.predicted for well in wells]
    elif names:
        values = [well.point.get(names[0]) for well in wells if well.point]
    else:
        return {}
    order = sorted({*map(repr, values)}) if not _numeric(values) else None
    numbers = np.array([order.index(repr(v)) if order else float(v) for v in values], dtype=float)
    span = float(np.ptp(numbers)) or 1.0
    places = ((numbers - numbers.min()) / span * (len(_SHADES) - 1)).round().astype(int)
    return {well.name: _SHADES[place] for well, place in zip(wells, places.tolist(), strict=True)}


def _numeric(values: list[Any]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def _footer(plate: Plate, names: list[str], keys: dict[tuple[str, str], str]) -> list[str]:
    predicted = any(well.predicted is not None for well in plate.wells)
    by = "prediction" if predicted else names[0] if names else ""
    shown = f"below it: {', '.join(names)}; " if names else ""
    legend = f"Bold: trial, .2 its second copy; {shown}#: run order"
    points = _points(plate)
    ranked = predicted or (names and _is_number(names[0], points))
    legend += (f"; the darker, the higher the {by}" if ranked else f"; shades: {by}") if by else ""
    lines = [f"{legend}. Thick frames are controls, grey wells stay empty."]
    marks = "; ".join(f"{well.name}: {well.mark}" for well in plate.wells if well.mark)
    if marks:
        lines.append(f"Struck out, and not counted: {marks}.")
    if keys:
        lines.append("; ".join(f"{key} = {text}" for (_, text), key in keys.items()) + ".")
    return [*lines, f"Balance: {plate.balance}."]


def _controls(plate: Plate, decimal: str) -> list[str]:
    """What goes into the controls that are points of the space."""
    wells = {w.role.removeprefix("control:"): w for w in plate.wells if w.trial is None and w.point}
    return [
        f"{name}: {', '.join(f'{n} {_short(v, decimal)}' for n, v in (well.point or {}).items())}."
        for name, well in wells.items()
    ]


def _short(value: Any, decimal: str) -> str:
    return f"{value:.4g}".replace(".", decimal) if isinstance(value, float) else str(value)
