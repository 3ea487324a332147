"""`covey plate`: ask for whole plates, tell what a reader measured, show them, write pick lists."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covey.cli.ask import pairs_in
from covey.cli.options import (
    FILE,
    Config,
    Decimal,
    DryRun,
    Fix,
    Force,
    Json,
    Out,
    Strategy,
    mark_of,
)
from covey.cli.output import ExitCode, Output, Stop, put, put_exactly, put_json, say
from covey.cli.output import table as text_table
from covey.cli.settings import Settings, read_settings
from covey.cli.show import end, look_at, next_command, rehearsal_of
from covey.cli.tell import is_terminal
from covey.errors import sentence, several
from covey.sheets.points import fixed_from_text
from covey.sheets.writing import sheet_bytes

if TYPE_CHECKING:
    from covey.history import History, PlateRecord
    from covey.plates import Layout, Plate
    from covey.plates.machines import PickList
    from covey.plates.reader import Readings
    from covey.plates.telling import WellTold
    from covey.study import Study

_ROUNDED = 8  # lines on rounded volumes, which may be hundreds
Name = Annotated[str, typer.Argument(metavar="PLATE", help="The name of a plate, such as p1.")]


def ask_plates(
    config: Config = FILE,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many plates.")] = 1,
    strategy: Strategy = None,
    fix: Fix = [],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for a table and a map of each.")
    ] = None,
    force: Force = False,
    decimal: Decimal = None,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Choose the next plates by the layout in [plate] of covey.toml, and place their wells.

    \b
    covey plate ask
    covey plate ask -n 2 --out plates
    covey plate ask --fix temperature=40 --out german --decimal comma
    covey plate ask --dry-run --json
    """
    settings = read_settings(config)
    layout = _layout(settings)
    given = pairs_in(fix, "--fix")
    if out is not None and not dry_run:
        _require_room(out, _next_names(settings, count), settings, force=force)
    # In memory first: a refusal leaves no journal, which would keep the space.
    starts = not dry_run and not settings.journal.exists()
    study = rehearsal_of(settings) if dry_run or starts else settings.study()
    held = fixed_from_text(study.space, given)
    say(f"filling {several(count, 'plate')}: {layout.sum_in_words} ...")
    made = study.ask_plates(count, layout, strategy=strategy, fixed=held)
    study = _started(settings, study) if starts else study
    if out is not None and not dry_run:
        _write(made, out, settings, mark_of(decimal) or ".", force=force)
    _print(made, as_json=as_json, dry_run=dry_run, silent=out is not None and not dry_run)
    for plate in made:
        what = "".join(f", {name} {value}" for name, value in plate.held.items())
        say(f"{plate.name}{what}: {several(len(plate.trials), 'trial')}; {plate.balance}")
    if not dry_run:
        say(f"next: covey plate tell reader.csv --plate {made[0].name}")
    return end(study)


def _print(made: Sequence[Plate], *, as_json: bool, dry_run: bool, silent: bool) -> None:
    if as_json:
        rows = [{"name": p.name, "trials": list(p.trials), "wells": p.rows()} for p in made]
        put_json("covey.plates/1", {"plates": rows, "dry_run": dry_run})
    elif not silent:
        for plate in made:
            put(_picture(plate))


def _started(settings: Settings, chosen: Study) -> Study:
    """The study on its journal, which begins with what was chosen in memory."""

    def require_no_other(history: History) -> None:
        if history.events:
            raise Stop(
                ExitCode.CONFLICT,
                f"another process has just started {settings.journal}, and these plates were "
                "chosen without its trials. Nothing was recorded; run the command again.",
            )

    study = settings.changed(seed=chosen.seed).study()
    for event in chosen.history.events:
        study.note(event, require=require_no_other)
    return study


