"""The data sets of the paper: from a folder the user names, else downloaded; always verified."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

_MULAN = "https://media.githubusercontent.com/media/mrapp-ke/Boomer-Datasets/"


class DataError(OSError):
    """A data file is missing, or is not the one the experiments were made with."""


@dataclass(frozen=True)
class Source:
    """A public file: where it is found, and the sha256 of what may be there."""

    url: str
    sha256: str
    also: str = ""  # the same rows, as another copy writes them


FILES = {
    "abalone/abalone.data": Source(
        "https://raw.githubusercontent.com/jbrownlee/Datasets/"
        "a8229c90a131a53c58be9027e047e6a74f11a264/abalone.csv",
        # The copy on GitHub lacks the newline at the end of UCI's.
        "eb2de13be807e9bb9ec4128b9c89b98ab23d7739121cfd17b7dde69b46ba7bf6",
        also="de37cdcdcaaa50c309d514f248f7c2302a5f1f88c168905eba23fe2fbc78449f",
    ),
    "bibtex/bibtex-train.arff": Source(
        f"{_MULAN}e925d705fe09f4ce593cf162e953862d8a0cee76/bibtex-train.arff",
        "8dcc9de6e0b2cebaec8c1f4fac78431adeeb73cfd3ab879b530a66d366e59174",
    ),
    "bibtex/bibtex-test.arff": Source(
        f"{_MULAN}e925d705fe09f4ce593cf162e953862d8a0cee76/bibtex-test.arff",
        "9b03329cde64d3f994bdf7fbbac3f3b10fe185c311cb9ae725475f59c7f3f922",
    ),
    "delicious/delicious.arff": Source(
        f"{_MULAN}db86cef9af5ef1d01f5554e689e790a3e1a0637b/delicious.arff",
        "b944de0bca910050c11d97eed57d17b073110ea3646a587f3d15d127cf581aab",
    ),
}
"""Name under a data folder -> where it comes from.

Abalone: Nash et al. (1994), UCI. Bibtex: Katakis et al. (2008), and Delicious: Tsoumakas et al.
(2008), both as Mulan publishes them; the addresses are of copies that carry these very sums.
"""


def fetch(name: str, folder: str | Path | None = None) -> Path:
    """The verified file of this name in ``folder``, else in $COVEY_DATA, else downloaded."""
    source = FILES[name]
    chosen = folder or os.environ.get("COVEY_DATA")
    if not chosen:
        return _downloaded(name, source)
    path = Path(chosen) / name
    if not path.is_file():
        raise DataError(
            f"{name} is not in the data folder {chosen}. Download {source.url} to {path}, or name "
            "no folder (no --data, no COVEY_DATA) to have it downloaded."
        )
    _verify(path, source)
    return path


def _verify(path: Path, source: Source) -> None:
    with path.open("rb") as file:
        got = file_digest(file, "sha256").hexdigest()
    if got not in (source.sha256, source.also):
        raise DataError(
            f"{path} has sha256 {got}, not {source.sha256}: another version, or damaged. "
            f"Delete it and download {source.url}."
        )


def _downloaded(name: str, source: Source) -> Path:
    how = (
        f"download {source.url} to FOLDER/{name} and give that folder as --data FOLDER or in "
        "COVEY_DATA"
    )
    try:
        import pooch
    except ImportError as error:
        raise DataError(f"{name} is missing: pip install pooch to fetch it, or {how}.") from error
    known, as_file = f"sha256:{source.sha256}", name.replace("/", "-")
    try:
        got = pooch.retrieve(source.url, known, fname=as_file, path=pooch.os_cache("covey"))
    except (OSError, ValueError) as error:  # no network, or another sum
        raise DataError(f"{name} could not be downloaded ({error}). Instead, {how}.") from error
    return Path(got)
