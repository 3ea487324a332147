import csv
import io
from pathlib import Path


def test_the_open_batch_is_printed_again_until_it_is_told(study):
    first = study("ask")
    assert first.code == 0
    rows = list(csv.DictReader(io.StringIO(first.out)))
    assert [row["id"] for row in rows] == ["0", "1", "2"]
    assert list(rows[0]) == ["id", "lr", "layers", "opt", "value"]
    again = study("ask")
    assert again.out == first.out
    assert "3 trials are still open" in again.err
    study("tell", "0=1", "1=2", "2=3")
    assert study("ask").out != first.out


def test_new_asks_for_more_while_a_batch_is_open(study):
    study("ask")
    more = study("ask", "--new", "--batch", "2", "--fix", "opt=sgd", "--fix", "layers=4", "--json")
    assert more.json["schema"] == "covey.ask/1"
    assert [t["id"] for t in more.json["trials"]] == [3, 4]
    assert all(t["point"]["opt"] == "sgd" for t in more.json["trials"])
    assert all(t["point"]["layers"] == 4 for t in more.json["trials"])


def test_a_dry_run_shows_the_batch_that_would_come_and_writes_nothing(study):
    shown = study("ask", "--dry-run", "--json")
    assert not Path("covey.jsonl").exists()
    study("ask")
    study("tell", "0=1", "1=2", "2=3")
    before = Path("covey.jsonl").read_bytes()
    shown = study("ask", "--dry-run", "--json").json["trials"]
    assert Path("covey.jsonl").read_bytes() == before
    assert study("ask", "--json").json["trials"] == shown


def test_a_sheet_is_written_to_be_filled_in(study):
    done = study("ask", "--out", "batch.csv")
    assert done.out == ""
    assert Path("batch.csv").read_text().startswith("id,lr,layers,opt,value\n0,")


def test_wrong_words_change_nothing(study):
    assert study("ask", "--fix", "opt").code == 2
    wrong = study("ask", "--fix", "opt=adamm")
    assert wrong.code == 5
    assert "Did you mean 'adam'?" in wrong.err
    assert study("export", "--json").json["trials"] == []
    assert study("ask", "--strategy", "best").code == 5
    assert study("ask", "--batch", "0").code == 2


def test_an_exhausted_space_is_nothing_to_do(call):
    call("init", "--choice", "a=x,y", "--batch", "2")
    call("ask")
    call("tell", "0=1", "1=2")
    assert call("ask").code == 7


def test_a_table_on_a_terminal(study, monkeypatch):
    import sys

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    shown = study("ask")
    assert shown.out.splitlines()[0].split() == ["id", "lr", "layers", "opt"]


def test_two_who_ask_at_once_get_one_batch(study):
    import subprocess
    import sys

    words = [sys.executable, "-m", "covey", "ask"]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (one.communicate(timeout=300)[0] for one in both)
    assert first == second
    assert len(study("export", "--json").json["trials"]) == 3


def test_what_cannot_be_written_is_found_before_a_batch_is_recorded(study):
    for out in ("no/batch.csv", ".", "covey.toml"):
        assert study("ask", "--out", out).code in (2, 3)
    assert not Path("covey.jsonl").exists()
    study("ask")
    assert study("export", "--out", "covey.jsonl").code == 2
    assert study("report", "--out", "covey.jsonl").code == 2
    assert study("journal", "verify", "covey.jsonl").code == 0


def test_what_is_for_a_new_batch_needs_new(study):
    study("ask")
    for words in (["-b", "5"], ["--fix", "opt=adam"], ["--strategy", "random"]):
        done = study("ask", *words)
        assert done.code == 2
        assert "--new" in done.err


def test_options_that_are_lists_tables_or_dates_are_shown_as_they_are(call):
    Path("covey.toml").write_text(
        '[study]\nseed = 0\nbatch = 4\n[parameters.net]\ntype = "choice"\n'
        "options = [[64, 64], {wide = 3}, 2024-05-01, 2024-05-01T12:30:00]\n"
    )
    shown = [
        [64, 64],
        {"wide": 3},
        "2024-05-01",
        "2024-05-01T12:30:00",
    ]
    trials = call("ask", "--json").json["trials"]
    assert sorted(str(t["point"]["net"]) for t in trials) == sorted(map(str, shown))
    call("tell", "0=1", "1=2", "2=3", "3=4")
    assert call("best", "--json").json["best"]["point"]["net"] in shown
    assert all(t["point"]["net"] in shown for t in call("export", "--json").json["trials"])
    found = call("next", "--batch", "1", "--json").json["points"][0]["net"]
    assert found in shown


def test_the_advice_names_the_sheet_that_was_written(study):
    assert "covey tell batch.csv" in study("ask", "--out", "batch.csv").err


def test_each_point_says_why_it_is_there_also_after_a_restart(study):
    study("ask", "--batch", "12", "--strategy", "sobol")
    study("tell", *(f"{i}={(i * 7) % 5 + 0.1 * i}" for i in range(12)))
    planned = study("ask", "--dry-run", "--strategy", "ucb-dpp-sample", "--json", "--explain")
    asked = study("ask", "--strategy", "ucb-dpp-sample", "--explain")
    shown = study("ask", "--json", "--explain")
    why = [trial["why"] for trial in shown.json["trials"]]
    assert why[0].startswith("first: the largest upper bound (UCB, width ")
    assert all("determinant from" in said for said in why[1:])
    assert planned.json == shown.json
    for done in (planned, asked, shown):
        assert all(f"trial {12 + i}: {said}" in done.err for i, said in enumerate(why))
    assert "determinant" not in study("ask").err
    assert "determinant" in study("report", "--json").out


def test_a_point_of_ones_own_says_so(study):
    asked = study("ask", "--strategy", "random", "--json").json["trials"]
    assert {trial["why"] for trial in asked} == {"chosen without a model"}
