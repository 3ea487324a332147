"""One ask, in a process of its own, so that its peak memory is its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

from benchmarks.scale.problem import study


def run(n: int, k: int, strategy: str, objective: str, device: str = "cpu") -> dict[str, Any]:
    """Seconds and memory of ``ask(k)``."""
    made = study(n, objective, strategy=strategy, device=device)
    before = peak_mib()
    began, cpu = time.perf_counter(), time.process_time()
    trials = made.ask(k)
    told = made.diagnostics
    if told is None or len({tuple(t.point.values()) for t in trials}) != k:
        raise RuntimeError("an ask gave no diagnostics, or the same row twice")
    return {
        "n": n,
        "k": k,
        "strategy": strategy,
        "objective": objective,
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
        "stages": dict(told.seconds or {}),
        "region": told.region,
        "sampler": told.sampler,
        "error": told.error,
        "peak_mib": peak_mib(),
        "pool_mib": before,
    }


def apart(*case: Any) -> dict[str, Any]:
    """The same in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale.ask", json.dumps(case)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{case} failed: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def peak_mib() -> float:
    """Most memory this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


if __name__ == "__main__":
    print(json.dumps(run(*json.loads(sys.argv[1]))))
