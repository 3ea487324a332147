"""`covey plate`: ask, tell, show and pick, and what is refused with an exit code."""

import csv
import io
import json
import shlex
from pathlib import Path

import pytest

from covey import Study

TOML = """
[study]
seed = 1

[parameters.temperature]
type = "integer"
low = 20
high = 70
step = 10

[parameters.ligand_ul]
type = "real"
low = 1.0
high = 20.0
step = 0.5

[parameters.ligand]
type = "choice"
options = ["XPhos", "SPhos"]

[plate]
plate = 24
shared = {temperature = "plate"}
controls = {blank = 4}
replicates = 2

[[dispense]]
material = "{ligand}"
volume = "{ligand_ul}"

[[dispense]]
material = "DMSO"
up_to = 50
role = "all"
"""
STOCKS = """material,plate,plate_type,well,concentration,unit,volume_ul,dead_ul,slot
XPhos,S1,384PP_DMSO2,A1,10,mM,900,15,4
SPhos,S1,384PP_DMSO2,A2,10,mM,900,15,4
DMSO,S1,384PP_DMSO2,B1,,,9000,15,4
"""


@pytest.fixture
def bench(call):
    """A folder with a study on plates and a table of stocks."""
    Path("covey.toml").write_text(TOML)
    Path("stocks.csv").write_text(STOCKS)
    return call


def rows_of(name):
    return list(csv.DictReader(io.StringIO(Path(f"plates/{name}.csv").read_text())))


def reader(name, path="reader.csv", skip=()):
    """A file as a reader writes it: all wells, empty ones too."""
    lines = ["Well,Value"]
    for i, row in enumerate(rows_of(name)):
        if row["well"] not in skip:
            value = "" if row["role"] == "empty" else 0.1 * i + (int(name[1:]) - 1)
            lines.append(f"{row['row']}{int(row['column']):02d},{value}")
    Path(path).write_text("\n".join(lines) + "\n")


def test_a_study_on_plates_from_the_first_to_the_second(bench):
    done = bench("plate", "ask", "-n", "2", "--out", "plates")
    assert done.code == 0, done.err
    assert {p.name for p in Path("plates").iterdir()} == {"p1.csv", "p1.html", "p2.csv", "p2.html"}
    for name in ("p1", "p2"):
        rows = rows_of(name)
        assert len(rows) == 24
        assert len({r["temperature"] for r in rows if r["role"] == "sample"}) == 1
        assert sum(r["role"] == "control:blank" for r in rows) == 4
        reader(name)
        told = bench("plate", "tell", "reader.csv", "--plate", name, "--json")
        assert told.json["told"] == 10
        again = bench("plate", "tell", "reader.csv", "--plate", name)
        assert "recorded before" in again.out
    before = Path("covey.jsonl").read_bytes()
    dry = bench("plate", "ask", "--dry-run", "--json")
    assert Path("covey.jsonl").read_bytes() == before
    made = bench("plate", "ask", "--json").json["plates"]
    assert made == dry.json["plates"]
    assert made[0]["name"] == "p3"
    verify = ["journal", "verify", "covey.jsonl"]
    for words in (["status"], ["export", "--json"], ["best"], ["report"], verify):
        done = bench(*words)
        assert done.code == 0, (words, done.err)


def test_a_filled_table_names_its_plate(bench):
    bench("plate", "ask", "-n", "2", "--out", "plates")
    text = Path("plates/p2.csv").read_text().splitlines()
    head = text[0].split(",")
    lines = [text[0]]
    for line in text[1:]:
        cells = line.split(",")
        cells[head.index("value")] = "1.5" if cells[head.index("run_order")] else ""
        lines.append(",".join(cells))
    Path("filled.csv").write_text("\n".join(lines))
    assert "plate p2: 10 trials told" in bench("plate", "tell", "filled.csv").out


