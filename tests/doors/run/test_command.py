from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import covey
from covey.errors import StrategyError
from covey.run import Command, Task
from covey.run.api import as_call, run

PYTHON = sys.executable


def evaluate(command, folder, point=None, **fields):
    given = {"id": 3, "attempt": 1, "seed": 7, "timeout": None, **fields}
    task = Task(name="a", point={"x": 1.5} if point is None else point, call=command, **given)
    return command.evaluate(task, folder)


def python(code, *more, **options):
    return Command([PYTHON, "-c", code, *more], **options)


def test_what_it_prints_beside_the_value_is_kept(tmp_path):
    code = 'print(\'{"value": 1.5, "latency": 3}\')'
    task = Task(0, 1, "a", {"x": 1.0}, 0, None, None)
    found = Command([sys.executable, "-c", code]).evaluate(task, tmp_path)
    assert (found.value, found.metrics) == (1.5, {"latency": 3})


def test_braces_of_others_stand_as_they_are():
    command = Command(["a", '{"lr": {"by": {x.lr}}}', "{", "{}", "{{print $1}}"])
    words = command.words({"lr": 0.5}, trial=0, seed=0)
    assert words == ["a", '{"lr": {"by": 0.5}}', "{", "{}", "{print $1}"]


def test_placeholders_are_filled():
    command = Command(["train", "{x.lr}", "--net={x.net},{id}", "{seed}", "{{x.lr}}", "{x.n}"])
    point = {"lr": 1e-05, "net": "a b", "n": 3, "unused": True}
    words = command.words(point, trial=4, seed=9)
    assert words == ["train", "1e-05", "--net=a b,4", "9", "{x.lr}", "3"]
    assert command.parameters == ("lr", "net", "n")
    assert Command(["a", "{x.b}"]).words({"b": None}, trial=0, seed=0) == ["a", "null"]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20))
def test_a_value_is_one_argument_whatever_it_holds(value):
    assert Command(["a", "--v={x.v}"]).words({"v": value}, trial=0, seed=0) == ["a", f"--v={value}"]


def test_a_nasty_value_reaches_the_program_as_it_is(tmp_path):
    nasty = "$(touch HACKED); `id` && \"'\\ \n*"
    command = python("import sys; print(len(sys.argv[1]))", "{x.s}")
    assert evaluate(command, tmp_path, {"s": nasty}).value == len(nasty)
    assert not (tmp_path / "HACKED").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("train {x.lr}", "list of strings"),
        (["train", 3], "list of strings"),
        ([], "needs a program"),
        (["{x.lr}"], "program itself"),
        (["train", "{lr}"], r"\{lr\}.*\{x\.lr\}, if lr is one"),
        (["train", "{sed}"], "Did you mean 'seed'"),
        (["awk", "{print $1}"], r"write \{\{print \$1\}\} to have"),
        (["train", "{result}"], "use both"),
    ],
)
def test_what_is_no_command_is_named(argv, message):
    with pytest.raises(StrategyError, match=message):
        Command(argv)


def test_results_are_read_from_two_places():
    with pytest.raises(StrategyError, match="'stdout' or 'file'"):
        Command(["train"], result="stderr")
    with pytest.raises(StrategyError, match="use both"):
        Command(["train"], result="file")


@pytest.mark.parametrize("value", [-0.5, -3, "-rf", "--help"])
def test_a_value_is_never_an_option(value):
    with pytest.raises(StrategyError, match=r"write it as --name=\{x.v\}"):
        Command(["a", "{x.v}"]).words({"v": value}, trial=0, seed=0)
    assert Command(["a", "--v={x.v}", "v={x.v}"]).words({"v": value}, trial=0, seed=0)


@pytest.mark.parametrize("value", ["a\0b", object(), float("nan")])
def test_what_cannot_be_an_argument_is_named(value, tmp_path):
    with pytest.raises(StrategyError, match=r"x\.v"):
        Command(["a", "{x.v}"]).words({"v": value}, trial=0, seed=0)
    assert evaluate(Command(["a", "{x.v}"]), tmp_path, {"v": value}).status == "failed"


def test_it_is_checked_against_the_space_before_it_runs():
    space = covey.Space({"lr": covey.Real(-1.0, 1.0), "net": covey.Choice(["a", "-b"])})
    for argv, message in [
        (["t", "{x.nte}"], r"\{x.nte\}; the parameters are lr, net. Did you mean 'net'"),
        (["t", "{x.lr}"], "-1.0"),
        (["t", "{x.net}"], "-b"),
    ]:
        with pytest.raises(StrategyError, match=message):
            as_call(Command(argv), space)
    as_call(Command(["t", "--lr={x.lr}", "--net={x.net}"]), space)
    pool = covey.Pool([{"a": 1}, {"a": -2}])
    with pytest.raises(StrategyError, match="-2"):
        as_call(Command(["t", "{x.a}"]), pool)
    options = covey.Space({"f": covey.Choice([abs, len])})
    with pytest.raises(StrategyError, match="JSON"):
        as_call(Command(["t"]), options)  # the point would go to standard input


def test_a_point_that_cannot_be_written_ends_the_run_before_its_batch_begins(tmp_path):
    """A mended command goes on with the same trials."""
    study = covey.Study(covey.Pool([{"a": 1, "b": "-x"}, {"a": 2, "b": "y"}]), seed=0)
    with pytest.raises(StrategyError, match=r"\{x\.b\} would be '-x'"):
        run(study, Command(["echo", "{x.b}"]), batch=2, rounds=1, workers=1)
    assert [trial.status for trial in study.history.trials] == ["pending"] * 2
    said = ["sh", "-c", "echo 1", "--b={x.b}"]
    run(study, Command(said), batch=2, rounds=1, workers=1)
    assert [trial.status for trial in study.history.trials] == ["told"] * 2


