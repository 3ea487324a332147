import io
import re
import sys
from pathlib import Path

import pytest

from covey import Integer, Real, Space
from covey.cli.settings import parameter_of, read_settings
from covey.space import Choice


def test_flags_become_a_file_that_reads_back(call):
    done = call(
        *("init", "--real", "lr=1e-5:0.1:log", "--integer", "n=1:8", "--choice", "opt=adam,sgd"),
        *("--goal", "min", "--batch", "5", "--seed", "7", "--", "python", "f.py", "--lr={x.lr}"),
    )
    assert (done.code, done.out) == (0, "covey.toml\n")
    settings = read_settings(Path("covey.toml"))
    assert dict(settings.space.parameters) == {
        "lr": Real(1e-5, 0.1, log=True),
        "n": Integer(1, 8),
        "opt": Choice(["adam", "sgd"]),
    }
    assert (settings.wanted.goal, settings.batch, settings.wanted.seed) == ("min", 5, 7)
    assert settings.run.command == ("python", "f.py", "--lr={x.lr}")


def test_an_existing_file_is_kept_unless_forced(call):
    call("init", "--real", "x=0:1")
    before = Path("covey.toml").read_text()
    done = call("init", "--real", "y=0:1")
    assert done.code == 3
    assert Path("covey.toml").read_text() == before
    assert call("init", "--real", "y=0:1", "--force", "--json").json["parameters"] == ["y"]


def test_a_dry_run_prints_json_where_that_is_wanted(call):
    words = ["init", "--real", "x=0:1", "--dry-run"]
    shown = call(*words, "--json", "--seed", "1").json
    assert shown["schema"] == "covey.init/1"
    assert shown["parameters"] == ["x"]
    assert shown["text"] == call(*words, "--seed", "1").out
    assert not Path("covey.toml").exists()


def test_a_dry_run_prints_the_file(call):
    assert "[parameters.x]" in call("init", "--real", "x=0:1", "--dry-run").out
    assert not Path("covey.toml").exists()


def test_a_pool(call):
    Path("candidates.csv").write_text("a,b\n1,2\n3,4\n")
    assert call("init", "--pool", "candidates.csv").code == 0
    assert read_settings(Path("covey.toml")).space.size == 2
    assert call("init", "--pool", "candidates.csv", "--real", "x=0:1", "--force").code == 2
    assert call("init", "--pool", "candidates.csv", "--label", "a", "--force").code == 0
    assert 'labels = ["a"]  #' in Path("covey.toml").read_text()
    assert read_settings(Path("covey.toml")).space.inputs == ("b",)
    assert call("init", "--real", "x=0:1", "--label", "a", "--force").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ["--real", "x"],
        ["--real", "x=1"],
        ["--real", "x=1:0"],
        ["--real", "x=0:1:sqrt"],
        ["--integer", "n=0.5:2"],
        ["--choice", "c="],
        ["--real", "x=0:1", "--real", "x=0:2"],
        [],
    ],
)
def test_wrong_flags_say_what_to_write(call, words):
    done = call("init", *words)
    assert done.code == 2
    assert not Path("covey.toml").exists()
    assert "NAME=" in done.err or "twice" in done.err


def test_the_wizard_asks_for_one_parameter_at_a_time(call, monkeypatch):
    from covey.cli import init

    answers = io.StringIO("\nlr\n1e-5:0.1:log\nlayers\n8:1:int\n1:8:int\nopt\nadam, sgd\n\n")
    answers.isatty = lambda: True
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(init.sys, "stdin", answers)
    found = init._asked()
    assert [parameter_of(entry, Path()) for entry in found.values()] == [
        Real(1e-5, 0.1, log=True),
        Integer(1, 8),
        Choice(["adam", "sgd"]),
    ]
    answers = io.StringIO("lr\n")
    answers.isatty = lambda: True
    monkeypatch.setattr(init.sys, "stdin", answers)
    with pytest.raises(init.Stop, match="nothing was written"):
        init._asked()