def test_what_is_wrong_is_said_and_nothing_is_recorded(bench):
    bench("plate", "ask", "-n", "2", "--out", "plates")
    before = Path("covey.jsonl").read_bytes()
    used = [r["well"] for r in rows_of("p1") if r["role"] == "sample"]
    reader("p1", skip=used[:1])
    cases = [
        (["tell", "reader.csv"], 2, "which plate is it? p1, p2"),
        (["tell", "reader.csv", "-p", "p1"], 5, f"without a reading: {used[0]}"),
        (["tell", "reader.csv", "-p", "p9"], 5, "there is no plate 'p9'"),
        (["tell", "none.csv", "-p", "p1"], 5, "cannot read"),
        (["tell", "reader.csv", "-p", "p1", "--mark", "A3"], 2, "WELL=WHY"),
        (["show", "p9"], 5, "there is no plate"),
        (["pick", "p1", "--stocks", "stocks.csv", "--for", "ecko"], 5, "Did you mean 'echo'"),
        (["pick", "p1", "--stocks", "no.csv"], 5, "cannot read no.csv"),
    ]
    for words, code, said in cases:
        done = bench("plate", *words)
        assert done.code == code, (words, done.err)
        assert said in done.err
        assert Path("covey.jsonl").read_bytes() == before
    marked = bench("plate", "tell", "reader.csv", "-p", "p1", "--mark", f"{used[0]}=spilt")
    assert marked.code == 0, marked.err
    other = Path("reader.csv").read_text().replace(",0.1\n", ",7\n", 1)
    Path("reader.csv").write_text(other)
    refused = bench("plate", "tell", "reader.csv", "-p", "p1").err
    assert "was told" in refused
    assert "covey plate amend p1 " in refused


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("plate = 24", "plate = 25", "plate is a number of wells"),
        ("replicates = 2", "replicate = 2", "Did you mean 'replicates'"),
        ("{blank = 4}", "{blank = 24}", "24 controls: 0 left"),
        ("{blank = 4}", "{blank = 25}", "25 controls: -1 left"),
        ('{temperature = "plate"}', '{temp = "plate"}', "no parameter of the space"),
        ("up_to = 50", "upto = 50", "Did you mean 'up_to'"),
        ("replicates = 2", 'replicates = "2"', "replicates must be a whole number, got '2'"),
        ("replicates = 2", 'reserved = ["Zeile H"]', '"A1", "row H" or "column 12"'),
        ("replicates = 2", 'spread = "plates"\nreplicates = 2', "at once (-n 2)"),
        ("up_to = 50", "up_to = 50,5", "a decimal point there; the line is 'up_to = 50,5'"),
        ("{blank = 4}", "{a = {wells = 2, at = {temperature = 30}}}", "ligand. Leave out its"),
        (
            "{blank = 4}",
            '{a = {wells = 2, at = {temperature = 30, ligand_ul = 2, ligand = "XPhos"}}}',
            "--fix temperature=30",
        ),
    ],
)
def test_a_wrong_layout_in_the_file_is_said(bench, old, new, said):
    Path("covey.toml").write_text(TOML.replace(old, new))
    done = bench("plate", "ask")
    assert done.code == 5
    assert said in done.err
    assert not Path("covey.jsonl").exists()


def test_a_file_without_a_layout_is_said(study):
    done = study("plate", "ask")
    assert done.code == 5
    assert "no table [plate]" in done.err


def test_shown_as_letters_as_table_and_as_a_page(bench):
    bench("plate", "ask", "--out", "plates")
    shown = bench("plate", "show", "p1")
    assert shown.out.splitlines()[0].split() == ["p1", "1", "2", "3", "4", "5", "6"]
    assert shown.out.count("blank") == 4
    assert "largest correlation" in shown.err
    assert bench("plate", "show", "p1", "--map", "p1.html", "--out", "p1.csv").code == 0
    page = Path("p1.html").read_text()
    assert "A4 landscape" in page
    assert page.count("<td") == 24
    assert "http" not in page
    assert Path("p1.csv").read_text() == Path("plates/p1.csv").read_text()


def test_pick_lists_of_every_machine(bench):
    bench("plate", "ask", "--out", "plates")
    words = ["plate", "pick", "p1", "--for", "opentrons", "--stocks", "stocks.csv"]
    assert "needs the slot of every labware; give that of the plate" in bench(*words).err
    for machine in ("echo", "opentrons", "hamilton", "epmotion", "generic"):
        words = ["plate", "pick", "p1", "--for", machine, "--stocks", "stocks.csv", "--slot", "2"]
        done = bench(*words, "--out", f"{machine}.csv")
        assert done.code == 0, done.err
        lines = Path(f"{machine}.csv").read_text().splitlines()
        assert len(lines) == 1 + 20 + 24  # a header, ligands into samples, solvent into all


@pytest.mark.parametrize("command", ["ask", "tell", "show", "pick", "mark", "amend", "unmark"])
def test_every_example_in_the_help_runs(bench, command):
    found = bench("plate", command, "--help").out.splitlines()
    lines = [line.strip() for line in found if line.strip().startswith("covey ")]
    assert lines
    bench("plate", "ask", "--out", "plates")
    reader("p1")
    Path("p1.csv").write_text(Path("reader.csv").read_text())
    if command in ("amend", "unmark"):
        bench("plate", "tell", "reader.csv", "-p", "p1")
    if command == "unmark":
        bench("plate", "mark", "p1", "A1", "--reason", "bubble")
    for line in lines:
        if command == "show":
            Path("p1.csv").unlink(missing_ok=True)
        done = bench(*shlex.split(line)[1:])
        assert done.code == 0, (line, done.err)


