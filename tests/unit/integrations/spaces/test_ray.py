"""Ray's domains and Covey's parameters mean the same values, or say why they cannot."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import Integer, Real, Space
from covey.errors import SpaceError
from covey.space import Choice

pytest.importorskip("ray.tune", reason="pip install 'covey[ray]'")
from ray import tune
from ray.tune.search import sample

from covey.integrations.spaces.ray import space_from_ray

pytest.importorskip("ray", reason="pip install 'covey[ray]'")
from covey.integrations.spaces.ray import nested, picked

DOMAINS = {
    "uniform": (tune.uniform(-1, 2), Real(-1, 2)),
    "bare": (sample.Float(-1, 2), Real(-1, 2)),
    "loguniform": (tune.loguniform(1e-4, 1.0), Real(1e-4, 1, log=True)),
    "quniform": (tune.quniform(0, 1, 0.25), Real(0, 1, step=0.25)),
    "randint": (tune.randint(1, 9), Integer(1, 8)),
    "one": (tune.randint(3, 4), Integer(3, 3)),
    "lograndint": (tune.lograndint(1, 9), Integer(1, 8, log=True)),
    "qrandint": (tune.qrandint(3, 17, 4), Integer(4, 16, step=4)),
    "qrandint 1": (tune.qrandint(3, 7, 1), Integer(3, 6)),
    "qlograndint": (tune.qlograndint(2, 9, 3), Integer(3, 9, log=True, step=3)),
    "words": (tune.choice(["relu", "tanh"]), Choice(["relu", "tanh"])),
    "numbers": (tune.choice([64, 16.5, 32]), Choice([16.5, 32, 64], ordered=True)),
    "numpy": (tune.choice(np.array([2, 1])), Choice([1, 2], ordered=True)),
    "flags": (tune.choice([True, False]), Choice([True, False])),
    "lists": (tune.choice([[64, 64], [128]]), Choice([[64, 64], [128]])),
    "mixed": (tune.choice([None, 1]), Choice([None, 1])),
}


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_domain_becomes_the_parameter_it_means(kind):
    domain, parameter = DOMAINS[kind]
    assert space_from_ray({"p": domain}).parameters["p"] == parameter


@pytest.mark.parametrize("kind", DOMAINS)
def test_what_ray_draws_is_a_point_of_the_space(kind):
    domain, parameter = DOMAINS[kind]
    space = Space({"p": parameter})
    drawn = [domain.sample(random_state=seed) for seed in range(200)]
    for value in drawn:
        space.check({"p": value})
    if parameter.size is not None:  # and every value of the space is drawn
        assert {repr(space.check({"p": v})["p"]) for v in drawn} == {
            repr(v) for v in parameter.decode(parameter.levels())
        }


@given(st.integers(-50, 50), st.integers(1, 60), st.sampled_from([0.1, 0.25, 0.3, 1e-3]))
def test_steps_are_those_ray_draws(first, more, step):
    domain = tune.quniform(first * step, (first + more) * step, step)
    parameter = space_from_ray({"p": domain}).parameters["p"]
    assert parameter.size == more + 1
    for seed in range(5):
        drawn = domain.sample(random_state=seed)
        assert parameter.check(drawn) == pytest.approx(drawn, abs=1e-9 * step)


def test_dicts_in_dicts_are_paths_and_constants_stay_behind():
    given = {
        "model": {"layers": tune.randint(1, 5), "act": {"kind": tune.choice("ab"), "bias": True}},
        "data": [1, 2],
        "lr": tune.uniform(0, 1),
    }
    assert dict(space_from_ray(given).parameters) == {
        "model/layers": Integer(1, 4),
        "model/act/kind": Choice(["a", "b"]),
        "lr": Real(0, 1),
    }


odd = sample.Float(0, 1)
odd.set_sampler(sample.Sampler())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x": tune.randn(0, 1)}, "'x': a normal distribution"),
        ({"x": tune.qrandn(0, 1, 0.5)}, "'x': a normal distribution"),
        ({"a": {"x": tune.grid_search([1, 2])}}, "'a/x': grid_search .* use tune.choice"),
        ({"x": tune.sample_from(lambda config: 1)}, "'x': sample_from"),
        ({"x": sample.Categorical("ab").grid()}, "'x': grid_search"),
        ({"x": odd}, "'x': the sampler Sampler is not known"),
        ({"x": {"eval": "spec.config.y"}}, "'x': sample_from"),
        ({"x": tune.qloguniform(0.1, 1, 0.1)}, "'x': steps of 0.1 on a logarithmic scale"),
        ({"x": tune.quniform(0, 1, 2.0**-52)}, "'x': a Real from 0.0 to 1.0 in steps"),
        ({"x": tune.choice([1, 1])}, "'x': options 0 and 1 .* both 1"),
        ({"x": tune.choice([])}, "'x': a Choice needs at least one option"),
        ({"x": tune.uniform(1, 1)}, "'x': Real needs low < high"),
        ({"x": sample.Float(None, 1)}, "'x': the low of a Real must be a finite number"),
        ({"x": tune.randint(3, 3)}, "'x': Integer needs low <= high"),
        ({"x": sample.Domain()}, "'x': Domain may draw as it likes"),
        ({"x": [tune.uniform(0, 1)]}, "lies at 'x' > 0; Ray"),
        ({"a/b": tune.uniform(0, 1)}, "lies at 'a/b'"),
        ({1: tune.uniform(0, 1)}, "lies at 1"),
        ({"x": 3}, "nothing to search"),
        ({}, "nothing to search"),
        ([tune.uniform(0, 1)], "param_space is a dict"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_covey_cannot_say_is_refused(given, said):
    with pytest.raises(SpaceError, match=said):
        space_from_ray(given)


def test_without_ray_the_error_says_what_to_install():
    code = "import sys; sys.modules['ray'] = None\nimport covey.integrations.spaces.ray"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "this needs ray: pip install 'covey[ray]'" in done.stderr


# Names with slashes and dicts in dicts


keys = st.text("ab", min_size=1, max_size=2)
trees = st.dictionaries(
    keys,
    st.recursive(st.integers(), lambda inner: st.dictionaries(keys, inner, min_size=1, max_size=3)),
)


def flat(tree: dict, prefix: str = "") -> dict:
    """The obvious way."""
    out: dict = {}
    for key, value in tree.items():
        out |= flat(value, f"{prefix}{key}/") if isinstance(value, dict) else {prefix + key: value}
    return out


@given(trees)
def test_nesting_undoes_flattening(tree):
    assert nested(flat(tree)) == tree
    assert picked(tree, flat(tree)) == flat(tree)


def test_a_value_that_is_a_dict_stays_one():
    assert nested({"a": {"b": 1}, "c/d": {"e": 2}}) == {"a": {"b": 1}, "c": {"d": {"e": 2}}}
    assert picked({"a": {"b": 1}}, ["a"]) == {"a": {"b": 1}}


@pytest.mark.parametrize("names", [["a", "a/b"], ["a/b", "a"], ["a/b/c", "a/b"], ["/a"], ["a/"]])
def test_a_name_that_is_no_path_is_refused(names):
    with pytest.raises(SpaceError, match="cannot become a path"):
        nested(dict.fromkeys(names, 0))


def test_a_value_is_not_entered():
    with pytest.raises(SpaceError, match="'a/b' cannot become a path"):
        nested({"a": {}, "a/b": 1})


def test_what_is_not_there_is_left_out():
    config = {"a": 1, "b": {"c": 2}, "e/f": 3, "g": None}
    assert picked(config, ["a", "b/c", "b/x", "a/y/z", "e/f", "g"]) == {
        "a": 1,
        "b/c": 2,
        "e/f": 3,
        "g": None,
    }