def test_nothing_is_replaced_by_what_cannot_be_read(call):
    call("init", "--real", "x=0:1")
    before = Path("covey.toml").read_text()
    assert call("init", "--force", "--pool", "nosuch.csv").code == 5
    assert Path("covey.toml").read_text() == before


def test_any_letter_is_welcome(call):
    assert call("init", "--choice", "c=😀,é", "--real", "größe=0:1").code == 0
    assert read_settings(Path("covey.toml")).space.parameters["c"].options == ("😀", "é")


def test_a_pool_is_found_from_the_folder_of_the_file(call):
    Path("sub").mkdir()
    Path("candidates.csv").write_text("a,b\n1,2\n3,4\n")
    assert call("init", "--config", "sub/covey.toml", "--pool", "candidates.csv").code == 0
    assert read_settings(Path("sub/covey.toml")).space.size == 2


def test_a_journal_that_is_there_keeps_its_seed(study):
    study("ask")
    study("init", "--force", "--real", "lr=1e-5:0.1:log", "--integer", "layers=1:8")
    assert read_settings(Path("covey.toml")).wanted.seed == 1


def choice(call, words):
    done = call("init", "--force", "--choice", f"c={words}")
    assert done.code == 0, done.err
    return read_settings(Path("covey.toml")).space.parameters["c"], done.err


def test_a_choice_is_a_line_of_csv(call):
    found, said = choice(call, 'DMF,"1,4-dioxane", "N,N-DMA",THF')
    assert found == Choice(["DMF", "1,4-dioxane", "N,N-DMA", "THF"])
    assert "c: one of 'DMF', '1,4-dioxane', 'N,N-DMA', 'THF'" in said
    found, said = choice(call, "DMF,1,4-dioxane")
    assert "c: one of 'DMF', '1', '4-dioxane'" in said  # which its writer sees
    assert choice(call, '5" pipe,6" pipe')[0] == Choice(['5" pipe', '6" pipe'])
    for words in ('a,"b', 'a,"b"c', "a,,b", 'a,""', "a\nb,c"):
        assert call("init", "--force", "--choice", f"c={words}").code == 2, words


def test_options_that_are_numbers_are_numbers_in_their_order(call):
    found, said = choice(call, "0.05,1.0,0.1")
    assert found == Choice([0.05, 0.1, 1.0], ordered=True)
    assert "c: one of 0.05, 0.1, 1.0, in this order" in said
    assert choice(call, "8,-2,16")[0] == Choice([-2, 8, 16], ordered=True)
    for words in ("1,2,many", "007,008", "1,nan", "1_0,2", "1e999,2"):
        assert choice(call, words)[0] == Choice(words.split(",")), words
    assert call("init", "--force", "--choice", "c=1,1.0").code == 2


def test_init_repeats_the_space_it_understood(call):
    done = call("init", "--real", "lr=1e-5:0.1:log", "--integer", "n=1:8", "--json")
    assert "lr: real, 1e-05 to 0.1, log" in done.err
    assert "n:  integer, 1 to 8" in done.err
    Path("pool.csv").write_text("id,a\n1,2\n3,4\n")
    done = call("init", "--force", "--pool", "pool.csv", "--label", "id")
    assert "2 candidates, inputs a, labels id" in done.err


