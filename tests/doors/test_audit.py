"""`make audit` says what it found, and never calls clean what it could not look up."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "audit.py"
GOOD = {"name": "good", "version": "1.0", "vulns": []}
BAD = {"name": "bad", "version": "1.0", "vulns": [{"id": "CVE-1", "fix_versions": ["1.1"]}]}
UNKNOWN = {"name": "unknown", "skip_reason": "could not be audited"}


@pytest.fixture(scope="module")
def judged():
    spec = spec_from_file_location("audit", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.judged


@pytest.mark.parametrize(
    ("packages", "said", "status"),
    [
        ([GOOD], "audited 1 of 1 packages: none known to be flawed", 0),
        ([GOOD, UNKNOWN], "audited 1 of 2 packages: none known to be flawed", 0),
        ([GOOD, BAD], "audited 2 of 2 packages: 1 with published vulnerabilities", 1),
        ([UNKNOWN, UNKNOWN], "NOT AUDITED: nothing could be looked up", 0),
    ],
)
def test_what_was_not_looked_up_is_not_called_clean(judged, packages, said, status):
    lines, ended = judged({"dependencies": packages}, "No known vulnerabilities found")
    assert lines[-1].startswith(said)
    assert ended == status
    assert any("unknown" in line for line in lines) == (UNKNOWN in packages)
    assert any("bad 1.0: CVE-1, mended in 1.1" in line for line in lines) == (BAD in packages)


def test_an_audit_that_broke_off_says_why(judged):
    lines, ended = judged(None, "Traceback\nConnectionError: name not known\n")
    assert lines[0].startswith("NOT AUDITED")
    assert "ConnectionError: name not known" in lines[1]
    assert ended == 0
