"""Sheets opened and saved by a real spreadsheet, a German one and an American one.

LibreOffice stands for Excel: it reads and writes numbers, booleans and workbooks in the way of its
locale. What it saves is filled in as a person would, and told.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

OFFICE = shutil.which("soffice") or shutil.which("libreoffice")
pytestmark = pytest.mark.skipif(
    OFFICE is None,
    reason="there is no LibreOffice here; apt-get install libreoffice-calc-nogui",
)
openpyxl = pytest.importorskip("openpyxl", reason="install it: pip install 'covey[excel]'")

import covey
from covey.sheets.writing import sheet_bytes

SPACE = """
[study]
batch = 6
seed = 3
[parameters.T]
type = "real"
low = 20
high = 90
step = 0.1
[parameters.conc]
type = "real"
low = 0.01
high = 1
log = true
[parameters.n]
type = "integer"
low = 1
high = 2000
[parameters.dose]
type = "choice"
options = [0.5, 1.0, 2.5]
[parameters.solvent]
type = "choice"
options = ["DMF", "1,4-dioxane", "Wäßrig", "=x", "MAR2", "2-3", "1.5"]
[parameters.hot]
type = "choice"
options = [true, false]
"""
REGISTRY = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Setup/L10N"><prop oor:name="ooSetupSystemLocale" oor:op="fuse">
<value>{}</value></prop></item>
</oor:items>
"""


@dataclass(frozen=True)
class Country:
    locale: str
    separator: str
    words: tuple[str, ...]  # for `covey ask`
    mark: str

    @property
    def csv(self) -> str:
        """The filter: separator, quote, UTF-8, from line 1, special numbers found, as shown."""
        return f"Text - txt - csv (StarCalc):{ord(self.separator)},34,76,1,,0,false,true,false"


COUNTRIES = {
    "German": Country("de-DE", ";", ("--decimal", "comma"), ","),
    "American": Country("en-US", ",", (), "."),
}


@pytest.fixture
def asked(call):
    Path("covey.toml").write_text(SPACE, encoding="utf-8")
    assert call("ask").code == 0
    return call


def saved_by(country, folder, source, kind):
    """What the spreadsheet of a country makes of a file when it opens and saves it."""
    profile = folder / "profile"
    settings = profile / "user" / "registrymodifications.xcu"
    settings.parent.mkdir(parents=True, exist_ok=True)
    if not settings.exists():
        settings.write_text(REGISTRY.format(country.locale))
    out = folder / f"{source.stem}-{source.suffix[1:]}-to-{kind}"
    words = [OFFICE, "--headless", f"-env:UserInstallation={profile.resolve().as_uri()}"]
    if source.suffix == ".csv":
        words += [f"--infilter={country.csv}"]
    words += ["--convert-to", f"csv:{country.csv}" if kind == "csv" else "xlsx"]
    words += ["--outdir", str(out), str(source)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    (made,) = out.iterdir() if out.exists() else [None]
    assert made is not None, done.stderr
    return made


def fill(path, country, values):
    """Type values into the last column, as one does in that country."""
    if path.suffix == ".xlsx":
        book = openpyxl.load_workbook(path)
        for row, value in enumerate(values, start=2):
            book.active.cell(row=row, column=book.active.max_column).value = value
        return book.save(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        first, *rows = csv.reader(file, delimiter=country.separator)
    for row, value in zip(rows, values, strict=True):
        row[-1] = str(value).replace(".", country.mark)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=country.separator).writerows([first, *rows])
    return None


def first_column(path, country, name):
    """A column as the spreadsheet has it: numbers are numbers, text is text."""
    if path.suffix == ".xlsx":
        first, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
        return [row[first.index(name)] for row in rows]
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=country.separator))
    return [float(row[name].replace(country.mark, ".")) for row in rows]


@pytest.mark.parametrize("country", COUNTRIES.values(), ids=COUNTRIES)
def test_a_sheet_opens_well_and_comes_back(asked, country, tmp_path):
    """CSV and workbook, opened and saved as either: on the steps, and all of it told."""
    for kind in ("csv", "xlsx"):
        assert asked("ask", "--out", f"plate.{kind}", *country.words).code == 0
    trials = covey.Study.load("covey.jsonl", read_only=True).history.trials
    values = [1.5 + i for i in range(6)]
    for source in (Path("plate.csv"), Path("plate.xlsx")):
        for kind in ("csv", "xlsx"):
            made = saved_by(country, tmp_path, source, kind)
            temperatures = [trial.point["T"] for trial in trials]
            assert first_column(made, country, "T") == temperatures  # to the last digit
            fill(made, country, values)
            done = asked("tell", made, "--dry-run", "--json")
            assert done.code == 0, (source, kind, done.err)
            rows = done.json["rows"]
            assert [row["is"] for row in rows] == ["result"] * 6, (source, kind)
            assert [row["values"]["value"] for row in rows] == values
    assert asked("tell", made).code == 0
    told = covey.Study.load("covey.jsonl", read_only=True).history.told
    assert [trial.value for trial in told] == values


