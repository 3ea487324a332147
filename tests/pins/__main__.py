"""Write the pinned batches anew: python -m tests.pins. Only for a change that is meant."""

from __future__ import annotations

import json

from tests.pins.cases import HERE, cases, machine

if __name__ == "__main__":
    found = {name: case() for name, case in cases()}
    text = json.dumps({"machine": machine(), "batches": found}, indent=0)
    (HERE / "batches.json").write_text(text + "\n", encoding="utf-8")
