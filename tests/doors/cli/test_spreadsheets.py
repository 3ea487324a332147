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