def test_steps_on_the_command_line(call):
    words = ("--real", "T=20:80:step=5", "--real", "c=0.5:8:log:step=0.5")
    done = call("init", *words, "--integer", "n=0:100:step=10")
    assert done.code == 0, done.err
    assert read_settings(Path("covey.toml")).space == Space(
        {
            "T": Real(20, 80, step=5),
            "c": Real(0.5, 8, log=True, step=0.5),
            "n": Integer(0, 100, step=10),
        }
    )
    assert "T: real, 20.0 to 80.0 in steps of 5.0" in done.err
    assert "n: integer, 0 to 100 in steps of 10" in done.err
    assert "step = 5.0" in Path("covey.toml").read_text()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("T=20:80:5", "no range LOW:HIGH, LOW:HIGH:step=S or LOW:HIGH:log"),
        ("T=20:80:step=five", "the ends and the step of '20:80:step=five' are no numbers"),
        ("T=20:80:step=", "are no numbers"),
        ("T=20:80:step=1:step=2", "no range"),
        ("T=20:80:log:log", "no range"),
        ("T=20", "no range"),
        ("T=20:80:step=0", "must be above 0"),
        ("T=20:80:step=100", "at most high - low = 60.0"),
        ("T=20:80:step=nan", "must be a finite number"),
    ],
)
def test_wrong_steps_on_the_command_line(call, given, reason):
    done = call("init", "--real", given)
    assert done.code == 2
    assert reason in done.err
    assert not Path("covey.toml").exists()


def test_a_column_of_a_pool_in_logs(call):
    Path("pool.csv").write_text("id,conc\n1,0.1\n2,1\n3,10\n")
    pool = ("--pool", "pool.csv", "--label", "id", "--log", "conc")
    done = call("init", *pool)
    assert "3 candidates, inputs conc (conc in logs), labels id" in done.err
    assert read_settings(Path("covey.toml")).space.log == ("conc",)
    assert call("next", *pool, "--batch", "2").code == 0
    assert (
        "unknown input 'con'" in call("init", "--force", "--pool", "pool.csv", "--log", "con").err
    )
    done = call("init", "--force", "--real", "x=0:1", "--log", "x")
    assert done.code == 2
    assert "--log names a column of a pool" in done.err


def test_a_file_in_steps(call):
    table = '[parameters.T]\ntype = "real"\nlow = 0.1\nhigh = 0.4\nstep = 0.05\n'
    numbers = '[parameters.c]\ntype = "choice"\noptions = [0.1, 1.0, 0.05]\n'
    Path("covey.toml").write_text("[study]\nseed = 0\n" + table + numbers)
    space = read_settings(Path("covey.toml")).space
    assert space == Space({"T": Real(0.1, 0.4, step=0.05), "c": Choice([0.05, 0.1, 1.0])})
    assert call("ask", "--batch", "4", "--out", "batch.csv").code == 0
    written = [row.split(",")[1] for row in Path("batch.csv").read_text().splitlines()[1:]]
    assert set(written) <= {"0.1", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4"}
    sheet = Path("batch.csv").read_text().splitlines()
    told = [sheet[0], *(f"{row}{i}" for i, row in enumerate(sheet[1:]))]
    Path("batch.csv").write_text("\n".join(told) + "\n")
    assert call("tell", "batch.csv").code == 0
    assert call("ask", "--fix", "T=0.12").code != 0
    assert call("export", "--json").code == 0
    assert call("report").code == 0


@pytest.mark.parametrize(
    "words",
    [("--real", "x=1:0"), ("--real", "x=a:b"), ("--integer", "x=1.5:2"), ("--choice", "x=a,a")],
    ids=" ".join,
)
def test_what_is_wrong_with_a_parameter_is_a_sentence_of_its_own(call, words):
    done = call("init", *words)
    assert done.code == 2
    assert re.search(r"x: .*[^.]\. Write --real", done.err)
    assert "convert" not in done.err
    assert "invalid literal" not in done.err


LIGANDS = "ligand,cone,pKa\nXPhos,256,3.1\nSPhos,240,4.0\nPPh3,145,2.7\n"


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--choice", "ligand=@data/ligands.csv"], ["XPhos", "SPhos", "PPh3"]),
        (
            ["--choice", "ligand=PPh3,XPhos", "--features", "ligand=data/ligands.csv"],
            ["PPh3", "XPhos"],
        ),
    ],
)
def test_features_are_read_relative_to_the_settings(call, words, options):
    Path("data").mkdir()
    Path("data/ligands.csv").write_text(LIGANDS)
    Path("studies").mkdir()
    done = call("init", *words, "--real", "T=20:80", "--config", "studies/covey.toml")
    assert done.code == 0, done.err
    assert "described by" in done.err
    assert 'features = "../data/ligands.csv"' in Path("studies/covey.toml").read_text()
    settings = read_settings(Path("studies/covey.toml"))
    expected = Choice(options, features="data/ligands.csv")
    assert settings.space.parameters["ligand"] == expected
    assert Path("data/ligands.csv").absolute() in [path.resolve() for path in settings.files]
    assert call("ask", "--config", "studies/covey.toml", "--batch", "2").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--choice", "ligand=XPhos,RuPhos", "--features", "ligand=ligands.csv"], "'RuPhos'"),
        (["--choice", "ligand=@absent.csv"], "no file 'absent.csv'"),
        (
            ["--choice", "ligand=XPhos,SPhos", "--features", "ligands=ligands.csv"],
            "--features NAME",
        ),
        (["--real", "T=1:2", "--features", "T=ligands.csv"], "--features NAME=FILE"),
    ],
)
def test_features_that_do_not_fit_are_a_sentence(call, words, said):
    Path("ligands.csv").write_text(LIGANDS)
    done = call("init", *words)
    assert done.code == 2
    assert said in done.err
    assert not Path("covey.toml").exists()