@pytest.mark.parametrize("start", ["run", "maximize"])
def test_of_a_large_pool_one_row_is_written_out_before_it_runs(start, monkeypatch):
    pool, seen = covey.Pool([{"a": i, "b": f"b{i}"} for i in range(5000)], labels=["b"]), []
    point = covey.Pool.point
    monkeypatch.setattr(covey.Pool, "point", lambda self, i: seen.append(i) or point(self, i))
    command = Command(["true", "{x.a}", "{x.b}"])

    def begun(*_):
        raise InterruptedError

    monkeypatch.setattr("covey.run.api.engine_for", begun)
    given = (covey.Study(pool), command) if start == "run" else (command, pool)
    with pytest.raises(InterruptedError):
        {"run": run, "maximize": covey.maximize}[start](*given)
    assert seen == [0]  # with the least number


@pytest.mark.parametrize(
    ("said", "value", "sem"),
    [
        ("1.5", 1.5, None),
        ("epoch 1\n0.9\n-2e3\n\n  \n", -2000.0, None),
        ('{"value": 2, "sem": 0.1, "epochs": 3}', 2.0, 0.1),
    ],
)
def test_the_last_line_is_the_value(said, value, sem, tmp_path):
    found = evaluate(python("import sys; print(sys.argv[1])", said), tmp_path)
    assert (found.status, found.value, found.sem) == ("succeeded", value, sem)
    assert said in found.log


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "it printed nothing; its last line has to be a number or"),
        ("done", "'done', not a number"),
        ("nan", "nan, not a finite"),
        ("NaN", "nan, not a finite"),
        ("-inf", "-inf, not a finite"),
        ("true", "True, not a finite"),
        ('{"loss": 1}', "not a finite"),
        ("[1.0]", "[1.0], not a finite"),
    ],
)
def test_a_last_line_that_is_no_value_is_a_failure(said, reason, tmp_path):
    found = evaluate(python("import sys; print(sys.argv[1])", said), tmp_path)
    assert found.status == "failed"
    assert reason in found.reason


def test_a_result_file(tmp_path):
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2]); print('not this')"
    written = python(code, "{result}", '{"value": {x.x}}', result="file")
    assert evaluate(written, tmp_path).value == 1.5
    missing = python("print(1.0)", "{result}", result="file")
    (tmp_path / "value.json").unlink()
    assert "its result file is nothing" in evaluate(missing, tmp_path).reason


def test_the_point_by_standard_input(tmp_path):
    code = "import json, sys; print(json.load(sys.stdin)['x'])"
    assert evaluate(python(code), tmp_path).value == 1.5
    empty = python("import sys; print(len(sys.stdin.read()))", "{x.x}")
    assert evaluate(empty, tmp_path).value == 0.0


def test_the_environment_says_which_it_is(tmp_path):
    code = "import os; print(sum(int(os.environ[n]) for n in "
    code += "('COVEY_TRIAL', 'COVEY_SEED', 'PYTHONHASHSEED')))"
    assert evaluate(python(code), tmp_path, id=100, seed=7).value == 114.0


def test_a_status_is_a_failure_and_a_signal_is_told_apart(tmp_path):
    code = "import sys; [print(i, file=sys.stderr) for i in range(9)]; sys.exit(3)"
    found = evaluate(python(code), tmp_path)
    assert found.status == "failed"
    assert found.reason == "the command ended with status 3: 4\n5\n6\n7\n8"
    killed = evaluate(python("import os; os.kill(os.getpid(), 9)"), tmp_path)
    assert (killed.status, killed.reason) == ("killed", "the command was killed by signal SIGKILL")
    odd = evaluate(python("import os; os.kill(os.getpid(), 40)"), tmp_path)
    assert odd.reason.endswith("signal 40")


def test_of_long_output_the_end_is_kept(tmp_path):
    code = "import sys; [f.write('x' * 200_000 + '\\n2.5\\n') for f in (sys.stdout, sys.stderr)]"
    assert evaluate(python(code), tmp_path).value == 2.5
    for name in ("stdout", "stderr"):
        assert (tmp_path / name).stat().st_size == 65_536
        assert (tmp_path / name).read_text().endswith("x\n2.5\n")


def test_a_missing_program_is_lost_for_no_fault_of_the_point(tmp_path):
    found = evaluate(Command(["no-such-program"]), tmp_path)
    assert found.status == "lost"
    assert "could not be started: No such file" in found.reason


def test_a_program_may_save_its_work_when_asked_to_end(tmp_path):
    """SIGTERM to the group reaches it, and does not end who waits for it."""
    code = (
        "import os, signal, sys, time, pathlib\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print(5.0), sys.exit(0)))\n"
        "pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "pathlib.Path('pid').rename('ready'); time.sleep(30)"
    )
    command = Command([PYTHON, "-c", f"import os; os.chdir({str(tmp_path)!r})\n{code}"])

    def later():
        while not (tmp_path / "ready").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(int((tmp_path / "ready").read_text()), signal.SIGTERM)

    threading.Thread(target=later).start()
    before = signal.getsignal(signal.SIGTERM)
    assert evaluate(command, tmp_path).value == 5.0
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_run_of_a_command():
    study = covey.Study(covey.Space({"x": covey.Real(-1.0, 1.0)}), goal="min", seed=0)
    command = python("import sys; print(float(sys.argv[1][4:]) ** 2)", "--x={x.x}")
    result = run(study, command, batch=3, rounds=2, workers=2)
    assert result.value == pytest.approx(result.point["x"] ** 2)
    assert len(study.history.told) == 6
