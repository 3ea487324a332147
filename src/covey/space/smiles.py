"""Numbers that describe molecules, computed from SMILES by RDKit (the extra ``chem``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from covey.errors import SpaceError, did_you_mean, installed

_RADIUS, _BITS = 2, 2048  # of Morgan fingerprints: bonds around an atom, and columns


def smiles_features(options: Mapping[str, str], kind: str = "morgan") -> dict[str, list[float]]:
    """A row of numbers for each option, from its SMILES.

    ``kind``: "morgan" counts the substructures within two bonds of each atom; "rdkit" takes RDKit's
    descriptors (weight, polar surface, logP and some two hundred others) that all molecules have.
    """
    if not isinstance(options, Mapping) or not options:
        raise SpaceError(
            f"Choice.smiles takes a dict such as {{'THF': 'C1CCOC1'}}, got {options!r}"
        )
    if kind not in _KINDS:
        raise SpaceError(
            f"the kind of Choice.smiles is {' or '.join(map(repr, _KINDS))}, got {kind!r}."
            f"{did_you_mean(kind, _KINDS)}"
        )
    with installed("rdkit", "chem"):
        from rdkit import Chem, rdBase
    with rdBase.BlockLogs():  # the error below says what is wrong
        molecules = {name: _molecule(name, text, Chem) for name, text in options.items()}
        rows = [_KINDS[kind](molecule) for molecule in molecules.values()]
    numbers = np.array(rows, dtype=np.float64)
    numbers = numbers[:, np.isfinite(numbers).all(axis=0)]
    return dict(zip(options, numbers.tolist(), strict=True))


def _molecule(name: Any, text: Any, chem: Any) -> Any:
    made = chem.MolFromSmiles(text) if isinstance(text, str) and text.strip() else None
    if made is None:
        raise SpaceError(f"option {name!r}: {text!r} is no SMILES that RDKit can read; correct it")
    return made


def _morgan(molecule: Any) -> Any:
    from rdkit.Chem import rdFingerprintGenerator

    made = rdFingerprintGenerator.GetMorganGenerator(radius=_RADIUS, fpSize=_BITS)
    return made.GetCountFingerprintAsNumPy(molecule)


def _descriptors(molecule: Any) -> list[float]:
    from rdkit.Chem import Descriptors

    every: Any = Descriptors.CalcMolDescriptors  # without types, whether it is installed or not
    return [float(value) for value in every(molecule).values()]


_KINDS: dict[str, Callable[[Any], Any]] = {"morgan": _morgan, "rdkit": _descriptors}
