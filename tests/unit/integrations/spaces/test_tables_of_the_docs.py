"""The tables of docs/integrations/spaces.md say what the converters do, cell by cell."""

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
from tests.angle import Angle

from covey.integrations.spaces.configspace import space_from_configspace, space_to_configspace
from covey.integrations.spaces.json import space_from_json, space_to_json
from covey.integrations.spaces.optuna import space_from_optuna, space_to_optuna
from covey.integrations.spaces.ray import space_from_ray, space_to_ray
from covey.integrations.spaces.sklearn import space_from_sklearn, space_to_sklearn

PAGE = Path(__file__).parents[4] / "docs" / "integrations" / "spaces.md"

HOSTS: dict[str, tuple[Any, Any]] = {
    "Optuna": (space_from_optuna, space_to_optuna),
    "ConfigSpace": (space_from_configspace, space_to_configspace),
    "Ray": (space_from_ray, space_to_ray),
    "scikit-learn": (space_from_sklearn, space_to_sklearn),
    "JSON": (space_from_json, space_to_json),
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


def space_of(thing: Any) -> Any:
    return thing if isinstance(thing, Space | covey.Pool) else Space({"p": thing})


TO = rows("From Covey, and back")


@pytest.mark.parametrize("row", TO[2:], ids=lambda row: row[0])
@pytest.mark.parametrize("host", TO[0][1:])
def test_from_covey_and_back(row, host):
    said = row[TO[0].index(host)]
    space = space_of(meant(row[0], "Covey"))
    come_from, go_to = HOSTS[host]
    if said == "no":
        with pytest.raises(SpaceError):
            go_to(space)
        return
    again = come_from(go_to(space))
    assert said == ("yes" if again == space else "values")
    if said == "values":  # the same values, in another kind of parameter
        assert listed(again) == listed(space)


def listed(space: Space) -> list[str]:
    """Every value, as text: 1 is not 1.0."""
    return sorted(str(point) for point in space.decode(space.grid(limit=100)))


@pytest.mark.parametrize("host", HOSTS)
def test_a_kind_of_ones_own_goes_to_json_and_is_refused_by_name_elsewhere(host, angle):
    space = Space({"turn": Angle()})
    come_from, go_to = HOSTS[host]
    if host == "JSON":
        assert come_from(go_to(space)) == space
        return
    with pytest.raises(SpaceError, match=f"'turn': {host} cannot express the kind 'angle'"):
        go_to(space)


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
            HOSTS[host][0](given)
    else:
        assert HOSTS[host][0](given) == Space({"p": meant(becomes, "Covey")})


def test_every_host_is_in_both_tables():
    assert TO[0][1:] == [*HOSTS]
    assert {row[0] for row in INTO[2:]} == {*HOSTS} - {"JSON"}
