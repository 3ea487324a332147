"""The seven problems of the paper by name, each made when it is first asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from papers.kathuria2016.problem import Problem

PROBLEMS = {
    "branin": "synthetic",
    "cosines": "synthetic",
    "hartmann6": "synthetic",
    "robot": "robot",
    "abalone": "abalone",
    "bibtex": "fastxml",
    "delicious": "fastxml",
}
"""Name -> the module here that has a function of that name, without arguments, making it."""

ABOUT = {
    "branin": "Branin-Hoo on [-5, 10] x [0, 15]",
    "cosines": "a mixture of cosines on [0, 1]^2",
    "hartmann6": "Hartmann-6 on [0, 1]^6",
    "robot": "walking speed of a biped of three links, by its controller in [0, 1]^8; noise 0.1",
    "abalone": "the oldest of 4177 snails, by sex and seven measures",
    "bibtex": "Precision@1 of FastXML on Bibtex, by its five parameters",
    "delicious": "Precision@1 of FastXML on Delicious, by its five parameters",
}
"""Name -> what it is, in a line."""


@cache
def problem(name: str) -> Problem:
    """The problem of this name; data it needs is looked for now, and not before."""
    made: Problem = getattr(import_module(f"{__name__}.{PROBLEMS[name]}"), name)()
    return made
