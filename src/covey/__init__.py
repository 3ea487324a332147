"""Covey chooses the next batch of experiments: each point promising, all of them different.

>>> import covey
>>> study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0)
>>> batch = study.ask(3)
>>> study.tell(batch, [-(t.point["x"] - 0.5) ** 2 for t in batch])
[]
>>> len(study.ask(3))
3
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covey import dpp
    from covey.cli.output import ExitCode
    from covey.errors import CoveyError
    from covey.gp import GP
    from covey.history import History, Trial
    from covey.plates import Control, Layout
    from covey.run import Result, maximize, minimize
    from covey.selection import Selection
    from covey.space import Choice, Implies, Integer, Linear, Mixture, Pool, Real, Space
    from covey.study import Study

__version__ = "0.3.0"

__all__ = [
    "GP",
    "Choice",
    "Control",
    "CoveyError",
    "ExitCode",
    "History",
    "Implies",
    "Integer",
    "Layout",
    "Linear",
    "Mixture",
    "Pool",
    "Real",
    "Result",
    "Selection",
    "Space",
    "Study",
    "Trial",
    "dpp",
    "maximize",
    "minimize",
]

# Whole modules, for `covey.report.draw_run(...)` after `import covey`.
_MODULES = (
    *("arrays", "baselines", "belief", "bench", "candidates", "catalog", "covariance", "curves"),
    *("diagnostics", "dpp", "errors", "gp", "history", "hypervolume", "integrations", "kernels"),
    *(
        "log",
        "outcomes",
        "plates",
        "policies",
        "propose",
        "report",
        "run",
        "selection",
        "space",
        "strategies",
        "study",
        "testing",
        "two_roles",
    ),
)

# Rooms are opened when first entered, so that `import covey` and `covey --help` stay quick.
_ROOMS = {
    "GP": "covey.gp",
    "Choice": "covey.space",
    "Control": "covey.plates",
    "CoveyError": "covey.errors",
    "ExitCode": "covey.cli.output",
    "History": "covey.history",
    "Implies": "covey.space",
    "Integer": "covey.space",
    "Layout": "covey.plates",
    "Linear": "covey.space",
    "Mixture": "covey.space",
    "Pool": "covey.space",
    "Real": "covey.space",
    "Result": "covey.run",
    "Selection": "covey.selection",
    "Space": "covey.space",
    "Study": "covey.study",
    "Trial": "covey.history",
    "maximize": "covey.run",
    "minimize": "covey.run",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        value = getattr(import_module(_ROOMS[name]), name)
    elif name in _MODULES:
        value = import_module(f"covey.{name}")
    else:
        raise AttributeError(f"module 'covey' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
