"""Bibtex and Delicious as published: shapes, split, labels."""

from __future__ import annotations

import os

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install numba")

from papers.kathuria2016.fastxml.dataset import DATASETS, load, read


def test_sparse_arff_rows_are_read_in_order(tmp_path):
    one, two = tmp_path / "one.arff", tmp_path / "two.arff"
    one.write_text("@relation r\n@attribute a {0,1}\n@data\n{0 1,2 1}\n{}\n")
    two.write_text("@data\n\n{1 1}\n")
    assert read([one, two], 3).toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("name", "labels_a_point", "features_a_point"),
    [("bibtex", (2.38, 2.44), 68.5), ("delicious", (19.05, 18.9), 18.5)],
)
def test_the_split_is_the_official_one(name, labels_a_point, features_a_point):
    if "COVEY_DATA" not in os.environ:
        pytest.skip(f"COVEY_DATA names no folder with {DATASETS[name].files[0]}")
    train, test = load(name)
    kind = DATASETS[name]
    assert train.features.shape == (kind.train, kind.features)
    assert test.labels.shape == (kind.test, kind.labels)
    means = [points.labels.nnz / points.labels.shape[0] for points in (train, test)]
    assert np.allclose(means, labels_a_point, atol=0.06)
    assert train.features.nnz / kind.train == pytest.approx(features_a_point, abs=0.3)
    assert (train.labels.sum(axis=0) > 0).all()  # every label occurs in training
    assert (train.features.sum(axis=1) > 0).all()
