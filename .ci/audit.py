"""Ask pip-audit for published vulnerabilities of what is installed, and say what was not asked.

pip-audit says "No known vulnerabilities found" also where it could look up nothing at all, so what
counts here is its list: how many packages it knows about, and how many it passed over.

Ends with 1 if there is a vulnerability, and with 0 if none is known, or nothing could be reached:
a machine without a network is no reason to fail, but it is a reason to say so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def main() -> int:
    """Audit the environment of this interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        words = [sys.executable, "-m", "pip_audit", "--local", "--skip-editable"]
        words += ["--progress-spinner", "off", "--format", "json", "--output", str(found)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        written = json.loads(found.read_text()) if found.exists() else None
    lines, status = judged(written, done.stderr)
    sys.stdout.write("\n".join(lines) + "\n")
    return status


def judged(written: dict[str, Any] | None, errors: str) -> tuple[list[str], int]:
    """What to say, and the status to end with.

    Args:
        written: what pip-audit has written; None if it broke off.
        errors: what it said on standard error.
    """
    if written is None:
        last = errors.strip().splitlines()[-1:] or ["it did not say why"]
        return ["NOT AUDITED: pip-audit broke off; the vulnerability service may be out of reach.",
                f"  {last[0]}"], 0  # fmt: skip
    packages = written["dependencies"]
    passed_over = [package for package in packages if "skip_reason" in package]
    bad = [package for package in packages if package.get("vulns")]
    lines = [
        f"{package['name']} {package['version']}: {flaw['id']}, mended in "
        f"{', '.join(flaw['fix_versions']) or 'no release'}"
        for package in bad
        for flaw in package["vulns"]
    ]
    asked = len(packages) - len(passed_over)
    if passed_over:
        names = ", ".join(package["name"] for package in passed_over)
        lines += [f"not looked up, {len(passed_over)} of {len(packages)}: {names}",
                  f"  the first because: {passed_over[0]['skip_reason']}"]  # fmt: skip
    if not asked:
        lines.append("NOT AUDITED: nothing could be looked up; is the service out of reach?")
    else:
        flawed = f"{len(bad)} with published vulnerabilities" if bad else "none known to be flawed"
        lines.append(f"audited {asked} of {len(packages)} packages: {flawed}")
    return lines, 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