def test_the_next_command_is_that_of_plates(bench):
    assert "next: covey plate ask" in bench("status").out
    asked = bench("plate", "ask", "-n", "2", "--out", "plates")
    held = next(row["temperature"] for row in rows_of("p1") if row["role"] == "sample")
    assert f"p1, temperature {held}: 10 trials" in asked.err
    assert bench("status").out.endswith("next: covey plate tell reader.csv --plate p1\n")
    for name, after in (("p1", "plate tell reader.csv --plate p2"), ("p2", "plate ask")):
        reader(name)
        assert bench("plate", "tell", "reader.csv", "-p", name).err == f"next: covey {after}\n"
    assert bench("ask", "--batch", "2").code == 0
    assert bench("status").out.endswith("next: covey tell\n")


def test_a_marked_well_is_shown_as_marked_though_it_has_a_reading(bench):
    bench("plate", "ask", "--out", "plates")
    reader("p1")
    well = next(row for row in rows_of("p1") if row["role"] == "sample")
    bench("plate", "tell", "reader.csv", "--mark", f"{well['well']}=bubble")
    shown = bench("plate", "show", "p1").out
    assert f" {well['trial']}!" in shown
    assert shown.count("!") == 1


def test_other_numbers_name_the_trial_and_what_corrects_it(bench):
    bench("plate", "ask", "--out", "plates")
    reader("p1")
    bench("plate", "tell", "reader.csv")
    for role in ("sample", "control:blank"):
        row = next(row for row in rows_of("p1") if row["role"] == role)
        Path("other.csv").write_text(f"well,value\n{row['well']},77\n")
        done = bench("plate", "tell", "other.csv", "-p", "p1", "--part")
        assert done.code == 5
        assert f"covey plate amend p1 {row['well']}=VALUE --reason WHY" in done.err


def test_rows_of_other_plates_and_the_decimal_mark_are_said(bench):
    bench("plate", "ask", "-n", "2", "--out", "plates")
    used = {n: [r["well"] for r in rows_of(n) if r["role"] != "empty"] for n in ("p1", "p2")}
    lines = [f"{name};{well};1,234" for name, wells in used.items() for well in wells]
    Path("both.csv").write_text("\n".join(["plate;well;value", *lines]))
    refused = bench("plate", "tell", "both.csv", "-p", "p1")
    assert refused.code == 5
    assert "--decimal comma" in refused.err
    done = bench("plate", "tell", "both.csv", "-p", "p1", "--decimal", "comma")
    assert done.code == 0, done.err
    assert "both.csv: 24 rows of plate p2 left out" in done.err
    assert bench("plate", "show", "p1", "--json").json["wells"][0]["value"] == 1.234
    Path("p2.csv").write_text("\n".join(["plate;well;value", *lines[24:]]).replace(",", "."))
    wrong = bench("plate", "tell", "p2.csv", "-p", "p1")
    assert wrong.code == 5
    assert "are of plate p2, not of p1" in wrong.err


def test_messages_about_readings_name_commands(bench):
    bench("plate", "ask", "--out", "plates")
    well = next(r["well"] for r in rows_of("p1") if r["role"] == "sample")
    reader("p1", skip=[well])
    lacking = bench("plate", "tell", "reader.csv").err
    bench("plate", "tell", "reader.csv", "--mark", f"{well}=bubble")
    reader("p1")
    marked = bench("plate", "tell", "reader.csv", "-p", "p1").err
    assert f"well {well}" in marked
    assert "covey plate unmark" in marked
    for said in (lacking, marked):
        assert "study." not in said
        assert "part=True" not in said


def test_files_that_cannot_be_written_are_refused_before_plates_are_asked_for(bench):
    Path("plates").mkdir()
    Path("plates/p1.csv").write_text("my own notes\n")
    kept = bench("plate", "ask", "--out", "plates")
    assert kept.code == 3
    assert "p1.csv exists" in kept.err
    taken = bench("plate", "ask", "--out", "stocks.csv/more")
    assert taken.code == 2
    assert "--out names a folder" in taken.err
    assert not Path("covey.jsonl").exists()
    assert Path("plates/p1.csv").read_text() == "my own notes\n"


def test_a_table_or_a_map_that_is_there_is_kept_unless_forced(bench):
    bench("plate", "ask")
    words = ("plate", "show", "p1", "--out", "p1.csv", "--map", "p1.html")
    Path("p1.html").write_text("my own page\n")
    assert bench(*words).code == 3
    assert not Path("p1.csv").exists()
    assert bench(*words, "--force").code == 0
    assert "Plate p1" in Path("p1.html").read_text()
    picked = ("plate", "pick", "p1", "--stocks", "stocks.csv", "--out", "p1.csv")
    assert bench(*picked).code == 3
    assert bench(*picked, "--force").code == 0


