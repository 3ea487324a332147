"""Laws of intake, on studies in memory: what rows of several files come to."""

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

import covey
from covey.sheets.columns import SheetColumns
from covey.sheets.intake import Manner, plan
from covey.sheets.recording import check_intake, record_intake
from covey.tables import SheetRow


def measured(study):
    """How often each value was measured at each point."""
    return Counter((str(dict(t.point)), t.value) for t in study.history.told)


def rows_of(files):
    return [
        (
            SheetColumns({"value": "value"}, id="id"),
            SheetRow({"id": id, "a": a, "value": value}, f"{i}.csv:{n}", file=f"{i}.csv"),
        )
        for i, file in enumerate(files)
        for n, (id, a, value) in enumerate(file, start=2)
    ]


def take(study, files, **manner):
    found = plan(rows_of(files), study, Manner(**manner))
    if not found.of("refused", "deviates", "unknown"):
        check_intake(found, study)
        record_intake(found, study)
    return found


OPTIONS, VALUES = "pqr", ["1", "2", "failed", ""]
FREE = st.tuples(st.just(""), st.sampled_from(OPTIONS), st.sampled_from(["1", "2"]))
ANY = st.tuples(st.sampled_from(["", "0", "1"]), st.sampled_from(OPTIONS), st.sampled_from(VALUES))


def new_study(asked=0):
    study = covey.Study(covey.Space({"a": covey.Choice(list(OPTIONS))}), seed=0)
    if asked:
        study.ask(asked)
    return study


@given(st.lists(st.lists(FREE, max_size=6), min_size=1, max_size=3))
def test_within_a_file_rows_add_up_and_between_files_they_agree(files):
    """The referee: each value counts as often as in the file that has it most often."""
    together, apart = new_study(), new_study()
    take(together, files)
    for file in files:
        take(apart, [file])
    most = Counter()
    for file in files:
        counts = Counter((str({"a": a}), float(value)) for _, a, value in file)
        most |= counts
    assert measured(together) == measured(apart) == most


@given(st.lists(st.lists(ANY, max_size=5), min_size=1, max_size=2), st.booleans())
@example([[("0", "q", "2")], [("0", "q", "2")]], True)
@example([[("", "r", "1"), ("0", "q", "1")]], True)
@example([[("", "r", "1"), ("0", "r", "2")]], False)
def test_what_was_taken_is_known(files, as_run):
    """Whatever rows are taken, taking them again takes nothing, in any manner."""
    study = new_study(asked=2)
    found = take(study, files, as_run=as_run)
    if found.of("refused", "deviates", "unknown"):
        assert len(study.history.events) == 1  # nothing was recorded
        return
    before = study.history.events
    again = take(study, files, as_run=as_run)
    assert not again.of("refused", "deviates", "unknown")
    assert study.history.events == before
    told = sum(v not in ("", "failed") for file in files for _, _, v in file)
    assert found.count("result", "added", "repeat", "as run", "known") >= told


@given(st.lists(FREE, max_size=6), st.lists(FREE, max_size=4))
def test_a_sheet_that_grew_adds_what_it_grew_by(file, more):
    once, twice = new_study(), new_study()
    take(once, [[*file, *more]])
    take(twice, [file])
    take(twice, [[*file, *more]])
    assert measured(once) == measured(twice)
    take(twice, [file], again=True)  # the control: said to be new, it is
    assert sum(measured(twice).values()) == len([*file, *more, *file])
