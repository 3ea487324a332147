import pytest


@pytest.mark.parametrize(
    "command", ["status", "best", "export", "report", "doctor", "journal verify", "journal repair"]
)
def test_what_is_shown_can_be_had_as_json(call, command):
    assert "--json" in call(*command.split(), "--help").out