def test_plates_that_could_not_be_written_are_said_to_exist(bench, monkeypatch):
    from covey.cli import plate

    monkeypatch.setattr(plate, "_require_room", lambda *_, **__: None)
    Path("plates").write_text("a file\n")
    done = bench("plate", "ask", "--out", "plates")
    assert done.code == 1
    assert "The plates are recorded: p1. `covey plate show p1 --out" in done.err
    assert bench("plate", "show", "p1").code == 0


def test_a_refused_first_command_leaves_no_journal(bench):
    few = TOML.replace("high = 20.0\nstep = 0.5", "high = 3.0\nstep = 1.0")
    Path("covey.toml").write_text(few)
    asked = bench("plate", "ask")
    assert asked.code == 7, asked.err
    assert "has room for 10 points" in asked.err
    Path("old.csv").write_text("temperature,ligand_ul,ligand,value\n20,1.0,none,1\n")
    assert bench("add", "old.csv").code == 5
    assert not Path("covey.jsonl").exists()
    Path("old.csv").write_text("temperature,ligand_ul,ligand,value\n20,1.0,XPhos,1\n")
    assert bench("add", "old.csv").code == 0
    assert len(Path("covey.jsonl").read_text().splitlines()) == 2


def test_the_first_plates_are_chosen_once_before_there_is_a_journal(bench, monkeypatch):
    Path("covey.toml").write_text(TOML.replace("seed = 1\n", ""))  # the seed is drawn, and kept
    chosen = []

    def choose(study, *args, **options):
        chosen.append(study.journal)
        return ask_plates(study, *args, **options)

    ask_plates = Study.ask_plates
    monkeypatch.setattr(Study, "ask_plates", choose)
    assert bench("plate", "ask", "--out", "plates").code == 0
    assert chosen == [None]
    wells = Study.load("covey.jsonl").plate("p1").rows()
    assert [row["well"] for row in wells] == [row["well"] for row in rows_of("p1")]
    assert bench("plate", "ask").code == 0
    assert len(chosen) == 2


def test_a_journal_that_another_process_started_meanwhile_is_not_overruled(bench, monkeypatch):
    def choose(study, *args, **options):
        Study(study.space, study.goal, seed=study.seed, journal="covey.jsonl").ask(1)
        return ask_plates(study, *args, **options)

    ask_plates = Study.ask_plates
    monkeypatch.setattr(Study, "ask_plates", choose)
    asked = bench("plate", "ask")
    assert asked.code == 3, asked.err
    assert "covey.jsonl" in asked.err
    assert len(Study.load("covey.jsonl").history) == 1


def test_a_preview_says_what_each_well_is(bench):
    bench("plate", "ask", "--out", "plates")
    rows = rows_of("p1")
    sample, other, third = [r["well"] for r in rows if r["role"] == "sample"][:3]
    control = next(r["well"] for r in rows if r["role"] == "control:blank")
    reader("p1", skip=[sample])
    Path("reader.csv").write_text(Path("reader.csv").read_text().replace("Value", "OD600"))
    before = Path("covey.jsonl").read_bytes()
    words = ("plate", "tell", "reader.csv", "--dry-run", "--mark", f"{other}=bubble")
    refused = bench(*words)
    assert refused.code == 5
    assert f"1 well without a reading: {sample}" in refused.err
    shown = {line.split()[0]: line.split()[1:] for line in refused.out.splitlines()}
    assert shown["well"] == ["is", "trial", "value"]
    assert shown[sample][0] == "missing"
    assert shown[other][0] == "marked"
    assert shown[other][-1] == "bubble"
    trial = next(r["trial"] for r in rows if r["well"] == third)
    assert shown[third][:2] == ["sample", trial]
    assert shown[control][0] == "control"
    assert shown[control][-1] == "blank"
    assert "the column 'OD600' was read as the value" in refused.err
    wells = bench(*words, "--part", "--json").json["wells"]
    assert [w["well"] for w in wells] == [r["well"] for r in rows if r["role"] != "empty"]
    assert Path("covey.jsonl").read_bytes() == before


def test_a_reading_where_nothing_stands_is_unknown_and_passed_over(bench):
    Path("covey.toml").write_text(TOML.replace("replicates = 2", 'reserved = ["A1"]'))
    bench("plate", "ask", "--out", "plates")
    reader("p1")
    text = Path("reader.csv").read_text().replace("A01,\n", "A01,7.5\n")
    Path("reader.csv").write_text(text)
    wells = bench("plate", "tell", "reader.csv", "--dry-run", "--json").json["wells"]
    assert (wells[0]["well"], wells[0]["is"], wells[0]["value"]) == ("A1", "unknown", 7.5)
    assert bench("plate", "tell", "reader.csv").code == 0


