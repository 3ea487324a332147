"""Write pinned batches anew: python -m tests.pins [NAME ...]. Only for a change that is meant."""

from __future__ import annotations

import json
import sys

from tests.pins.cases import HERE, cases, machine

if __name__ == "__main__":
    path = HERE / "batches.json"
    names = sys.argv[1:]
    if unknown := set(names) - {name for name, _ in cases()}:
        sys.exit(f"{__doc__}\nThere is no pin {', '.join(sorted(unknown))}.")
    batches = json.loads(path.read_text(encoding="utf-8"))["batches"] if names else {}
    batches |= {name: case() for name, case in cases() if not names or name in names}
    text = json.dumps({"machine": machine(), "batches": batches}, indent=0)
    path.write_text(text + "\n", encoding="utf-8")
