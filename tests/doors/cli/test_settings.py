import inspect
from pathlib import Path

import pytest

from covey.cli import settings as settings_module
from covey.cli.output import ExitCode, Stop
from covey.cli.run import run_command
from covey.cli.settings import read_settings

GOOD = """
[study]
goal = "min"
batch = 4
journal = "log/run.jsonl"
[parameters.x]
type = "real"
low = 0
high = 1
[parameters.y]
type = "choice"
options = [1, 2, 4]
ordered = true
[[constraints]]
weights = {x = 1, y = 1}
upper = 3.0
[run]
command = ["python", "f.py", "{x.x}"]
timeout = 60
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "covey.toml"


def test_a_file_becomes_a_study(path):
    path.write_text(GOOD)
    settings = read_settings(path)
    assert (settings.wanted.goal, settings.batch, settings.run.options["timeout"]) == ("min", 4, 60)
    assert settings.journal == path.parent / "log" / "run.jsonl"
    assert len(settings.space.linear) == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("batch =", "bacth =", r"\[study\] has no key 'bacth'.*Did you mean 'batch'"),
        ("[study]", "[studdy]", "no key 'studdy'.*Did you mean 'study'"),
        ('"real"', '"reel"', r"type must be \"real\".*got 'reel'.*Did you mean 'real'"),
        ("low = 0", "low = 2", r"\[parameters.x\]: Real needs low < high"),
        ("low = 0\n", "", "a real needs low and high"),
        ("low = 0", "lo = 0", "no key 'lo'"),
        ("batch = 4", 'batch = "4"', r"batch.*got '4'"),
        ("batch = 4", "batch = true", r"batch.*got True"),
        ("timeout = 60", 'timeout = "1 h"', r"timeout.*got '1 h'"),
        ("weights = {x = 1, y = 1}", "", r"\[\[constraints\]\] needs weights"),
        ("[parameters.x]", "[parameters]", "write each parameter as a table"),
        ("[run]", "[run", "is not TOML"),
        ("[run]", "[pool]\nfile = 'a.csv'\n[run]", "give either"),
    ],
)
def test_a_mistake_is_named(path, old, new, words):
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(Stop, match=f"(?s){words}") as stop:
        read_settings(path)
    assert stop.value.code == ExitCode.INVALID
    assert str(path) in str(stop.value)


def test_a_missing_file_says_how_to_get_one(path):
    with pytest.raises(Stop, match="covey init"):
        read_settings(path)
    with pytest.raises(Stop, match="cannot read"):
        read_settings(Path(path.parent))


def test_a_file_that_no_longer_fits_its_journal_is_invalid_input(study):
    study("ask")
    path = Path("covey.toml")
    path.write_text(path.read_text().replace("high = 0.1", "high = 0.2"))
    done = study("ask", "--new")
    assert done.code == 5
    assert "1e-05 to 0.1" in done.err
    assert study("tell", "0=1").code == 0  # what was asked for can still be told
    path.write_text(path.read_text().replace('goal = "max"', 'goal = "min"'))
    assert study("tell", "1=1").code == 5


def test_the_config_may_come_from_the_environment(study, monkeypatch, tmp_path):
    (tmp_path / "covey.toml").rename(tmp_path / "other.toml")
    assert study("status").code == 3
    assert study("status", "--config", "other.toml").code == 0
    monkeypatch.setenv("COVEY_CONFIG", "other.toml")
    assert study("status").code == 0


def test_whatever_the_table_run_may_have_is_an_option_of_the_command():
    keys = settings_module._run_settings({"run": {"timeout": 60, "gpus": [0], "cost": {"usd": 5}}})
    assert keys.options == {"timeout": 60, "gpus": [0], "cost": {"usd": 5}}
    flags = inspect.signature(run_command).parameters
    assert set(settings_module._run_options()) < set(flags)