def test_marked_wells_and_lost_trials_are_named(bench):
    bench("plate", "ask", "--out", "plates")
    rows = rows_of("p1")
    lost = next(r["trial"] for r in rows if r["role"] == "sample")
    both = [r["well"] for r in rows if r["trial"] == lost]
    once = next(r["well"] for r in rows if r["role"] == "sample" and r["trial"] != lost)
    reader("p1")
    words = [f"--mark={well}=leak" for well in both] + [f"--mark={once}=bubble"]
    done = bench("plate", "tell", "reader.csv", *words)
    assert "plate p1: 9 trials told" in done.out
    assert "3 wells marked, which do not count: " in done.err
    assert f"{once} (bubble)" in done.err
    assert f"{both[0]} (leak)" in done.err
    assert f"trial {lost} is lost: every well of it is marked" in done.err
    again = bench("plate", "tell", "reader.csv", "-p", "p1", *words)
    assert "marked" not in again.err  # nothing new


def test_the_column_of_readings_can_be_named(bench):
    bench("plate", "ask", "--out", "plates")
    reader("p1")
    lines = Path("reader.csv").read_text().splitlines()
    more = ["Position;OD600;OD450"]
    more += [f"{w};{v};{w and v}" for w, v in (line.split(",") for line in lines[1:])]
    text = "Reader 7; run 12\n" + "\n".join(more).replace(".", ",")
    Path("two.csv").write_bytes(text.encode("utf-16"))
    refused = bench("plate", "tell", "two.csv")
    assert refused.code == 5
    assert "--value 'OD600'" in refused.err
    done = bench("plate", "tell", "two.csv", "--value", "OD450")
    assert done.code == 0, done.err
    assert "10 trials told" in done.out


def test_other_numbers_for_a_plate_that_was_told_are_refused_by_their_cell(bench):
    bench("plate", "ask", "--out", "plates")
    reader("p1")
    assert bench("plate", "tell", "reader.csv").code == 0
    before = Path("covey.jsonl").read_bytes()
    row = next(r for r in rows_of("p1") if r["role"] == "sample")
    lines = Path("reader.csv").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"{row['row']}0{row['column']}"))
    lines[at] = lines[at].split(",")[0] + ",77.5"
    Path("reader.csv").write_text("\n".join(lines))
    done = bench("plate", "tell", "reader.csv", "-p", "p1")
    assert done.code == 5
    assert f"reader.csv:{at + 1}, well {row['well']}: 77.5, but plate p1 was told" in done.err
    assert "Nothing was recorded" in done.err
    shown = bench("plate", "tell", "reader.csv", "-p", "p1", "--dry-run")
    assert shown.code == 5
    assert f"{row['well']}" in next(x for x in shown.out.splitlines() if "contradicts" in x)
    assert Path("covey.jsonl").read_bytes() == before


def test_a_table_of_wells_is_told_with_its_plate(bench):
    """As rows of a sheet its wells would count without the shift that the plate shares."""
    bench("plate", "ask", "--out", "plates")
    text = Path("plates/p1.csv").read_text().splitlines()
    at = text[0].split(",").index("value")
    lines = [line.split(",") for line in text]
    filled = [",".join([*c[:at], "1.5", *c[at + 1 :]]) for c in lines[1:] if c[7]]
    Path("filled.csv").write_text("\n".join([text[0], *filled]))
    before = Path("covey.jsonl").read_bytes()
    done = bench("tell", "filled.csv")
    assert done.code == 2
    assert "`covey plate tell filled.csv --plate p1`" in done.err
    assert Path("covey.jsonl").read_bytes() == before
    # In another study they are measurements like any other, and its controls are left out.
    Path("other").mkdir()
    Path("other/covey.toml").write_text(TOML)
    added = bench("add", "filled.csv", "--config", "other/covey.toml", "--json")
    assert added.code == 0, added.err
    assert (added.json["added"], added.json["controls"]) == (20, 4)


