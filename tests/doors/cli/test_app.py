import subprocess
import sys

import pytest
from typer.testing import CliRunner

import covey
from covey.cli.app import app


@pytest.fixture
def run():
    return lambda *args: CliRunner().invoke(app, args)


def test_version(run):
    assert run("--version").stdout == f"covey {covey.__version__}\n"


def test_help_names_the_commands(run):
    result = run("--help")
    assert result.exit_code == 0
    assert "demo" in result.stdout
    assert run().stdout.strip() == result.stdout.strip()


def test_help_is_light():
    """No NumPy, let alone SciPy, for a help text."""
    code = (
        "import sys; sys.argv = ['covey', '--help']\n"
        "from covey.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('heavy:', [m for m in ('numpy', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stdout


def test_the_example_in_the_help_runs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = run("demo", "--help").stdout.splitlines()
    example = next(line for line in lines if "Example: covey demo" in line)
    words = example.split("Example: covey ")[1].split()
    assert run(*words).exit_code == 0
    assert (tmp_path / "run.png").exists()


def test_our_errors_are_one_line_and_exit_1(tmp_path):
    command = [sys.executable, "-m", "covey", "demo", "--out", str(tmp_path / "no" / "x.png")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("covey: there is no folder")
    assert done.stderr.count("\n") == 1
