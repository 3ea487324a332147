"""`python -m benchmarks.race run | table | ratios | plot | list` (see --help)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.race.optimisers import OPTIMISERS
from benchmarks.race.problems import names
from benchmarks.race.runner import Run, read, run_all
from benchmarks.race.table import lines, ratios

RESULTS = Path(__file__).with_name("results") / "race.jsonl"


def _run(options: argparse.Namespace) -> None:
    known = list(names())
    unknown = [n for n in options.problems if n not in known]
    unknown += [n for n in options.optimisers if n not in OPTIMISERS]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; `python -m benchmarks.race list` names them all")
    runs = [
        Run(optimiser, problem, batch, seed, options.rounds)
        for seed in range(options.seeds)
        for batch in options.batches
        for problem in options.problems or known
        for optimiser in options.optimisers
    ]
    options.out.parent.mkdir(exist_ok=True)
    for done, total, left in run_all(runs, options.out, options.workers):
        print(f"\r{done}/{total} runs, about {left / 60:.1f} min left ", end="", file=sys.stderr)
    print(file=sys.stderr)


def _rows(paths: list[Path]) -> list[dict[str, object]]:
    return [row for path in paths for row in read(path)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.race", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="run what is missing; stop and start at will")
    run.add_argument("--optimisers", nargs="+", default=["covey-auto", "covey-random"])
    run.add_argument("--problems", nargs="*", default=[], help="all, if none is named")
    run.add_argument("--batches", nargs="+", type=int, default=[5, 10])
    run.add_argument("--seeds", type=int, default=10)
    run.add_argument("--rounds", type=int, default=15)
    run.add_argument("--workers", type=int, default=2)
    run.add_argument("--out", type=Path, default=RESULTS)
    for verb, words in (("table", "print Markdown tables"), ("plot", "draw regret by round")):
        made = verbs.add_parser(verb, help=words)
        made.add_argument("files", nargs="*", type=Path, default=[RESULTS])
        if verb == "plot":
            made.add_argument("--out", type=Path, default=Path("race.png"))
            made.add_argument("--batch", type=int, default=None, help="only this batch size")
    ratio = verbs.add_parser("ratios", help="print regrets of ours over those of each peer")
    ratio.add_argument("files", nargs="+", type=Path)
    ratio.add_argument("--noise", default="~10%", help="the end of the names of problems")
    verbs.add_parser("list", help="name all problems and optimisers")
    return parser


def main() -> None:
    """Parse, and do one thing."""
    options = _parser().parse_args()
    if options.verb == "run":
        _run(options)
    elif options.verb == "table":
        print("\n".join(lines(_rows(options.files))))
    elif options.verb == "ratios":
        print("\n".join(ratios(_rows(options.files), options.noise)))
    elif options.verb == "plot":
        from benchmarks.race.plot import draw

        rows = [r for r in _rows(options.files) if options.batch in (None, r["batch"])]
        print(draw(rows, options.out))
    else:
        print("problems:", *names())
        print("optimisers:", *OPTIMISERS)


if __name__ == "__main__":
    main()