def test_a_file_of_features_that_lacks_an_option_is_named_from_the_settings(call):
    Path("ligands.csv").write_text(LIGANDS)
    call("init", "--choice", "ligand=@ligands.csv")
    Path("ligands.csv").write_text(LIGANDS.replace("SPhos", "RuPhos"))
    done = call("ask")
    assert done.code == 5
    assert "[parameters.ligand]" in done.err
    assert "'SPhos'" in done.err
    assert "ligands.csv" in done.err


def test_an_earlier_study_is_named_relative_to_the_settings(call):
    call("init", "--real", "x=0:1", "--seed", "0")
    call("ask", "--batch", "4", "--strategy", "sobol")
    call("tell", "0=0.1", "1=0.4", "2=0.3", "3=0.2")
    Path("next").mkdir()
    words = ["init", "--real", "x=0:1", "--prior", "covey.jsonl", "--config", "next/covey.toml"]
    assert call(*words).code == 0
    assert 'prior = ["../covey.jsonl"]' in Path("next/covey.toml").read_text()
    done = call("ask", "--config", "next/covey.toml", "--batch", "2")
    assert done.code == 0, done.err
    Path("covey.jsonl").unlink()  # the new journal has what it needs
    assert call("tell", "0=0.1", "1=0.5", "--config", "next/covey.toml").code == 0
    assert call("ask", "--config", "next/covey.toml", "--batch", "2").code == 0


def test_a_prior_that_is_not_there_is_refused(call):
    done = call("init", "--real", "x=0:1", "--prior", "absent.jsonl")
    assert (done.code, "no file 'absent.jsonl'" in done.err) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ["--integer", "temperature=20:70:step=10", "--real", "x=0:1"],
        ["--real", "a name=0:1", "--real", "x=0:1"],
        ["--pool", "pool.csv"],
    ],
)
def test_the_plate_that_it_writes_runs_once_it_is_uncommented(call, words):
    Path("pool.csv").write_text("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(60)))
    assert call("init", *words, "--seed", "1").code == 0
    text = Path("covey.toml").read_text()
    head, plate = text.split("# [plate]")
    lines = [line.removeprefix("# ") for line in f"# [plate]{plate}".splitlines()]
    Path("covey.toml").write_text(head + "\n".join(lines) + "\n")
    done = call("plate", "ask", "--strategy", "random")
    assert done.code == 0, done.err
    names = [*read_settings(Path("covey.toml")).plate["shared"]]
    assert names == ([] if "--pool" in words else [words[1].partition("=")[0]])
