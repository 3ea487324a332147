"""What keeps the package in shape: its size, light imports, documents that tell the truth."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import house

import covey
from covey.errors import CoveyError

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "covey"
MODULES = sorted(p for p in SOURCE.rglob("*.py") if p.name not in ("__init__.py", "__main__.py"))


def dotted(path: Path) -> str:
    return ".".join(("covey", *path.relative_to(SOURCE).with_suffix("").parts))


def test_the_package_has_no_more_statements_than_it_had():
    """Raise the number with a feature that users were promised; lower it when it has fallen."""
    assert house.measure()["statements"] <= house.MOST_STATEMENTS


def test_statements_are_counted_and_lines_are_not_golfed(tmp_path):
    (tmp_path / "one.py").write_text("a = 1; b = 2\n")
    (tmp_path / "two.py").write_text(
        "def f():\n    return (\n        1,\n    )\n\n\nclass C: ...\n"
    )
    assert house.measure(tmp_path) == {
        "files": 2,
        "lines": 8,
        "statements": 6,
        "classes": 1,
        "functions": 1,
    }


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_what_is_raised_is_ours(path):
    """Every `raise Name(...)` in the package names an error of our tree."""
    allowed = {  # caught in the same file, or the protocol of a builtin
        "covey.cli.init": {"ValueError"},
        "covey.history.trial": {"TypeError"},
        "covey.disk": {"OSError"},
        "covey.run.loop": {"KeyboardInterrupt"},  # which says what ended the run
        "covey.run.reports": {"Stopped"},  # no error, but how an evaluation is ended
        "covey.integrations.ax": {"NothingLeftError"},  # an ExhaustedError that Ax knows, too
        "covey.testing.parameter": {"AssertionError"},  # how a test fails
    }.get(dotted(path), set())
    if path.parent.name == "testing":  # a contract without its hook; what an evaluation may raise
        allowed = allowed | {"NotImplementedError", "OSError"}
    ours = {"Stop"} | {
        n for n, c in inspect.getmembers(importlib.import_module("covey.errors")) if _is_ours(c)
    }
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = getattr(node.exc.func, "id", None)
            if name is not None and name[0].isupper():
                assert name in ours | allowed, f"{path.name}:{node.lineno} raises {name}"


def _is_ours(thing: object) -> bool:
    return inspect.isclass(thing) and issubclass(thing, CoveyError)


def test_importing_covey_is_light():
    heavy = [
        "scipy",
        "torch",
        "pandas",
        "polars",
        "pyarrow",
        "matplotlib",
        "sklearn",
        "typer",
        "rich",
    ]
    code = (
        "import sys, covey; from covey import Study, Space, Pool, maximize\n"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_exist():
    for name in covey.__all__:
        assert getattr(covey, name) is not None
    assert set(covey.__all__) <= set(dir(covey))
    with pytest.raises(AttributeError, match="no attribute 'Studdy'"):
        _ = covey.Studdy


def test_the_changelog_knows_this_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^## (\S+)", text, re.MULTILINE).group(1) == covey.__version__


def blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch, capsys, kinds):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(ROOT / "README.md"):
        exec(compile(block, "README.md", "exec"), names)
    said = capsys.readouterr().out.splitlines()
    assert "'layers': 5" in said[0]
    assert said[-2:] == ["pending", "pending"]
    assert len(said) == 7


INLINE = {  # `covey.something(...)` in running text, but for the file and what is an extra
    span
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    for span in re.findall(r"`(covey\.[A-Za-z][^`]*)`", page.read_text())
    if not span.startswith(("covey.toml", "covey.jsonl", "covey.integrations."))
}


def test_what_the_pages_mention_is_there_after_import_covey():
    """In an interpreter of its own: here, some test may have opened the room before."""
    names = sorted({re.match(r"[\w.]+", span)[0].rstrip(".") for span in INLINE})
    assert {"covey.report.draw_run", "covey.run.run", "covey.kernels.Matern52"} <= set(names)
    for room in sorted({name.split(".")[1] for name in names}):
        of_it = [name for name in names if name.split(".")[1] == room]
        code = "; ".join(["import covey", *of_it])
        done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0, (of_it, done.stderr)


def test_the_line_of_the_readme_that_draws_a_run_draws_it(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="pip install '.[plot]'")
    monkeypatch.chdir(tmp_path)
    (span,) = [span for span in INLINE if span.startswith("covey.report.draw_run(")]
    study = covey.Study(covey.Space({"x": covey.Real(0.0, 1.0)}), seed=0)
    study.tell(study.ask(2), [1.0, 2.0])
    eval(span, {"covey": covey, "study": study})
    assert (tmp_path / "run.png").exists()


def test_the_rooms_are_offered_and_opened_only_when_entered():
    code = (
        "import sys, covey\n"
        "rooms = {'report', 'run', 'kernels', 'strategies', 'gp', 'dpp', 'policies'}\n"
        "print(sorted(rooms - set(dir(covey))), [m for m in sys.modules if 'covey.' in m])\n"
        "print(callable(covey.run.run), covey.run.run is covey.run.run, covey.kernels.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[] []", "True True covey.kernels"]


def test_the_first_code_of_the_readme_is_twelve_lines():
    lines = [line for line in blocks(ROOT / "README.md")[0].splitlines() if line.strip()]
    assert len(lines) <= 12


def test_the_commands_of_the_readme_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in ("README.md", "CONTRIBUTING.md", ".ci/run"):
        text = (ROOT / document).read_text()
        named = {
            w
            for line in re.findall(r"\bmake ((?:demo|test|check|bench| )+)", text)
            for w in line.split()
        }
        assert named
        assert named <= targets


PAGES = ("README.md", "CONTRIBUTING.md", "contrib/covey-dask/README.md")
DOCUMENTS = [*(ROOT / page for page in PAGES), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_are_finished_and_their_links_lead_somewhere(document):
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (document.parent / target).exists(), target
    assert not re.search(r"^[A-Z]{3,}$", text, re.MULTILINE)  # a table still to come


METHOD = (ROOT / "docs" / "method.md").read_text()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(covey\.[\w.]+)`", METHOD))))
def test_what_the_method_names_exists(name):
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return
    pytest.fail(f"{name} does not exist")


@pytest.mark.parametrize(
    "room", ["gp", "dpp", "policies", "strategies", "baselines", "diagnostics", "kernels"]
)
def test_the_method_lists_every_public_function(room):
    module = importlib.import_module(f"covey.{room}")
    public = getattr(module, "__all__", None) or [
        name
        for name, thing in vars(module).items()
        if getattr(thing, "__module__", "") == module.__name__ and not name.startswith("_")
    ]
    protocols = {"Policy", "Judgement", "Strategy", "Kernel", "Blocks", "Columns", "Sampler"}
    protocols |= {"Selection", "checked_selection"}
    missing = [n for n in public if n not in protocols and f"covey.{room}.{n}" not in METHOD]
    assert missing == []


def test_the_method_explains_every_number_in_a_comment():
    """`MATH 6.2` in the source is the row 6.2 of the page's last section."""
    _, section = METHOD.split("## Numbers in comments")
    rows = {
        n for cell in re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE) for n in cell.split(", ")
    }
    number = re.compile(r"MATH(?:\s+section)?\s+(E?\d+(?:\.\d+)?)")
    used = {n for path in SOURCE.rglob("*.py") for n in number.findall(path.read_text())}
    assert "6.2" in used
    assert used <= rows


def test_the_decisions_are_numbered_and_complete():
    notes = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(note.name[:4]) for note in notes] == list(range(1, len(notes) + 1))
    for note in notes:
        headings = re.findall(r"^## (.*)$", note.read_text(), re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences", "Rejected"]
