"""The size of the package, measured: python -m tests.house prints it.

Statements are counted, not lines: a line saved by a denser line is no gain.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "covey"

# Statements of src. It may fall freely (then lower it), and rises only with a feature that users
# were promised, in the commit that brings the feature.
MOST_STATEMENTS = 29_547


def measure(source: Path = SOURCE) -> dict[str, int]:
    """Count the files, lines, statements, classes and functions below a folder."""
    counts: Counter[str] = Counter()
    for path in source.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        counts["files"] += 1
        counts["lines"] += len(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            counts["statements"] += isinstance(node, ast.stmt)
            counts["classes"] += isinstance(node, ast.ClassDef)
            counts["functions"] += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return dict(counts)


def files_of_an_ask() -> set[str]:
    """Name the files whose functions run while a study with results asks for a batch."""
    import covey

    study = covey.Study(covey.Space({f"x{i}": covey.Real(0, 1) for i in range(2)}), seed=0)
    first = study.ask(20)
    study.tell(first, [sum(t.point.values()) for t in first])
    entered: set[str] = set()

    def note(frame: object, event: str, arg: object) -> None:
        del arg
        if event == "call":
            entered.add(frame.f_code.co_filename)  # type: ignore[attr-defined]

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        study.ask(10)
    finally:
        sys.setprofile(before)
    return {name for name in entered if name.startswith(str(SOURCE))}


if __name__ == "__main__":
    rows = measure() | {"files of an ask": len(files_of_an_ask())}
    sys.stdout.write("".join(f"{name:18}{count:>8,}\n" for name, count in rows.items()))
