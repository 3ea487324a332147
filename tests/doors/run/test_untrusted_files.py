"""What others have written or made: logs are data, and folders of theirs are not entered."""

from __future__ import annotations

import json
import os
import pickle
import time
from pathlib import Path

import pytest

import covey
from covey.errors import StrategyError, WorkFolderError
from covey.history import Dispatched
from covey.run import LocalEngine, Task
from covey.run.process import Process
from covey.run.task import Function, Retries, name_of
from covey.run.workdir import Workdir, check_private, read_private

SPACE = covey.Space({"x": covey.Real(0.0, 1.0)})
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what others own")


def f(point):
    return point["x"]


@pytest.fixture
def journal(tmp_path):
    """A log with one pending trial, in a folder that nothing of value shares with it."""
    (tmp_path / "project").mkdir()
    path = tmp_path / "project" / "run.jsonl"
    covey.Study(SPACE, strategy="random", seed=0, journal=path).ask(1)
    (path.parent / "run.jsonl.work").mkdir(mode=0o700)
    return path


@pytest.fixture
def victim(tmp_path):
    """A folder that holds something, and what a finished evaluation leaves."""
    folder = tmp_path / "victim"
    folder.mkdir(mode=0o700)
    (folder / "precious.txt").write_text("years of work")
    result = {"name": "a", "status": "succeeded", "value": 99.0, "reason": "", "sem": None}
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def named(journal: Path, name: str) -> covey.Study:
    study = covey.Study.load(journal)
    study.note(Dispatched(0, 1, name, 7))
    return study


@pytest.mark.parametrize(
    "name",
    [
        "{victim}",
        "../../victim",
        "..",
        ".",
        "",
        "covey-0a1b2c3d-0-a1\0",
        "covey-0a1b2c3d-0-a1/../../../victim",
        "covey-0a1b2c3d-0-a1\n",
        "covey-0a1b2c3d-1-a1",  # of another trial
        "COVEY-0A1B2C3D-0-A1",
        "covey-0a1b2c3d-٠-a1",
    ],
)
def test_a_name_in_a_log_is_never_a_path(journal, victim, name, caplog):
    study = named(journal, name.format(victim=victim))
    result = study.run(f, batch=1, rounds=2, workers=1)
    assert (victim / "precious.txt").read_text() == "years of work"
    assert journal.exists()
    assert result.value < 99.0  # what lies there is no result of ours
    assert "no name that Covey gives" in caplog.text


def test_a_link_in_the_work_folder_is_not_followed(journal, victim, caplog):
    name = name_of("0a1b2c3d", 0, 1)
    (journal.parent / "run.jsonl.work" / name).symlink_to(victim)
    result = named(journal, name).run(f, batch=1, rounds=2, workers=1)
    assert (victim / "precious.txt").exists()
    assert result.value < 99.0
    assert "a link" in caplog.text


def test_an_engine_takes_no_other_names(tmp_path):
    engine = LocalEngine(1, tmp_path / "work")
    with pytest.raises(StrategyError, match="named by"):
        engine.submit(Task(0, 1, "../a", {}, 0, None, Function(f)))
    assert not (tmp_path / "work").exists()


def made_by_others(work: Path) -> None:
    os.chown(work, NOBODY, NOBODY)


def open_to_others(work: Path) -> None:
    work.chmod(0o777)


def a_link(work: Path) -> None:
    work.rmdir()
    target = work.with_name("target")
    target.mkdir(mode=0o700)
    work.symlink_to(target)


def a_file(work: Path) -> None:
    work.rmdir()
    work.touch()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(made_by_others, "of user 65534", marks=as_root),
        (open_to_others, "mode 777"),
        (a_link, "is a link"),
        (a_file, "is no folder"),
    ],
)
def test_a_work_folder_that_is_not_ours_alone_is_refused(journal, spoil, said):
    spoil(journal.parent / "run.jsonl.work")
    study = covey.Study.load(journal)
    with pytest.raises(WorkFolderError, match=said):
        study.run(f, batch=1, rounds=1, workers=1)
    assert not list(journal.parent.glob("**/*.pkl"))
    assert [trial.status for trial in study.history.trials] == ["pending"]


class Evil:
    """A pickle that leaves a mark when it is opened."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def owned_by_others(pickle_: Path) -> None:
    os.chown(pickle_, NOBODY, NOBODY)


def writable(pickle_: Path) -> None:
    pickle_.chmod(0o666)


def linked(pickle_: Path) -> None:
    pickle_.rename(pickle_.with_name("elsewhere"))
    pickle_.symlink_to("elsewhere")


@pytest.mark.parametrize("spoil", [pytest.param(owned_by_others, marks=as_root), writable, linked])
@pytest.mark.parametrize("which", ["call.pkl", "work/point.pkl"])
def test_a_pickle_that_others_could_write_is_not_opened(tmp_path, spoil, which, monkeypatch):
    """Swapped between the moment it was written and the moment it is read."""
    mark = tmp_path / "mark"
    call = tmp_path / "call.pkl"
    call.write_bytes(pickle.dumps(Function(f)))
    task = Task(0, 1, name_of("0a1b2c3d", 0, 1), {"x": 1.0}, 0, None, Function(f))
    place = Workdir(tmp_path / "work")

    def prepare(task, call, real=place.prepare):
        real(task, call)
        (tmp_path / which).write_bytes(pickle.dumps(Evil(mark)))
        spoil(tmp_path / which)

    monkeypatch.setattr(place, "prepare", prepare)
    process = Process.start(task, place, call, 1.0, tied=False)
    until = time.monotonic() + 120.0
    while not (found := process.check()) and time.monotonic() < until:
        time.sleep(0.01)
    assert found[0].status == "lost"
    assert "could not do its work" in found[0].reason
    assert not mark.exists()


def test_the_same_pickle_is_opened_where_it_is_ours(tmp_path):
    """The control: it is the owner that counts, not the pickle."""
    mark = tmp_path / "mark"
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(Evil(mark)))
    pickle.loads(read_private(tmp_path / "a.pkl"))
    assert mark.exists()


def test_what_is_no_plain_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(WorkFolderError, match="no file of your own"):
        read_private(tmp_path / "pipe")
    (tmp_path / "mine").mkdir(mode=0o700)
    check_private(tmp_path / "mine")


def test_evaluations_leave_nothing_that_others_can_read(tmp_path):
    def slow(point):
        time.sleep(0.5)
        return 1.0

    engine = LocalEngine(1, tmp_path / "work")
    engine.submit(Task(0, 1, name_of("0a1b2c3d", 0, 1), {"x": 1.0}, 0, None, Function(slow)))
    pickles = list((tmp_path / "work").glob("**/*.pkl"))
    assert len(pickles) == 2
    assert {path.stat().st_mode & 0o777 for path in pickles} == {0o600}
    assert [found.value for found in engine.poll(120.0)] == [1.0]
    engine.close()


def test_the_folder_of_an_attempt_that_is_open_to_others_is_not_looked_into(journal, caplog):
    name = name_of("0a1b2c3d", 0, 1)
    folder = journal.parent / "run.jsonl.work" / name
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "result.json").write_text('{"name": "a", "status": "succeeded", "value": 99.0}')
    result = named(journal, name).run(f, batch=1, rounds=2, workers=1, retries=Retries(lost=0))
    assert result.value < 99.0
    assert "mode 755" in caplog.text
