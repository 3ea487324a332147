"""Options described by their SMILES."""

from __future__ import annotations

import numpy as np
import pytest

from covey.errors import MissingExtraError, SpaceError
from covey.space import Choice, Space, space_from_description
from covey.space.smiles import smiles_features

SMILES = {"THF": "C1CCOC1", "2-MeTHF": "CC1CCCO1", "water": "O", "DMF": "CN(C)C=O"}


def test_without_rdkit_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rdkit", None)
    with pytest.raises(MissingExtraError, match=r"'covey\[chem\]'"):
        Choice.smiles(SMILES)


@pytest.mark.parametrize("given", [{}, ["O"], "O"])
def test_a_dict_is_asked_for(given):
    with pytest.raises(SpaceError, match=r"\{'THF': 'C1CCOC1'\}"):
        smiles_features(given)


def test_an_unknown_kind_is_refused():
    with pytest.raises(SpaceError, match="'morgan'"):
        smiles_features(SMILES, "Morgan2")


@pytest.mark.parametrize("kind", ["morgan", "rdkit"])
def test_molecules_that_are_alike_lie_close(kind):
    pytest.importorskip("rdkit", reason="pip install 'covey[chem]'")
    choice = Choice.smiles(SMILES, kind)
    at = choice.encode(list(SMILES))
    far = np.linalg.norm(at - at[0], axis=1)
    assert far[1] == min(far[1:])
    space = Space({"solvent": choice})
    assert space_from_description(space.describe()) == space


def test_what_is_no_smiles_is_named():
    pytest.importorskip("rdkit", reason="pip install 'covey[chem]'")
    with pytest.raises(SpaceError, match="'THF': 'C1CCOC'"):
        Choice.smiles({**SMILES, "THF": "C1CCOC"})
