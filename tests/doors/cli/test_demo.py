import sys

import pytest

from covey.cli.doctor import demo
from covey.cli.output import Stop


def test_the_demo_talks_on_stderr_and_answers_on_stdout(tmp_path, capsys):
    out = tmp_path / "demo.png"
    demo(batch=3, rounds=2, seed=0, out=out)
    said = capsys.readouterr()
    assert said.out.startswith("best value ")
    assert f"picture saved to {out}" in said.out
    assert "batch 2/2: best" in said.err
    assert out.exists()


def test_without_matplotlib_the_demo_still_answers(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    demo(batch=2, rounds=1, seed=0, out=tmp_path / "demo.png")
    said = capsys.readouterr()
    assert said.out.startswith("best value ")
    assert "covey[plot]" in said.err.replace("\n", "")


def test_the_demo_draws_its_picture_again_but_not_over_a_photograph(tmp_path):
    for name in ("demo.png", "demo.svg", "demo.pdf"):
        for _ in range(2):
            demo(batch=2, rounds=1, seed=0, out=tmp_path / name)
    photo = tmp_path / "photo.png"
    photo.write_bytes(b"\x89PNG\r\n of a bird")
    with pytest.raises(Stop, match="is kept"):
        demo(batch=2, rounds=1, seed=0, out=photo)
    assert photo.read_bytes() == b"\x89PNG\r\n of a bird"
