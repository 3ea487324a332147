def test_the_version_and_where_the_exit_codes_are(call):
    assert call("--version").out.startswith("covey ")
    assert "6 journal" in call("--help").out.replace("\n ", "")
