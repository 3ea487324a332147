"""The table of docs/integrations/spaces.md says what the converters do, cell by cell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import covey
from covey import Space
from covey.errors import SpaceError

ConfigSpace = pytest.importorskip("ConfigSpace", reason="pip install 'covey[configspace]'")
optuna = pytest.importorskip("optuna", reason="pip install 'covey[optuna]'")
pytest.importorskip("ray.tune", reason="pip install 'covey[ray]'")
import scipy.stats
from ray import tune

from covey.integrations.spaces.configspace import space_from_configspace
from covey.integrations.spaces.optuna import space_from_optuna
from covey.integrations.spaces.ray import space_from_ray
from covey.integrations.spaces.sklearn import space_from_sklearn

PAGE = Path(__file__).parents[4] / "docs" / "integrations" / "spaces.md"

HOSTS: dict[str, Any] = {
    "Optuna": space_from_optuna,
    "ConfigSpace": space_from_configspace,
    "Ray": space_from_ray,
    "scikit-learn": space_from_sklearn,
}
NAMES: dict[str, dict[str, Any]] = {
    "Covey": {**{name: getattr(covey, name) for name in covey.__all__}, "Path": Path},
    "Optuna": vars(optuna.distributions),
    "ConfigSpace": vars(ConfigSpace),
    "Ray": {"tune": tune},
    "scikit-learn": vars(scipy.stats),
}


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its own first two lines."""
    part = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def meant(cell: str, host: str) -> Any:
    """The thing between backticks."""
    return eval(re.search("`(.*)`", cell).group(1), dict(NAMES[host]))


INTO = rows("Into Covey")


@pytest.mark.parametrize("row", INTO[2:], ids=lambda row: row[1])
def test_into_covey(row):
    host, cell, becomes = row
    given = meant(cell, host)
    if host == "ConfigSpace" and not isinstance(given, ConfigSpace.ConfigurationSpace):
        given = ConfigSpace.ConfigurationSpace(space=[given])
    elif host != "ConfigSpace":
        given = {"p": given}
    if becomes.startswith("no"):
        with pytest.raises(SpaceError):
            HOSTS[host](given)
    else:
        assert HOSTS[host](given) == Space({"p": meant(becomes, "Covey")})


def test_every_host_is_in_the_table():
    assert {row[0] for row in INTO[2:]} == {*HOSTS}
