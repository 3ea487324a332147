import sys

from covey.cli.demo import run_demo


def test_the_demo_talks_on_stderr_and_answers_on_stdout(tmp_path, capsys):
    out = tmp_path / "demo.png"
    run_demo(batch=3, rounds=2, seed=0, out=out)
    said = capsys.readouterr()
    assert said.out.startswith("best value ")
    assert f"picture saved to {out}" in said.out
    assert "batch 2/2: best" in said.err
    assert out.exists()


def test_without_matplotlib_the_demo_still_answers(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    run_demo(batch=2, rounds=1, seed=0, out=tmp_path / "demo.png")
    said = capsys.readouterr()
    assert said.out.startswith("best value ")
    assert "covey[plot]" in said.err.replace("\n", "")
