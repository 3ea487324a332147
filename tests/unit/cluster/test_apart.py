from __future__ import annotations

import pickle

import numpy as np
from tests.unit.cluster.conftest import uniform

from covey.cluster.apart import after_looking_there, covariance, information, light


def kernels_of(posterior):
    return tuple(model.kernel for model in posterior.models)


def test_covariances_of_candidates_kept_apart_are_those_of_candidates_together(posterior):
    at = uniform(30)
    both, here, there = (posterior.belief(some) for some in (at, at[:20], at[20:]))
    for member, kernel in enumerate(kernels_of(posterior)):
        whole = both.parts[member].block(np.arange(5, 15), np.arange(20, 30))
        found = covariance(kernel, here, there, member, slice(5, 15))
        np.testing.assert_allclose(found, whole, atol=1e-12)


def test_so_are_entries_of_the_kernel(posterior):
    at = uniform(30)
    whole = posterior.belief(at).information().block(np.arange(20), np.arange(20, 30))
    here, there = posterior.belief(at[:20]), posterior.belief(at[20:])
    found = information(kernels_of(posterior), here, there, slice(0, 20))
    np.testing.assert_allclose(found, whole, atol=1e-10)


def test_a_look_elsewhere_is_a_look(posterior):
    at = uniform(30)
    seen = posterior.belief(at).after_looking_at([28, 29], on=np.arange(28))
    here, there = posterior.belief(at[:28]), posterior.belief(at[28:])
    found = after_looking_there(kernels_of(posterior), here, there)
    np.testing.assert_allclose(found.var, seen.var, atol=1e-12)
    columns = np.array([3, 9])
    np.testing.assert_allclose(
        found.information().columns(columns), seen.information().columns(columns), atol=1e-9
    )
    assert not np.allclose(here.var, seen.var, atol=1e-3)  # it makes a difference


def test_after_a_look_elsewhere_both_still_go_together(posterior):
    """Their rows of V are in one order: those of the data, then those of the look."""
    at, kernels = uniform(30), kernels_of(posterior)
    seen = posterior.belief(at).after_looking_at([0])
    here = after_looking_there(kernels, posterior.belief(at[10:]), posterior.belief(at[:1]))
    there = seen.on(np.arange(1, 10))
    whole = seen.information().block(np.arange(10, 30), np.arange(1, 10))
    np.testing.assert_allclose(information(kernels, here, there, slice(0, 20)), whole, atol=1e-9)


def test_what_travels_is_light(posterior):
    point = posterior.belief(uniform(1))
    assert len(pickle.dumps(light(point))) < len(pickle.dumps(point)) / 2
    np.testing.assert_array_equal(light(point).var, point.var)
