"""`Command`: a program to run for each point, by an argument list with placeholders, no shell."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from covey.errors import StrategyError, did_you_mean
from covey.run.reports import FILE, OutputReports, report_in
from covey.run.task import Outcome, Task
from covey.run.workdir import TAIL, environment, tail, trim

# {{name}} is {name} itself. Braces not followed by a letter are left alone, so JSON needs no care.
_LAST_LINE = "the last line of its output"
_PLACEHOLDER = re.compile(r"\{(\{[A-Za-z][^{}]*\})\}|\{([A-Za-z][^{}]*)\}")
_OWN = ("id", "seed", "slot", "result")  # placeholders that are not parameters
_WORDS = 2000  # characters of a reason
_CATCH_UP = 0.5  # seconds for the last output, where a process left behind holds the pipe open


@dataclass(frozen=True, slots=True)
class Command:
    """A program and its arguments; its value is read from its output.

    In an element of ``argv``, ``{x.lr}`` is replaced by a parameter, ``{id}`` by the trial's id,
    ``{seed}`` by its seed, ``{slot}`` by the place where it runs and ``{result}`` by the path of a
    file for its result; ``{{id}}`` is ``{id}`` itself. No shell is involved: a value is part of one
    argument, whatever it holds. An option such as ``--depth={x.depth}`` is left out where the
    parameter is absent. If no parameter is named, the point comes as JSON on standard input. The
    environment has ``COVEY_TRIAL``, ``COVEY_SEED``, ``COVEY_SLOT`` and ``PYTHONHASHSEED``.

    The value is the last line of standard output that is not empty (``result="stdout"``) or what
    is in the file (``result="file"``): a number, or ``{"value": 1.5, "sem": 0.1}``, and whatever
    else is in it goes into the log beside the value. Lines ``step value``, or JSON objects with
    both, are intermediate values. A program that ends with another status than 0 has failed; one
    that is killed by a signal is tried again, as `Retries` says.

    >>> command = Command(["train", "--lr={x.lr}", "{x.net}"])
    >>> command.words({"lr": -0.5, "net": "a b; rm"}, trial=0, seed=1)
    ['train', '--lr=-0.5', 'a b; rm']
    """

    argv: Sequence[str]
    result: Literal["stdout", "file"] = "stdout"
    outcomes: tuple[str, ...] = ()  # names of several; then the value is a JSON object with them

    def __post_init__(self) -> None:
        if isinstance(self.argv, str) or not all(isinstance(word, str) for word in self.argv):
            raise StrategyError(
                f"a command is a list of strings, such as ['python', 'train.py', '--lr={{x.lr}}']; "
                f"got {self.argv!r}."
            )
        object.__setattr__(self, "argv", tuple(self.argv))
        if not self.argv or not self.argv[0]:
            raise StrategyError("a command needs a program as its first word; got none.")
        if self.result not in ("stdout", "file"):
            raise StrategyError(f"result is 'stdout' or 'file'; got {self.result!r}.")
        self._check_placeholders()

    def _check_placeholders(self) -> None:
        for name in self._placeholders(self.argv):
            if not name.startswith("x.") and name not in _OWN:
                if_one = f" (so {{x.{name}}}, if {name} is one)" if name.isidentifier() else ""
                raise StrategyError(
                    f"unknown placeholder {{{name}}}; there are {{x.NAME}} for a parameter"
                    f"{if_one}, {{id}}, {{seed}}, {{slot}} and {{result}}; write {{{{{name}}}}} to "
                    f"have it as it is.{did_you_mean(name, _OWN)}"
                )
        if any(name.startswith("x.") for name in self._placeholders(self.argv[:1])):
            raise StrategyError(
                f"the program itself cannot depend on the point; got {self.argv[0]!r}."
            )
        if ("result" in self._placeholders(self.argv)) != (self.result == "file"):
            raise StrategyError(
                "{result} is where a program with result='file' writes its value; use both, or "
                "neither."
            )

    @staticmethod
    def _placeholders(words: Sequence[str]) -> list[str]:
        return [match[2] for word in words for match in _PLACEHOLDER.finditer(word) if match[2]]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters its arguments name, in order."""
        names = [n.removeprefix("x.") for n in self._placeholders(self.argv) if n[:2] == "x."]
        return tuple(dict.fromkeys(names))

    def check(self, names: Sequence[str], examples: Sequence[Mapping[str, Any]] = ()) -> None:
        """Raise StrategyError unless it fits points with these parameters, such as the examples."""
        for name in self.parameters:
            if name not in names:
                raise StrategyError(
                    f"unknown placeholder {{x.{name}}}; the parameters are {', '.join(names)}."
                    f"{did_you_mean(name, names)}"
                )
        for point in examples:
            self.words(point, trial=0, seed=0)
            self._input(point)

    def require_program(self) -> None:
        """Raise StrategyError unless its program can be run on this machine, from this folder."""
        import shutil

        name = self.argv[0]
        if shutil.which(name) is not None or self._placeholders([name]):
            return
        if os.sep in name and Path(name).is_file():
            raise StrategyError(
                f"{name} is there, but may not be run as a program; nothing was run. Allow it with "
                f"chmod +x {shlex.quote(name)}, or write what runs it before it."
            )
        raise StrategyError(
            f"there is no program {name!r} here; nothing was run. No shell is involved, so give "
            "a program and its arguments."
        )

    @property
    def names_slot(self) -> bool:
        """Whether ``{slot}`` is among its arguments."""
        return "slot" in self._placeholders(self.argv)

    def words(
        self,
        point: Mapping[str, Any],
        *,
        trial: int,
        seed: int,
        slot: int | None = 0,
        result: str = "result.json",
    ) -> list[str]:
        """The arguments for one point.

        Raises:
            StrategyError: A value would be taken for an option, or cannot be an argument.
        """
        if slot is None and self.names_slot:
            raise StrategyError(
                "{slot} has no number here: these workers have no slots. Use workers=4, a number."
            )
        values: dict[str, Any] = {"id": trial, "seed": seed, "slot": slot, "result": result}
        values |= {f"x.{name}": value for name, value in point.items()}
        return [_filled(word, values) for word in self.argv if not _is_absent(word, values)]

    def line(self, point: Mapping[str, Any], *, trial: int, seed: int) -> str:
        """What to type at a shell to run it for one point; the command itself if it cannot be."""
        try:
            typed = shlex.join(self.words(point, trial=trial, seed=seed))
            given = self._input(point)
        except StrategyError:
            return shlex.join(self.argv)
        return f"echo {shlex.quote(given)} | {typed}" if given else typed

    def evaluate(self, task: Task, folder: Path, /) -> Outcome:
        """Run the program for a task and wait for it."""
        result = folder / "value.json"
        try:
            numbers = {"trial": task.id, "seed": task.seed}
            words = self.words(task.point, **numbers, slot=task.slot, result=str(result))
            (folder / "stdin").write_text(self._input(task.point))
        except StrategyError as error:
            return Outcome(task.name, "failed", reason=str(error))
        except OSError as error:
            return Outcome(task.name, "lost", reason=f"its input could not be written: {error}")
        try:
            with _outliving_sigterm():
                code, output, errors = _run(words, folder, environment(task))
        except OSError as error:
            reason = f"{words[0]} could not be started: {error.strerror or error}"
            return Outcome(task.name, "lost", reason=reason)
        log = (output + errors)[-TAIL:]
        if code < 0:
            reason = f"the command was killed by signal {_signal_name(-code)}"
            return Outcome(task.name, "killed", reason=reason, log=log)
        if code > 0:
            last = "\n".join((errors or output).strip().splitlines()[-5:])[-_WORDS:]
            reason = f"the command ended with status {code}" + (f": {last}" if last else "")
            return Outcome(task.name, "failed", reason=reason, log=log)
        return _valued(task.name, *self._answer(output, result), log, self.outcomes)

    def _input(self, point: Mapping[str, Any]) -> str:
        if self.parameters:
            return ""
        try:
            return json.dumps(dict(point), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise StrategyError(f"the point cannot be written as JSON: {error}.") from error

    def _answer(self, output: str, result: Path) -> tuple[str, str]:
        """The text of its result, and where that was read."""
        if self.result == "file":
            return tail(result).strip(), "its result file"
        lines = [line for line in output.splitlines() if line.strip()]
        return (lines[-1].strip() if lines else ""), _LAST_LINE


def by_hand(task: Task) -> str:
    """How to repeat an evaluation without a run around it, in a sentence."""
    if isinstance(task.call, Command):
        return f"Try it by hand: {task.call.line(task.point, trial=task.id, seed=task.seed)}"
    return f"Try f({dict(task.point)!r}) by hand."


def _run(words: list[str], folder: Path, variables: dict[str, str]) -> tuple[int, str, str]:
    """Run a program to its end: its exit status, and the ends of its stdout and stderr.

    A process that it leaves behind may hold a pipe open for ever: that is not waited for.
    """
    feeds = {"stdout": OutputReports(folder / FILE).feed, "stderr": lambda data: None}
    pipes = {name: os.pipe() for name in feeds}
    out, err = (write for _, write in pipes.values())
    try:
        with (folder / "stdin").open("rb") as given:
            child = subprocess.Popen(words, stdin=given, stdout=out, stderr=err, env=variables)
    except BaseException:
        for read, _ in pipes.values():
            os.close(read)
        raise
    finally:
        for _, write in pipes.values():
            os.close(write)
    ends = {name: bytearray() for name in feeds}
    copiers = [
        threading.Thread(target=_copy, args=(read, folder / name, ends[name], feeds[name]))
        for name, (read, _) in pipes.items()
    ]
    for copier in copiers:
        copier.daemon = True
        copier.start()
    code = child.wait()
    for copier in copiers:
        copier.join(_CATCH_UP)
    output, errors = (bytes(end).decode(errors="replace") for end in ends.values())
    return code, output, errors


def _copy(pipe: int, path: Path, end: bytearray, feed: Callable[[bytes], None]) -> None:
    """Copy what comes to a file, keep its end, in memory too, and look for reports in it.

    The result is read from memory: on a full disk the file has gaps.
    """
    while data := os.read(pipe, TAIL):
        end += data
        del end[:-TAIL]
        with suppress(OSError), path.open("ab") as file:  # its folder may be gone by now
            file.write(data)
        trim(path, 2 * TAIL)
        feed(data)
    os.close(pipe)
    trim(path)


def _is_absent(word: str, values: Mapping[str, Any]) -> bool:
    """Whether an argument names a parameter that the point does not have; an option is left out.

    Any other argument would leave a gap that the next one fills, so that is an error.
    """
    names = (match[2] or "" for match in _PLACEHOLDER.finditer(word))
    gone = next((name for name in names if name[:2] == "x." and name not in values), None)
    if gone is None:
        return False
    if not word.startswith("-"):
        raise StrategyError(
            f"unknown placeholder {{{gone}}}: this point has no {gone[2:]}."
            f"{did_you_mean(gone, values)} "
            f"If {gone[2:]} may be absent, write it as an option in one argument, "
            f"--{gone[2:]}={{{gone}}}, which is then left out."
        )
    return True


def _filled(word: str, values: Mapping[str, Any]) -> str:
    def value(match: re.Match[str]) -> str:
        return match[1] or _text(match[2], values)

    filled = _PLACEHOLDER.sub(value, word)
    if filled.startswith("-") and not word.startswith("-"):
        raise StrategyError(
            f"{word} would be {filled!r} here, which a program takes for an option; write it "
            f"as --name={word}."
        )
    return filled


def _text(name: str, values: Mapping[str, Any]) -> str:
    if name not in values:
        raise StrategyError(f"unknown placeholder {{{name}}}.{did_you_mean(name, values)}")
    value = values[name]
    if isinstance(value, str):
        if "\0" in value:
            raise StrategyError(f"{name} holds a NUL character, which no argument can.")
        return value
    try:
        return json.dumps(value, allow_nan=False)  # the shortest digits that read back the same
    except (TypeError, ValueError) as error:
        raise StrategyError(f"{name} cannot be written as an argument: {error}.") from error


def _valued(name: str, said: str, where: str, log: str, outcomes: tuple[str, ...]) -> Outcome:
    try:
        answer = json.loads(said)
    except ValueError:
        try:
            last = report_in(said)  # no JSON: a step and a number
            answer = float(said) if last is None else last[1]
        except ValueError:
            shown = repr(said[:200]) if said else "nothing"
            form = ", ".join(f'"{one}": number' for one in outcomes or ["value"])
            either = "" if len(outcomes) > 1 else "a number or "
            reason = f"{where} is {shown}, not {either}{{{form}}}"
            if not said and where == _LAST_LINE:
                reason = f"it printed nothing; its last line has to be {either}{{{form}}}"
            return Outcome(name, "failed", reason=reason, log=log)
    return replace(Outcome.of(name, answer, outcomes), log=log)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


@contextmanager
def _outliving_sigterm() -> Iterator[None]:
    """Leave SIGTERM to the program, which may want to save its work, and wait for it."""
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    # A handler that does nothing, not SIG_IGN, which the program would inherit.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
