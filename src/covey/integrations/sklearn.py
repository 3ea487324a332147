"""`CoveySearchCV`: a cross-validated search of scikit-learn whose batches Covey proposes."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from covey import Pool, Space, Study
from covey.arrays import Array
from covey.errors import ExhaustedError, StrategyError, installed, is_whole
from covey.history import Trial
from covey.integrations.spaces.sklearn import space_from_sklearn
from covey.selection import Strategy

with installed("scikit-learn", "sklearn"):
    from sklearn.exceptions import FitFailedWarning
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state


# Cross-validated scores as results of a study.

_FAR_OUT = 10.0


class Scores:
    """Tells a study mean scores, without standard errors, extremely low ones cut off.

    The spread over folds is mostly how hard each fold is, the same for every candidate: as a
    standard error it overstates by 2.5 to 5 times what separates two candidates on the same folds
    (docs/integrations/sklearn.md), so the model learns the noise itself.

    Scores such as R² have no lower end. One of -1e6 among others between 0 and 1 would leave a
    Gaussian process nothing to tell those apart by, so a score below the fence of `far_out` is
    told as the fence (our choice). It also meets tails without the gap that `covey.gp` looks for:
    the median of 12 searches of benchmarks/hosts.py is 0.494 with it, 0.490 without. The fence
    only ever falls, so that a search whose scores gather at the top does not come to see all
    others as equal.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._fence: float | None = None

    def tell(self, trials: Sequence[Trial], scores: Array) -> None:
        """Tell the scores of a batch, the last of ``scores``; a non-finite one is a failure."""
        fences = [f for f in (self._fence, far_out(scores[np.isfinite(scores)])) if f is not None]
        self._fence = min(fences, default=None)
        for trial, score in zip(trials, scores[-len(trials) :], strict=True):
            if not np.isfinite(score):
                self._study.fail(trial, "its mean test score is not finite")
            elif self._fence is None:
                self._study.tell(trial, float(score))
            else:
                self._study.tell(trial, max(float(score), self._fence))


def far_out(scores: Array) -> float | None:
    """The fence: ten times as far below the median as the best is above it.

    Up to half of the scores may be extremely low without moving it much. None if half are the best.

    >>> far_out(np.array([-1e6, -0.2, 0.0, 0.5, 1.0]))
    -10.0
    """
    if len(scores) == 0:
        return None
    middle, best = float(np.median(scores)), float(np.max(scores))
    return middle - _FAR_OUT * (best - middle) if best > middle else None


_log = logging.getLogger("covey")
_MEAN = "mean_test_"


