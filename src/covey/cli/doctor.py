"""`covey doctor`: what an issue needs to know of a machine; no secrets."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from covey import __version__
from covey.cli.settings import FILE, read_settings
from covey.cli.voice import put, put_json
from covey.errors import CoveyError
from covey.journal import drive_kind, read

_PACKAGES = ("numpy", "scipy", "typer", "rich", "threadpoolctl", "cloudpickle")
_EXTRAS = (
    *("matplotlib", "jinja2", "pandas", "pyarrow", "torch", "botorch", "optuna", "ray"),
    *("distributed", "scikit-learn", "ax-platform", "ConfigSpace"),
)


def doctor(folder: Path, as_json: bool) -> None:
    """Look at the machine, the installation and the study in this folder."""
    facts = {
        "covey": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "extras": {name: v for name in _EXTRAS if (v := _version(name)) != "missing"},
        "threads": {k: v for k, v in os.environ.items() if k.endswith("_NUM_THREADS")},
        "drive": drive_kind(folder) or "unknown",
        "fsync_ms": _fsync_ms(folder),
        "clock": datetime.now(UTC).isoformat(timespec="seconds"),
        "stdout_is_a_terminal": sys.stdout.isatty(),
        "study": _study(folder / FILE),
    }
    if as_json:
        put_json("covey.doctor/1", facts)
        return
    for name, fact in facts.items():
        put(f"{name:20} {_shown(fact)}")


def _shown(fact: Any) -> str:
    if isinstance(fact, dict):
        return ", ".join(f"{k} {v}" for k, v in fact.items()) or "none"
    return str(fact)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _fsync_ms(folder: Path) -> float | str:
    """Median milliseconds of writing a short line durably, in this folder."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            times = []
            for _ in range(9):
                start = time.perf_counter()
                file.write(b"covey\n")
                file.flush()
                os.fsync(file.fileno())
                times.append(1e3 * (time.perf_counter() - start))
    except OSError as error:
        return f"cannot write here: {error.strerror}"
    return round(sorted(times)[4], 3)


def _study(path: Path) -> str:
    if not path.exists():
        return f"no {path.name} here"
    try:
        settings = read_settings(path)
        if not settings.journal.exists():
            return f"{path.name} is fine, nothing was asked yet"
        events = len(read(settings.journal).events)
        verify = "event verifies" if events == 1 else "events verify"
        return f"{path.name} is fine, {events} {verify}"
    except CoveyError as error:
        return f"error: {error}"
