def test_the_config_may_come_from_the_environment(study, monkeypatch, tmp_path):
    (tmp_path / "covey.toml").rename(tmp_path / "other.toml")
    assert study("status").code == 3
    assert study("status", "--config", "other.toml").code == 0
    monkeypatch.setenv("COVEY_CONFIG", "other.toml")
    assert study("status").code == 0
