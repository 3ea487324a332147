import sys

import pytest

import covey
from covey.errors import HistoryError, MissingExtraError, ReportError
from covey.report import draw_run, picture_path


@pytest.fixture
def history():
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0)
    study.tell(study.ask(3), [1.0, 3.0, 2.0])
    study.fail(study.ask(1, strategy="random"))
    study.add([{"x": 0.4}], [2.5])
    return study.history


@pytest.mark.parametrize(
    ("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
@pytest.mark.parametrize("goal", ["max", "min"])
def test_a_picture_is_saved(history, tmp_path, ending, magic, goal):
    path = draw_run(history, goal, tmp_path / f"run.{ending}", "a title")
    assert path.read_bytes().startswith(magic)


def test_a_title_is_drawn_as_it_is(history, tmp_path):
    title = r"$\badcommand$ at $ 5"
    assert f">{title}<" in draw_run(history, "max", tmp_path / "run.svg", title).read_text()


def test_wrong_places_are_named(history, tmp_path):
    with pytest.raises(ReportError, match=r"ends in .png, .svg, .pdf; got run.txt"):
        picture_path("run.txt")
    with pytest.raises(ReportError, match="there is no folder"):
        draw_run(history, "max", tmp_path / "no" / "run.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ReportError, match="cannot write the picture"):
        draw_run(history, "max", tmp_path / "folder.png")


def test_nothing_told_nothing_to_draw(tmp_path):
    with pytest.raises(HistoryError, match="nothing to draw"):
        draw_run(covey.History(), "max", tmp_path / "run.png")


def test_without_matplotlib_it_says_how_to_get_it(history, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'covey\[plot\]'"):
        draw_run(history, "max", tmp_path / "run.png")
