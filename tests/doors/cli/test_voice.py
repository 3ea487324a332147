from covey.cli.voice import number, printable, table


def test_names_cannot_command_the_terminal():
    assert printable("a\x1b]0;x\x07b\u202ec") == "a]0;xbc"
    assert "\x1b" not in table(["\x1b[2J"], [["\x1b[31m"]])


def test_numbers_for_people():
    assert [number(v) for v in (1.23456789, 3, None, "x")] == ["1.235", "3", "", "x"]