def tell_plate(
    readings: Annotated[Path, typer.Argument(help="A reader's file: a long table or a matrix.")],
    config: Config = FILE,
    plate: Annotated[str | None, typer.Option("--plate", "-p", help="Which plate it is.")] = None,
    mark: Annotated[
        list[str], typer.Option(metavar="WELL=WHY", help="What went wrong there.")
    ] = [],
    part: Annotated[bool, typer.Option("--part", help="Wells may be missing.")] = False,
    day: Annotated[str | None, typer.Option(help="Day of the measurement.")] = None,
    value: Annotated[
        str | None, typer.Option(help="Column of the readings, such as OD600.")
    ] = None,
    decimal: Decimal = None,
    turned: Annotated[
        bool, typer.Option("--turned", help="It was turned by 180 degrees: turn readings back.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Record it as it is, though it looks mixed up.")
    ] = False,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Record what a reader measured on a plate: all of it or none.

    The file (CSV, .xlsx) has a column of wells and one for each outcome (value), perhaps plate and
    mark; or it is a matrix as the plate looks, with or without letters and numbers around it. Lines
    above are passed over. --dry-run shows what each well is. If controls and copies fit much better
    on the plate turned, or on another that is not measured yet, it asks first.

    \b
    covey plate tell --dry-run reader.csv --plate p1 --mark A3=bubble
    covey plate tell reader.csv --plate p1
    covey plate tell reader.csv --plate p1 --value value
    covey plate tell p1.csv --part
    """
    from covey.plates.telling import what_wells_are

    _require_one_answer(turned=turned, yes=yes)
    settings = read_settings(config)
    if not settings.journal.exists():
        missing = f"there is no {settings.journal} yet; `covey plate ask` starts it."
        raise Stop(ExitCode.CONFLICT, missing)
    study = rehearsal_of(settings) if dry_run else settings.study()
    name = plate or _only_open(study, readings)
    # Without predictions, for which the model would have to be fitted.
    placed = next((one for one in study.plates if one.name == name), None) or study.plate(name)
    before = study.history
    records = before.plates.records
    found = _read(placed, readings, value, mark_of(decimal), turned=turned)
    found = _marked(found, mark, records[name])
    _require_own(found, name, records, readings)
    _require_own_place(found, name, records, answered=turned or yes, asks=not dry_run)
    wells = what_wells_are(found, records[name])
    if dry_run and not as_json:
        put(_preview(wells))
    study.tell_plate(name, found, part=part, day=day, turned=False)
    news = _News.between(before, study.history, name)
    if as_json:
        shown = {"wells": [_well_json(well) for well in wells]} if dry_run else {}
        put_json("covey.plate.tell/1", {**news.fields, "dry_run": dry_run, **shown})
    else:
        put(news.summary("would be told" if dry_run else "told"))
    for another, rows in found.others.items():
        say(f"{readings}: {several(rows, 'row')} of plate {another} left out")
    for line in news.lines():
        say(line)
    if news.still_to_come or not dry_run:
        say(news.still_to_come or f"next: {next_command(settings, study)}")
    return end(study)


def _require_one_answer(*, turned: bool, yes: bool) -> None:
    if turned and yes:
        raise Stop(
            ExitCode.USAGE,
            "--turned turns the readings back, and --yes keeps them as they are; give one.",
        )


def _require_own(
    found: Readings, name: str, records: Mapping[str, PlateRecord], path: Path
) -> None:
    """Raise if a file fits this plate, and is that of another: wells could not be told again."""
    from covey.plates.telling import same_as_told

    if other := same_as_told(found, name, records):
        raise Stop(
            ExitCode.CONFLICT,
            f"{path} has in every well the reading that plate {other} was told, so it is the "
            f"file of {other}. Nothing was recorded. Tell the file of {name}.",
        )


def _require_own_place(
    found: Readings,
    name: str,
    records: Mapping[str, PlateRecord],
    *,
    answered: bool,
    asks: bool,
) -> None:
    """Ask whether a plate is to be recorded that was probably turned, or is another one.

    Where nobody can answer it is refused; a preview only says so.
    """
    from covey.plates.mixed_up import mix_up

    better = None if answered else mix_up(found, name, records)
    if better is None:
        return
    how = "if the plate was turned by 180 degrees" if better.turned else f"on {better.plate}"
    say(f"plate {name}: the readings fit better {how}: {better.says}")
    if not asks or (is_terminal() and typer.confirm("Record them as they are?", err=True)):
        return
    answer = "--turned" if better.turned else f"--plate {better.plate}"
    raise Stop(
        ExitCode.CONFLICT,
        f"nothing was recorded of plate {name}. Tell it with {answer}, or with --yes if the plate "
        "stood as laid out.",
    )


def _read(
    plate: Plate, path: Path, value: str | None, decimal: str | None, *, turned: bool
) -> Readings:
    """What a reader's file says of a plate; messages about it name commands."""
    from covey.plates.mixed_up import turned_back

    found = replace(plate.readings(path, value=value, decimal=decimal), by_command=True)
    for note in found.notes:
        say(f"{path}: {note}")
    return turned_back(found, plate.grid) if turned else found


def _marked(found: Readings, marks: Sequence[str], record: PlateRecord) -> Readings:
    """The readings, with these wells marked as well, each given as WELL=WHY."""
    from covey.plates.telling import marked_as_well

    return marked_as_well(found, dict(_pair(word) for word in marks), record)


@dataclass(frozen=True)
class _News:
    """What a telling changed on a plate."""

    plate: str
    told: int
    marked: dict[str, str]  # by well, why
    lost: list[int]  # trials all of whose wells are marked
    missing: tuple[str, ...]
    any: bool

    @classmethod
    def between(cls, before: History, after: History, plate: str) -> _News:
        """The difference between two histories."""
        old, new = (history.plates.records[plate] for history in (before, after))
        ids = sorted({use.trial for use in new.uses.values() if use.trial is not None})
        lost = [i for i in ids if after[i].status == "lost" and before[i].status != "lost"]
        return cls(
            plate,
            len(after.told) - len(before.told),
            {well: why for well, why in new.marks.items() if well not in old.marks},
            lost,
            new.missing,
            len(after.events) > len(before.events),
        )

    @property
    def fields(self) -> dict[str, Any]:
        """For JSON output."""
        named = {"plate": self.plate, "told": self.told, "marked": self.marked, "lost": self.lost}
        return {**named, "missing": list(self.missing)}

    def summary(self, verb: str) -> str:
        """How many trials were told."""
        nothing = "" if self.any else "; everything in it was recorded before"
        return f"plate {self.plate}: {several(self.told, 'trial')} {verb}{nothing}"

    @property
    def still_to_come(self) -> str:
        """The wells that have no reading, in words; empty if there are none."""
        some = ", ".join(self.missing[:8]) + (" ..." if len(self.missing) > 8 else "")
        return f"{several(len(self.missing), 'well')} still to come: {some}" if some else ""

    def lines(self) -> Iterator[str]:
        """Wells that do not count, and the trials that are lost by them, in words."""
        if self.marked:
            wells = ", ".join(f"{well} ({why})" for well, why in self.marked.items())
            does = "does" if len(self.marked) == 1 else "do"
            yield f"{several(len(self.marked), 'well')} marked, which {does} not count: {wells}"
        for trial in self.lost:
            yield f"trial {trial} is lost: every well of it is marked; its point is free again"


def _preview(wells: Sequence[WellTold]) -> str:
    """A table of what each well is."""
    from covey.history.trial import value_in_words

    shown = [None if w.values is None else value_in_words(w.values) for w in wells]
    pairs = zip(wells, shown, strict=True)
    rows = [[w.well, w.kind, w.trial, value, w.says] for w, value in pairs]
    return text_table(["well", "is", "trial", "value", ""], rows)


def _well_json(well: WellTold) -> dict[str, Any]:
    from covey.history.trial import as_told

    return {
        "well": well.well,
        "is": well.kind,
        "trial": well.trial,
        "value": None if well.values is None else as_told(well.values),
        "says": well.says,
    }


def _only_open(study: Study, path: Path) -> str:
    """The plate that a file names, or the only one that is not measured yet."""
    from covey.plates.reader import plate_named_in

    named = plate_named_in(path)
    if named is not None:
        return named
    records = study.history.plates.records
    waiting = [name for name, one in records.items() if one.missing] or [*records]
    if len(waiting) == 1:
        return waiting[0]
    which = ", ".join(waiting) or "none was asked for yet"
    raise Stop(ExitCode.USAGE, f"which plate is it? {which}; name one with --plate.")


def _pair(word: str) -> tuple[str, str]:
    well, equals, why = word.partition("=")
    if not equals or not why.strip():
        raise Stop(ExitCode.USAGE, f"--mark is WELL=WHY, such as A3=bubble; got {word!r}.")
    return well, why


def show_plate(
    plate: Name,
    config: Config = FILE,
    out: Out = None,
    page: Annotated[
        Path | None, typer.Option("--map", help="Write a page to print, as HTML.")
    ] = None,
    force: Force = False,
    decimal: Decimal = None,
    as_json: Json = False,
) -> None:
    """Show a plate: what stands where, what was measured, how even it is.

    \b
    covey plate show p1
    covey plate show p1 --map p1.html
    covey plate show p1 --out p1.csv
    covey plate show p1 --out p1-german.csv --decimal comma
    """
    settings = read_settings(config)
    study = _opened(settings)
    shown, mark = study.plate(plate), mark_of(decimal) or "."
    outputs = []
    if out is not None:
        table = sheet_bytes(out, shown.columns, shown.rows(), mark)
        outputs.append((Output(out, settings.files, force), table))
        outputs[0][0].require_sheet()
    if page is not None:
        outputs.append((Output(page, settings.files, force), shown.map(mark).encode()))
    for output, _ in outputs:
        output.require_free()
    for output, content in outputs:
        output.write(content)
    if as_json:
        put_json("covey.plate/1", {"name": shown.name, "wells": shown.rows()})
    elif out is None and page is None:
        put(_picture(shown))
    say(f"{shown.name}: {shown.balance}")
    if shown.missing:
        say(f"{several(len(shown.missing), 'well')} without a reading yet")
    return end(study)


def pick(
    plate: Name,
    stocks: Annotated[Path, typer.Option("--stocks", help="CSV of materials and their wells.")],
    config: Config = FILE,
    machine: Annotated[
        str, typer.Option("--for", help="echo, opentrons, hamilton, epmotion or generic.")
    ] = "generic",
    out: Out = None,
    force: Force = False,
    slot: Annotated[str, typer.Option(help="Slot of the plate; of epmotion its rack.")] = "",
    labware: Annotated[str, typer.Option(help="Labware of the plate (opentrons).")] = "",
    as_dispensed: Annotated[
        bool,
        typer.Option("--as-dispensed", help="Record the points that rounded volumes make."),
    ] = False,
    decimal: Decimal = None,
    as_json: Json = False,
) -> None:
    """Write what a liquid handler is to transfer, by the rules in [[dispense]] of covey.toml.

    Volumes that a machine cannot do are rounded, and it is said in which wells. With
    --as-dispensed the journal records what is in the wells then, and the model learns from that.

    \b
    covey plate pick p1 --for echo --stocks stocks.csv --out p1-echo.csv
    covey plate pick p1 --for hamilton --stocks stocks.csv --out p1-hamilton.csv --as-dispensed
    """
    from covey.plates.picking import pick_list

    settings = read_settings(config)
    study = _opened(settings)
    to = {"slot": slot, **({"type": labware} if labware else {})}
    placed = study.plate(plate)
    made = pick_list(placed, machine, stocks, settings.dispense, to, decimal=mark_of(decimal))
    for note in made.notes:
        say(f"{stocks}: {note}")
    kept = (*settings.files, stocks)
    outputs = [(Output(p, kept, force), text) for p, text in made.files(out).items()] if out else []
    if out is None and not as_json and len(made.tables()) > 1:
        raise Stop(
            ExitCode.USAGE,
            f"{machine} reads {several(len(made.tables()), 'file')} of this; name one with --out, "
            "and they are numbered.",
        )
    for output, _ in outputs:
        output.require_free()
    moved: list[int] = []
    if as_dispensed:
        study = settings.change()
        moved = [trial.id for trial in study.tell_dispensed(made)]
    for output, text in outputs:
        output.write(text)
    if as_json:
        put_json("covey.plate.pick/1", _picked(made, [str(o.path) for o, _ in outputs], moved))
    elif out is None:
        put_exactly(made.table())
    _say_rounded(made, moved, as_dispensed=as_dispensed)
    files = f" in {several(len(outputs), 'file')}" if len(outputs) > 1 else ""
    say(f"{several(len(made.transfers), 'transfer')}{files}")
    return end(study)


def _picked(made: PickList, files: list[str], moved: list[int]) -> dict[str, Any]:
    rounded = [
        {"well": t.well, "material": t.source.material, "wanted_ul": t.wanted, "ul": t.volume}
        for t in made.rounded
    ]
    return {
        "transfers": len(made.transfers),
        "rounded": rounded,
        "as_dispensed": moved,
        "files": files,
    }


def _say_rounded(made: PickList, moved: list[int], *, as_dispensed: bool) -> None:
    """Say which volumes are rounded, in which wells, and what became of points."""
    found = [f"{', '.join(wells)}: {what}" for what, wells in made.rounded_by_volume.items()]
    for line in found[:_ROUNDED]:
        say(line)
    if made.rounded:
        rest = len(made.rounded) - sum(map(len, [*made.rounded_by_volume.values()][:_ROUNDED]))
        also = f"; {rest} of them by less than those above (--json has all)" if rest else ""
        say(f"{several(len(made.rounded), 'volume')} rounded to what {made.profile} can do{also}")
    if moved:
        be = "is" if len(moved) == 1 else "are"
        say(f"{several(len(moved), 'trial')} {be} recorded as dispensed")
    elif made.as_dispensed and not as_dispensed:
        say("with --as-dispensed the model learns from what is in the wells then")


def _opened(settings: Settings) -> Study:
    if not settings.journal.exists():
        missing = f"there is no {settings.journal} yet; `covey plate ask` starts it."
        raise Stop(ExitCode.CONFLICT, missing)
    return look_at(settings)


def _layout(settings: Settings) -> Layout:
    from covey.plates import Layout

    if settings.plate is None:
        raise Stop(
            ExitCode.INVALID,
            f"{settings.path} has no table [plate], which says how a plate is filled; write one, "
            'such as [plate] with plate = 96 and shared = {temperature = "plate"}.',
        )
    return Layout.from_description(settings.plate)


def _next_names(settings: Settings, count: int) -> list[str]:
    """The names that the next plates will have."""
    known = len(look_at(settings).history.plates.records) if settings.journal.exists() else 0
    return [f"p{known + number}" for number in range(1, count + 1)]


def _outputs(name: str, folder: Path, settings: Settings, *, force: bool) -> tuple[Output, Output]:
    """The table and the map of a plate in a folder."""
    table, page = (folder / f"{name}.{kind}" for kind in ("csv", "html"))
    return Output(table, settings.files, force), Output(page, settings.files, force)


def _require_room(folder: Path, names: Sequence[str], settings: Settings, *, force: bool) -> None:
    """Refuse before anything is asked if a file could not be written there."""
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    if not there.is_dir():
        raise Stop(ExitCode.USAGE, f"{there} is a file; --out names a folder.")
    if not os.access(there, os.W_OK):
        raise Stop(ExitCode.FAILED, f"nothing may be written in {there}; name another folder.")
    for name in names if folder.is_dir() else ():
        for output in _outputs(name, folder, settings, force=force):
            output.require_free()


def _write(
    made: Sequence[Plate], folder: Path, settings: Settings, decimal: str, *, force: bool
) -> None:
    """Write a table and a map for each plate into a folder."""
    for plate in made:
        table, page = _outputs(plate.name, folder, settings, force=force)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            table.write(sheet_bytes(table.path, plate.columns, plate.rows(), decimal))
            page.write(plate.map(decimal))
        except (OSError, Stop) as error:
            why = error if isinstance(error, Stop) else f"cannot make {folder}: {error.strerror}"
            raise Stop(
                error.code if isinstance(error, Stop) else ExitCode.FAILED,
                f"{sentence(why)} The plates are recorded: {', '.join(p.name for p in made)}. "
                f"`covey plate show {plate.name} --out FILE.csv --map FILE.html` writes one.",
            ) from error
        say(f"wrote {folder / plate.name}.csv and {plate.name}.html, a page to print")


def _picture(plate: Plate) -> str:
    """The plate in letters: trials by their ids, controls by their names."""
    grid = plate.grid
    texts = []
    for well in plate.wells:
        what = "." if well.order is None else str(well.trial)
        if well.role.startswith("control:"):
            what = well.role.removeprefix("control:")[:6]
        texts.append(what + ("!" if well.mark else "*" if well.value is not None else ""))
    wide = max(len(text) for text in texts) + 1
    lines = [f"{plate.name:<4}" + "".join(f"{c + 1:>{wide}}" for c in range(grid.columns))]
    for row in range(grid.rows):
        cells = texts[row * grid.columns : (row + 1) * grid.columns]
        name = plate.wells[row * grid.columns].row
        lines.append(f"{name:<4}" + "".join(f"{text:>{wide}}" for text in cells))
    return "\n".join(lines)
