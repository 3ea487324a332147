from covey.cli.voice import number, printable, say, table


def test_names_cannot_command_the_terminal():
    assert printable("a\x1b]0;x\x07b\u202ec") == "a]0;xbc"
    assert "\x1b" not in table(["\x1b[2J"], [["\x1b[31m"]])


def test_numbers_for_people():
    assert [number(v) for v in (1.23456789, 3, None, "x")] == ["1.235", "3", "", "x"]


def test_talk_does_not_need_a_listener(monkeypatch):
    class Gone:
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Gone())
    say("anybody there?")
