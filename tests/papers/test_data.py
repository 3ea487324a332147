"""The loader: a named folder, else a download; nothing that is not verified."""

from __future__ import annotations

import hashlib
import os
import sys

import pytest
from papers.kathuria2016 import data
from papers.kathuria2016.data import FILES, DataError, Source, fetch


@pytest.fixture
def snail(monkeypatch, tmp_path):
    """A file of known sum in a folder, and nothing in COVEY_DATA."""
    monkeypatch.delenv("COVEY_DATA", raising=False)
    path = tmp_path / "here" / "snail.data"
    path.parent.mkdir()
    path.write_text("M,1\n")
    known = hashlib.sha256(b"M,1\n").hexdigest()
    other = hashlib.sha256(b"M,1").hexdigest()
    monkeypatch.setitem(FILES, "snail.data", Source("https://example.org/snail", known, other))
    return path


def test_a_file_of_the_named_folder_is_verified(snail):
    assert fetch("snail.data", snail.parent) == snail
    snail.write_text("M,1")
    assert fetch("snail.data", snail.parent) == snail  # the other copy's sum is known too
    snail.write_text("M,2\n")
    with pytest.raises(DataError, match=r"has sha256 .*Delete it and download https://example"):
        fetch("snail.data", snail.parent)


def test_the_argument_goes_before_the_environment(snail, monkeypatch, tmp_path):
    monkeypatch.setenv("COVEY_DATA", str(tmp_path))
    assert fetch("snail.data", snail.parent) == snail
    monkeypatch.setenv("COVEY_DATA", str(snail.parent))
    assert fetch("snail.data") == snail


def test_what_is_missing_from_a_named_folder_is_not_downloaded(snail, tmp_path):
    with pytest.raises(DataError, match=r"snail.data is not in .*Download https://example.org"):
        fetch("snail.data", tmp_path)


def test_a_download_is_checked_against_the_sum(snail, monkeypatch):
    pooch = pytest.importorskip("pooch", reason="pooch is not installed: pip install pooch")
    asked = []

    def retrieve(url, known_hash, fname, path):
        asked.append((url, known_hash, fname))
        return str(snail)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    assert fetch("snail.data") == snail
    assert asked == [
        ("https://example.org/snail", f"sha256:{FILES['snail.data'].sha256}", "snail.data")
    ]


@pytest.mark.parametrize("error", [ValueError("another sum"), OSError("no network")])
def test_a_failed_download_says_what_to_do(snail, monkeypatch, error):
    pooch = pytest.importorskip("pooch", reason="pooch is not installed: pip install pooch")

    def retrieve(*_, **__):
        raise error

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    with pytest.raises(DataError, match=rf"{error}.*--data FOLDER or in COVEY_DATA"):
        fetch("snail.data")


def test_without_pooch_the_address_is_given(snail, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError, match=r"pip install pooch.*https://example.org/snail"):
        fetch("snail.data")


@pytest.mark.parametrize("name", sorted(data.FILES))
def test_the_shared_folder_holds_the_known_files(name):
    if "COVEY_DATA" not in os.environ:
        pytest.skip("COVEY_DATA names no folder with the data of the paper")
    assert fetch(name).is_file()