PLATE = """
[plate]
plate = 12
shared = {T = "plate"}
controls = {blank = 2}
"""


def fill_wells(path, country, values):
    """Type readings into the column value, below a title, as one does in that country."""
    if path.suffix == ".xlsx":
        book = openpyxl.load_workbook(path)
        sheet = book.active
        heads = [cell.value for cell in sheet[1]]
        for row in range(2, sheet.max_row + 1):
            well = sheet.cell(row=row, column=heads.index("well") + 1).value
            sheet.cell(row=row, column=heads.index("value") + 1).value = values.get(well)
        sheet.insert_rows(1)
        sheet["A1"] = "Plate of week 12"
        return book.save(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        first, *rows = csv.reader(file, delimiter=country.separator)
    for row in rows:
        value = values.get(row[first.index("well")])
        row[first.index("value")] = "" if value is None else str(value).replace(".", country.mark)
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = [["Plate of week 12"], first, *rows]
        csv.writer(file, delimiter=country.separator).writerows(lines)
    return None


@pytest.mark.parametrize("country", COUNTRIES.values(), ids=COUNTRIES)
def test_a_table_of_wells_opens_well_and_comes_back(asked, country, tmp_path):
    """CSV and workbook, opened and saved as either: every well told, parameters as they were."""
    Path("covey.toml").write_text(SPACE + PLATE, encoding="utf-8")
    assert asked("plate", "ask").code == 0
    plate = covey.Study.load("covey.jsonl", read_only=True).plate("p1")
    for path in (Path("p1.csv"), Path("p1.xlsx")):
        path.write_bytes(sheet_bytes(path, plate.columns, plate.rows(), country.mark))
    rows = asked("plate", "show", "p1", "--json").json["wells"]
    used = [row["well"] for row in rows if row["role"] != "empty"]
    values = {well: 1.5 + number for number, well in enumerate(used)}
    for source in (Path("p1.csv"), Path("p1.xlsx")):
        for kind in ("csv", "xlsx"):
            made = saved_by(country, tmp_path, source, kind)
            empty = made.read_bytes()
            fill_wells(made, country, values)
            done = asked("plate", "tell", made, "--dry-run", "--json")
            assert done.code == 0, (source, kind, done.err)
            assert {row["well"]: row["value"] for row in done.json["wells"]} == values
            assert {row["is"] for row in done.json["wells"]} == {"sample", "control"}
    assert asked("plate", "tell", made).code == 0
    wells = asked("plate", "show", "p1", "--json").json["wells"]
    assert {row["well"]: row["value"] for row in wells if row["value"] is not None} == values
    made.write_bytes(empty)
    fill_wells(made, country, values | {used[0]: 99.5})
    done = asked("plate", "tell", made, "--plate", "p1")
    assert done.code == 5
    assert f"well {used[0]}: 99.5, but plate p1 was told 1.5" in done.err


@pytest.mark.parametrize("country", COUNTRIES.values(), ids=COUNTRIES)
def test_old_results_from_its_workbook_are_added(asked, country, tmp_path):
    """The other way round: what was there before the study, and an export of it."""
    asked("tell", *(f"{i}={i + 0.25}" for i in range(6)))
    assert asked("export", "--out", "all.csv", *country.words).code == 0
    made = saved_by(country, tmp_path, Path("all.csv"), "xlsx")
    Path("other").mkdir()
    Path("other/covey.toml").write_text(SPACE, encoding="utf-8")
    done = asked("add", made, "--config", "other/covey.toml", "--json")
    assert done.code == 0, done.err
    assert done.json["added"] == 6
    ours, theirs = (
        covey.Study.load(path, read_only=True).history.told
        for path in ("covey.jsonl", "other/covey.jsonl")
    )
    assert [t.value for t in ours] == [t.value for t in theirs]
    assert [t.point["T"] for t in ours] == [t.point["T"] for t in theirs]
    assert [t.point["solvent"] for t in ours] == [t.point["solvent"] for t in theirs]
