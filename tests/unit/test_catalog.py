from dataclasses import replace

import pytest

from covey.catalog import STRATEGIES, strategy_of
from covey.errors import StrategyError
from covey.policies import EST, UCB
from covey.strategies import DPP
from covey.testing import StrategyContract

NAMES = [
    "auto",
    "spread-ucb",
    "ucb-dpp-max",
    "ucb-dpp-sample",
    "est-dpp-max",
    "est-dpp-sample",
    "ucb-pe",
    "est-pe",
    "bucb",
    "b-est",
    "lp-ucb",
    "dpp-ts",
    "thompson",
    "random",
    "sobol",
]


@pytest.mark.usefixtures("few_candidates")
class TestEveryStrategyOfTheCatalogue(StrategyContract):
    @pytest.fixture(autouse=True, params=STRATEGIES)
    def _one_of_them(self, request):
        self.name = request.param

    def make_strategy(self):
        return strategy_of(self.name)[1]


def test_the_fixed_names_are_all_there():
    assert list(STRATEGIES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_name_gives_a_strategy(name):
    given, strategy = strategy_of(name)
    assert given == name
    assert strategy.needs_model == (name not in ("random", "sobol"))


OF_UCB = ["ucb-dpp-max", "ucb-dpp-sample", "ucb-pe", "bucb"]


@pytest.mark.parametrize("name", [*OF_UCB, "lp-ucb"])
def test_by_name_ucb_has_the_practical_width(name):
    assert strategy_of(name)[1].first == UCB(4.0)


@pytest.mark.parametrize("name", NAMES)
def test_before_0_3_ucb_had_the_width_of_the_theorem_and_the_rest_is_as_it_was(name):
    before = strategy_of(name, "0.1")[1]
    if name in OF_UCB:
        assert before.first == UCB("theory")
        assert strategy_of(name)[1] == replace(before, first=UCB(4.0))
    else:
        assert before == strategy_of(name)[1]


def test_an_object_is_taken_as_it_is():
    mine = DPP(EST(), then="max")
    assert strategy_of(mine) == ("DPP", mine)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(StrategyError, match=r"'ucb-dpp-maks'.*'ucb-dpp-max'"):
        strategy_of("ucb-dpp-maks")
    with pytest.raises(StrategyError, match="got 3"):
        strategy_of(3)
