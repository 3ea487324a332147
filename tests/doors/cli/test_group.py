def test_a_mistyped_command_is_guessed(call):
    done = call("aks")
    assert done.code == 2
    assert "Did you mean 'ask'?" in done.err
    done = call("journal", "verfy", "--json")
    assert done.code == 2
    assert "verify" in done.err
