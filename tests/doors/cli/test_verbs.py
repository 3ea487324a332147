import pytest


@pytest.mark.parametrize("command", ["init", "ask", "tell", "run", "next"])
def test_what_writes_can_be_tried_dry(call, command):
    words = call(command, "--help").out
    assert "--dry-run" in words
    assert "--json" in words