class CoveySearchCV(BaseSearchCV):
    """Search hyper-parameters in batches, each chosen from the scores before it.

    To be used like RandomizedSearchCV: after ``fit`` there are ``cv_results_`` (with the number
    of the batch, from 0, in the column ``batch``), ``best_params_``, ``best_score_``,
    ``best_estimator_`` and their like, and ``n_batches_``, the number of batches that were run.
    All batches are scored on the same folds, even where ``cv`` shuffles anew at every split.
    A candidate whose mean score is not finite counts as failed; one that is far below the rest
    is told to the model as merely bad (see `covey.integrations.sklearn`).

    Args:
        estimator: what is to be tuned.
        space: a `covey.Space`, a `covey.Pool` (its inputs are the parameters; its labels stay
            here), or a dict as RandomizedSearchCV takes it.
        n_batches: how many batches; a finite space that is exhausted ends the search early.
        batch_size: candidates in each; all folds of all of them are fitted in parallel.
        strategy: a name (see `covey.catalog.STRATEGIES`) or an object with `choose`.
        scoring: as in scikit-learn. With several metrics ``refit`` names the one to search by.
        n_jobs: fits that run at the same time.
        refit: fit the best on all data; or the name of a metric; or, with one metric, a function
            of ``cv_results_`` that returns the index to take (the search goes by the score).
        cv: number of folds, a splitter, or an iterable of splits.
        verbose: scikit-learn's own messages.
        pre_dispatch: number of jobs to dispatch at once.
        error_score: the score of a fit that fails. With nan the candidate counts as failed; a
            number is believed like any other.
        return_train_score: whether to have scores on the training folds too.
        random_state: of the proposals: an int, a RandomState, or None.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from covey import Real
    >>> space = Space({"C": Real(1e-2, 1e3, log=True), "gamma": Real(1e-4, 1e1, log=True)})
    >>> search = CoveySearchCV(SVC(), space, n_batches=3, batch_size=4, random_state=0)
    >>> bool(search.fit(*load_iris(return_X_y=True)).best_score_ > 0.97)
    True
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's contract: every setting is an argument
        self,
        estimator: Any,
        space: Space | Pool | Mapping[str, Any],
        *,
        n_batches: int = 5,
        batch_size: int = 8,
        strategy: str | Strategy = "auto",
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[[dict[str, Any]], int] = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.space = space
        self.n_batches = n_batches
        self.batch_size = batch_size
        self.strategy = strategy
        self.random_state = random_state

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]]) -> None:
        """Ask, evaluate, tell; ``evaluate_candidates`` returns all results so far."""
        study = self._study()
        told, folds = Scores(study), _same_folds(self.cv)
        names = study.space.inputs
        self.n_batches_ = 0
        for trials in _batches(study, self.n_batches, self.batch_size):
            settings = [{n: trial.point[n] for n in names if n in trial.point} for trial in trials]
            numbers = {"batch": [self.n_batches_] * len(trials)}
            try:
                results = evaluate_candidates(settings, cv=folds, more_results=numbers)
            except ValueError as error:
                self._go_on_after(error)
                study.fail(trials, "all its fits failed, and those of its batch")
            else:
                told.tell(trials, results[_MEAN + self._metric(results)])
            self.n_batches_ += 1

    def _go_on_after(self, error: ValueError) -> None:
        """Log a later batch of failed fits, at which scikit-learn would end the search."""
        if self.n_batches_ == 0 or "fits failed" not in str(error):
            raise error
        warnings.warn(
            f"batch {self.n_batches_} is missing from cv_results_. {error}",
            FitFailedWarning,
            stacklevel=2,
        )

    def _study(self) -> Study:
        """A new study, after all checks that can be made before the first fit."""
        for name in ("n_batches", "batch_size"):
            value = getattr(self, name)
            if not is_whole(value, 1):
                raise StrategyError(f"{name} must be a whole number >= 1; got {value!r}.")
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            self._metric([_MEAN + name for name in self.scoring])
        # A copy, because a space caches what it computes, and fit must not change a parameter.
        given: Any = self.space
        space = copy(given) if isinstance(given, Space | Pool) else space_from_sklearn(given)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return Study(space, goal="max", strategy=self.strategy, seed=seed)

    def _metric(self, columns: Any) -> str:
        """The metric to search by, given names of columns that hold mean scores."""
        names = [name.removeprefix(_MEAN) for name in columns if name.startswith(_MEAN)]
        if isinstance(self.refit, str) and self.refit in names:
            return self.refit
        if len(names) == 1:
            return names[0]
        raise StrategyError(
            f"there are several metrics, {', '.join(names)}, and refit={self.refit!r} does not say "
            f"which of them to search by; name one, as in refit={names[0]!r}. (A random search "
            "needs no metric to go by, this one does.)"
        )


class _SameFolds:
    """Folds drawn once: scores of different batches compare only on the same data."""

    def __init__(self, splitter: Any) -> None:
        self._splitter = splitter
        self._folds: list[Any] | None = None

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """The folds, as scikit-learn asks for them before every batch."""
        if self._folds is None:
            self._folds = list(self._splitter.split(X, y, **params))
        return self._folds


def _same_folds(cv: Any) -> _SameFolds | None:
    """None, which is ``cv`` itself, for a number or a list of folds: those do not change."""
    return None if cv is None or isinstance(cv, int | np.integer | Iterable) else _SameFolds(cv)


def _batches(study: Study, count: int, size: int) -> Iterator[list[Trial]]:
    """Batches to run; the last may be what is left of a finite space."""
    for done in range(count):
        try:
            yield study.ask(size)
        except ExhaustedError as error:
            if study.space.size is None:
                raise
            if error.left:
                yield study.ask(error.left)
            _log.info("the space is exhausted; the search ends in batch %d of %d", done + 1, count)
            return
