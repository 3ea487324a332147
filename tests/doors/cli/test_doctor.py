from pathlib import Path


def test_what_an_issue_needs(study):
    assert "nothing was asked yet" in study("doctor").out
    study("ask")
    facts = study("doctor", "--json").json
    assert facts["packages"]["numpy"] != "missing"
    assert facts["fsync_ms"] > 0.0
    assert facts["study"] == "covey.toml is fine, 1 event verifies"
    Path("covey.toml").write_text("[studdy]")
    assert "error: " in study("doctor").out
    Path("empty").mkdir()
    assert "no covey.toml here" in study("doctor", "empty").out


def test_a_folder_that_cannot_be_written(call):
    assert "cannot write here" in call("doctor", "none").out