def test_a_well_is_corrected_marked_and_unmarked_after_it_was_told(bench):
    bench("plate", "ask", "--out", "plates")
    reader("p1")
    bench("plate", "tell", "reader.csv")
    first, second = [r["well"] for r in rows_of("p1") if r["trial"] == "0"]
    before = json.loads(bench("best", "--json").out)
    length = len(Path("covey.jsonl").read_bytes())
    dry = bench("plate", "mark", "p1", first, "--reason", "bubble", "--dry-run")
    assert (dry.code, dry.out) == (0, "plate p1: 1 well would be marked\n"), dry.err
    assert len(Path("covey.jsonl").read_bytes()) == length
    done = bench("plate", "mark", "p1", f"{first},{second}", "--reason", "bubble", "--json")
    told = json.loads(done.out)
    assert told["wells"] == [first, second]
    assert told["trials"] == [{"id": 0, "status": "lost", "value": None}]
    assert "-> lost" in done.err
    assert bench("plate", "mark", "p1", first, "--reason", "spilt").code == 5
    back = bench("plate", "unmark", "p1", first, second, "--reason", "it was dust")
    assert back.code == 0, back.err
    assert json.loads(bench("best", "--json").out) == before
    right = bench("plate", "amend", "p1", f"{first}=100", f"{second}=102", "--reason", "dilution")
    assert right.out == "plate p1: 2 wells are amended\n"
    assert right.err.startswith("trial 0: ")
    assert right.err.splitlines()[0].endswith("-> 101 ± 1")
    assert "101" in bench("best").out
    for words, said in (
        (["amend", "p1", first], "WELL=VALUE"),
        (["amend", "p1", f"{first}=1", f"{first}=2"], "comes twice"),
        (["amend", "p1", "A1=x"], "no number"),
        (["unmark", "p1", first], "is not marked"),
        (["mark", "p1", "Z99"], "Z99"),
    ):
        refused = bench("plate", *words, "--reason", "why")
        assert refused.code in (2, 5), words
        assert said in refused.err


def test_volumes_that_are_rounded_are_said_by_well_and_may_be_recorded(bench):
    toml = TOML.replace("high = 20.0\nstep = 0.5", "high = 20.0")
    Path("covey.toml").write_text(toml)
    bench("plate", "ask", "--out", "plates")
    words = ["plate", "pick", "p1", "--for", "hamilton", "--stocks", "stocks.csv", "--json"]
    plain = bench(*words)
    assert "with --as-dispensed the model learns" in plain.err
    rounded = json.loads(plain.out)["rounded"]
    assert {r["well"] for r in rounded if r["material"] != "DMSO"}
    said = [line for line in plain.err.splitlines() if " instead of " in line]
    worst = max(rounded, key=lambda r: abs(r["ul"] / r["wanted_ul"] - 1))
    assert len(said) == 8  # the worst of them, and how many more
    assert worst["well"] in said[0]
    assert f"{len(rounded)} volumes rounded to what hamilton can do; " in plain.err
    more = len(rounded) - sum(line.split(":")[0].count(",") + 1 for line in said)
    assert f"; {more} of them by less than those above (--json has all)" in plain.err
    done = bench(*words, "--as-dispensed")
    moved = json.loads(done.out)["as_dispensed"]
    assert moved
    shown = {w["trial"]: w for w in json.loads(bench("plate", "show", "p1", "--json").out)["wells"]}
    for id in moved:
        assert round(shown[id]["ligand_ul"] * 10, 9) == round(shown[id]["ligand_ul"] * 10)
    assert json.loads(bench(*words, "--as-dispensed").out)["as_dispensed"] == []
    # The table that was written before has the points that were asked for, and is still taken.
    lines = Path("plates/p1.csv").read_text().splitlines()
    at = lines[0].split(",").index("value")
    for i, line in enumerate(lines[1:], start=1):
        cells = line.split(",")
        cells[at] = "" if cells[4] == "empty" else "1.5"
        lines[i] = ",".join(cells)
    Path("filled.csv").write_text("\n".join(lines) + "\n")
    told = bench("plate", "tell", "filled.csv")
    assert told.code == 0, told.err


def test_a_rounded_value_that_the_space_has_not_is_refused(bench):
    Path("covey.toml").write_text(TOML.replace("step = 0.5", "step = 0.25"))
    bench("plate", "ask", "--out", "plates")
    before = Path("covey.jsonl").read_bytes()
    words = ["plate", "pick", "p1", "--for", "hamilton", "--stocks", "stocks.csv"]
    done = bench(*words, "--as-dispensed", "--out", "list.csv")
    assert done.code == 5
    assert "as dispensed is no point of the space" in done.err
    assert Path("covey.jsonl").read_bytes() == before
    assert not Path("list.csv").exists()


def test_long_lists_of_epmotion_come_in_numbered_files(bench):
    toml = TOML.replace("high = 20.0\nstep = 0.5", "high = 20.0")
    Path("covey.toml").write_text(toml.replace("plate = 24", "plate = 384"))
    stocks = STOCKS.replace(",9000,15", ",90000,15").replace(",900,15", ",9000,15")
    Path("stocks.csv").write_text(stocks)
    asked = bench("plate", "ask", "--strategy", "random")
    assert asked.code == 0, asked.err
    words = ["plate", "pick", "p1", "--for", "epmotion", "--stocks", "stocks.csv"]
    assert "reads 2 files of this; name one with --out" in bench(*words).err
    done = bench(*words, "--out", "list.csv")
    assert done.code == 0, done.err
    parts = [Path(f"list-{n}.csv").read_text().splitlines() for n in (1, 2)]
    assert [len(lines) for lines in parts] == [501, 1 + 380 + 384 - 500]
    assert {lines[0] for lines in parts} == {"Rack,Source,Rack,Destination,Volume,Tool"}


