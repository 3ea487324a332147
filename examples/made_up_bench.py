"""A bench for docs/plates-tutorial.md: last month's workbook, and a reader, by a formula.

    python made_up_bench.py last-month.xlsx                  # 92 reactions and 4 blanks
    python made_up_bench.py plates/p1.csv reader-p1.csv      # a long table: Well, Yield
    python made_up_bench.py plates/p2.csv reader-p2.txt      # a matrix with semicolons and commas

Nothing of it was measured. The workbook needs openpyxl: pip install 'covey[excel]'.
"""

from __future__ import annotations

import csv
import math
import random
import sys
from pathlib import Path

SOLVENTS = {"DMF": 0.7, "1,4-dioxane": 1.0, "toluene": 0.6, "MeCN": 0.4}
LIGANDS = {"XPhos": 1.0, "SPhos": 0.9, "PPh3": 0.5, "dppf": 0.7}
BLANKS = ("A1", "C10", "F4", "H12")
COLUMNS = ("temperature", "concentration", "equiv", "solvent", "ligand")
WELLS = [f"{row}{column}" for row in "ABCDEFGH" for column in range(1, 13)]


def reaction(point: dict[str, str | float]) -> float:
    """The yield in per cent, without noise: the most, 92, at 80 degrees in 1,4-dioxane."""
    heat = (float(point["temperature"]) - 80) / 25
    dilution = math.log(float(point["concentration"]) / 0.2)
    excess = float(point["equiv"]) - 2
    kind = SOLVENTS[str(point["solvent"])] * LIGANDS[str(point["ligand"])]
    return 92 * kind * math.exp(-(heat**2 + dilution**2 + excess**2) / 2)


def write_last_month(path: Path) -> None:
    """A workbook as a lab keeps it: wells, blanks and remarks among the results."""
    import openpyxl

    chance, book = random.Random(10), openpyxl.Workbook()
    sheet = book.active
    sheet.title = "October"
    sheet.append(["Well", "Role", *COLUMNS, "Yield", "Remarks"])
    for i, well in enumerate(WELLS):
        if well in BLANKS:
            sheet.append([well, "blank", *[None] * len(COLUMNS), round(chance.random(), 1)])
            continue
        point = {
            "temperature": (50, 70, 90)[i % 3],
            "concentration": chance.choice([0.05, 0.1, 0.15, 0.2, 0.25, 0.3]),
            "equiv": chance.choice([1, 1.5, 2, 2.5, 3]),
            "solvent": chance.choice([*SOLVENTS]),
            "ligand": chance.choice([*LIGANDS]),
        }
        seen = round(max(0.0, reaction(point) + chance.gauss(0, 1.5)), 1)
        sheet.append([well, "sample", *point.values(), seen, "cloudy" if i == 40 else None])
    book.save(path)


def read(plate: Path, path: Path) -> None:
    """What a reader would write about a plate that was asked for."""
    with plate.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    chance = random.Random(plate.stem)
    shift = chance.gauss(0, 2)  # plates differ
    seen = {}
    for row in rows:
        clean = 0.5 if row["role"] != "sample" else reaction({name: row[name] for name in COLUMNS})
        seen[row["well"]] = round(max(0.0, clean + shift + chance.gauss(0, 1.5)), 1)
    if path.suffix == ".csv":
        lines = ["Well,Yield", *(f"{well},{value}" for well, value in seen.items())]
    else:
        lines = [";".join(["", *map(str, range(1, 13))])]
        for letter in "ABCDEFGH":
            cells = [str(seen[f"{letter}{column}"]) for column in range(1, 13)]
            lines.append(";".join([letter, *cells]).replace(".", ","))
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    match [Path(word) for word in sys.argv[1:]]:
        case [book]:
            write_last_month(book)
        case [plate, readings]:
            read(plate, readings)
        case _:
            sys.exit(__doc__)
