"""Google Vizier's default, GP-UCB-PE, called without its service."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.race.problems import Points, Problem, Unsupported
from covey import Integer, Pool, Real


class Vizier:
    """The designer behind the default of Vizier's service, on reals, integers and choices."""

    def __init__(self, problem: Problem, seed: int) -> None:
        import jax
        from vizier import pyvizier as vz
        from vizier._src.algorithms.designers.gp_ucb_pe import VizierGPUCBPEBandit

        if isinstance(problem.space, Pool):
            raise Unsupported("Vizier is not entered for pools")
        jax.config.update("jax_enable_x64", True)  # as its service does
        self._space, self._count = problem.space, 0
        statement = vz.ProblemStatement()
        root = statement.search_space.root
        for name, parameter in self._space.parameters.items():
            if isinstance(parameter, Real):
                root.add_float_param(name, parameter.low, parameter.high)
            elif isinstance(parameter, Integer):
                root.add_int_param(name, parameter.low, parameter.high)
            elif parameter.ordered:
                root.add_discrete_param(name, list(parameter.options))
            else:
                root.add_categorical_param(name, list(parameter.options))
        statement.metric_information.append(
            vz.MetricInformation(name="y", goal=vz.ObjectiveMetricGoal.MAXIMIZE)
        )
        self._designer = VizierGPUCBPEBandit(statement, rng=jax.random.PRNGKey(seed))

    def tell(self, points: Points, values: Sequence[float]) -> None:
        """All at once, as completed trials."""
        from vizier import algorithms, pyvizier

        trials = []
        for point, value in zip(points, values, strict=True):
            self._count += 1
            trial = pyvizier.Trial(id=self._count, parameters=point)
            trial.complete(pyvizier.Measurement(metrics={"y": float(value)}))
            trials.append(trial)
        self._designer.update(algorithms.CompletedTrials(trials), algorithms.ActiveTrials())

    def ask(self, batch: int) -> Points:
        """Its own batch."""
        found = self._designer.suggest(batch)
        names = self._space.names
        return [self._space.check({n: s.parameters[n].value for n in names}) for s in found]