def test_a_parameter_is_held_and_decimal_commas_are_written(bench, monkeypatch):
    done = bench("plate", "ask", "--fix", "temperature=40", "--out", "plates", "--decimal", "comma")
    assert done.code == 0, done.err
    text = Path("plates/p1.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text), delimiter=";"))
    samples = [row for row in rows if row["role"] == "sample"]
    assert {row["temperature"] for row in samples} == {"40"}
    assert all("." not in row["ligand_ul"] and "," in row["ligand_ul"] for row in samples)
    assert (
        f"<i>{samples[0]['ligand_ul'].removesuffix(',0')}</i>" in Path("plates/p1.html").read_text()
    )
    assert bench("plate", "ask", "--fix", "temprature=40").code == 5
    monkeypatch.setenv("COVEY_DECIMAL", "comma")
    bench("plate", "show", "p1", "--out", "again.csv")
    assert Path("again.csv").read_text().splitlines()[0] == text.splitlines()[0]
    lines = [";".join(text.splitlines()[0].split(";"))]
    for i, row in enumerate(rows):
        row["value"] = "" if row["role"] == "empty" else f"{i + 1},25"
        lines.append(";".join(row.values()))
    Path("filled.csv").write_text("\n".join(lines) + "\n")
    told = bench("plate", "tell", "filled.csv")
    assert told.code == 0, told.err


def test_two_plates_in_one_slot_are_refused(bench):
    bench("plate", "ask", "--out", "plates")
    words = ["plate", "pick", "p1", "--stocks", "stocks.csv", "--out", "picks.csv", "--for"]
    same = bench(*words, "opentrons", "--slot", "4")
    assert same.code == 5
    assert "slot 4 is that of S1 and of the plate itself (--slot)" in same.err
    assert bench(*words, "epmotion", "--slot", "4").code == 0  # its racks are counted on each side
    Path("picks.csv").unlink()
    Path("stocks.csv").write_text(STOCKS.replace("DMSO,S1", "DMSO,S2"))
    for machine, place in (("opentrons", "slot"), ("epmotion", "rack")):
        two = bench(*words, machine, "--slot", "2")
        assert (two.code, f"{place} 4 is that of S2 and of S1" in two.err) == (5, True), two.err
    Path("stocks.csv").write_text(STOCKS.replace("9000,15,4", "9000,15,5"))
    torn = bench(*words, "opentrons", "--slot", "2")
    assert "the stocks have S1 in slot 4 and in slot 5" in torn.err
    assert not Path("picks.csv").exists()


def test_columns_of_stocks_that_are_not_read_are_said(bench):
    bench("plate", "ask", "--out", "plates")
    Path("stocks.csv").write_text(STOCKS.replace("dead_ul", "tot_ul"))
    done = bench("plate", "pick", "p1", "--stocks", "stocks.csv", "--out", "picks.csv")
    assert "stocks.csv: not read: tot_ul; there is no dead_ul" in done.err


def test_the_decimal_mark_of_stocks_can_be_said(bench):
    bench("plate", "ask", "--out", "plates")
    text = STOCKS.replace(",", ";").replace("9000", "9.000").replace("900", "900.125")
    Path("stocks.csv").write_text(text.replace("900.125", "9.125").replace(";15;", ";1.125;"))
    words = ["plate", "pick", "p1", "--stocks", "stocks.csv", "--out", "picks.csv"]
    assert "--decimal comma" in bench(*words).err
    assert "runs dry" in bench(*words, "--decimal", "point").err
    assert "has decimal commas" in bench(*words, "--decimal", "comma").err


def test_a_mark_where_nothing_stands_is_refused(bench):
    Path("covey.toml").write_text(TOML.replace("[plate]\n", '[plate]\nreserved = ["A1"]\n', 1))
    bench("plate", "ask", "--out", "plates")
    reader("p1")
    before = Path("covey.jsonl").read_bytes()
    done = bench("plate", "tell", "reader.csv", "--mark", "A1=bubble")
    assert (done.code, "well A1, where nothing stands" in done.err) == (5, True), done.err
    assert Path("covey.jsonl").read_bytes() == before


def test_the_file_of_another_plate_is_refused_though_it_fits(bench):
    bench("plate", "ask", "-n", "2", "--out", "plates")
    every = [f"{row}{column}" for row in "ABCD" for column in range(1, 7)]
    Path("r.csv").write_text("Well,OD600\n" + "".join(f"{w},{n}.5\n" for n, w in enumerate(every)))
    assert bench("plate", "tell", "r.csv", "--plate", "p1").code == 0
    before = Path("covey.jsonl").read_bytes()
    wrong = bench("plate", "tell", "r.csv", "--plate", "p2")
    assert (wrong.code, "so it is the file of p1" in wrong.err) == (3, True), wrong.err
    assert Path("covey.jsonl").read_bytes() == before
    assert bench("plate", "tell", "r.csv", "--plate", "p1").code == 0  # told again it is known
    Path("r.csv").write_text("Well,OD600\n" + "".join(f"{w},0.5\n" for w in every))
    assert bench("plate", "tell", "r.csv", "--plate", "p2").code == 0


def turned_file(name, path):
    """A reader's file of a plate that was turned: blanks near 0, copies of a trial alike."""
    rows, lines = rows_of(name), ["Well,Value"]
    for i, (row, there) in enumerate(zip(rows, reversed(rows), strict=True)):
        if there["role"] != "empty":
            value = 10.0 * int(there["trial"] or -1) + 10.0 + 0.01 * (i % 5)
            lines.append(f"{row['well']},{value:.2f}")
    Path(path).write_text("\n".join(lines) + "\n")


def test_a_turned_plate_is_asked_about_before_it_is_recorded(bench, monkeypatch):
    import typer

    bench("plate", "ask", "--out", "plates")
    turned_file("p1", "r.csv")
    before = Path("covey.jsonl").read_bytes()
    tell = ["plate", "tell", "r.csv", "--plate", "p1", "--part"]
    said = bench(*tell)
    assert (said.code, "--turned, or with --yes" in said.err) == (3, True), said.err
    assert "p1: the readings fit better if the plate was turned" in said.err
    dry = bench(*tell, "--dry-run")
    assert (dry.code, "fit better if" in dry.err) == (0, True), dry.err
    monkeypatch.setattr("covey.cli.plate.is_terminal", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: False)
    assert bench(*tell).code == 3
    assert Path("covey.jsonl").read_bytes() == before
    done = bench("plate", "tell", "r.csv", "--plate", "p1", "--turned")
    assert "plate p1: 10 trials told" in done.out, done.err
    wells = bench("plate", "show", "p1", "--json").json["wells"]
    assert max(w["value"] for w in wells if w["role"] == "control:blank") < 0.1


def test_a_plate_taken_for_another_is_asked_about_and_told_by_its_name(bench):
    bench("plate", "ask", "-n", "2", "--out", "plates")
    lines = ["Well,Value"]
    for i, row in enumerate(rows_of("p2")):
        if row["role"] != "empty":
            lines.append(f"{row['well']},{10.0 * int(row['trial'] or -1) + 10.0 + 0.01 * (i % 5)}")
    Path("r.csv").write_text("\n".join(lines) + "\n")
    said = bench("plate", "tell", "r.csv", "--plate", "p1", "--part")
    assert (said.code, "with --plate p2, or with --yes" in said.err) == (3, True), said.err
    told = bench("plate", "tell", "r.csv", "--plate", "p2")
    assert "plate p2: 10 trials told" in told.out, told.err


def test_a_plate_that_stood_as_laid_out_is_recorded_with_yes(bench):
    bench("plate", "ask", "--out", "plates")
    turned_file("p1", "r.csv")
    done = bench("plate", "tell", "r.csv", "--plate", "p1", "--part", "--yes")
    assert done.code == 0, done.err


def test_a_column_with_a_word_in_it_can_be_named(bench):
    bench("plate", "ask", "--out", "plates")
    Path("r.csv").write_text("Well,OD600\nA1,0.5\nA2,broken\n")
    assert "name it (--value COLUMN)" in bench("plate", "tell", "r.csv", "--part").err
    assert (
        "A2: the OD600 'broken' is no number"
        in bench(*("plate", "tell", "r.csv", "--part", "--value", "OD600")).err
    )


def test_a_well_of_several_outcomes_is_amended_by_name(bench):
    goals = '[study]\ngoal = {yield = "max", cost = "min"}\n'
    Path("covey.toml").write_text(TOML.replace("[study]\n", goals))
    bench("plate", "ask", "--out", "plates")
    well = next(r["well"] for r in rows_of("p1") if r["role"] == "sample")
    table = [f"{r['well']},{i},1" for i, r in enumerate(rows_of("p1"))]
    Path("r.csv").write_text("\n".join(["Well,yield,cost", *table]))
    assert bench("plate", "tell", "r.csv").code == 0
    before = Path("covey.jsonl").read_bytes()
    nameless = bench("plate", "amend", "p1", f"{well}=5", "--reason", "typing error")
    assert (nameless.code, f"such as {well}:yield=5" in nameless.err) == (5, True), nameless.err
    assert Path("covey.jsonl").read_bytes() == before
    done = bench("plate", "amend", "p1", f"{well}:cost=3", "--reason", "typing error")
    assert "cost 1 -> yield" in done.err
