import dataclasses
import html.parser
import os
import re
import sys

import pytest

import covey
from covey.errors import MissingExtraError, ReportError
from covey.report import card, page, page_path, write_page

HOSTILE = ("<img src=x", '"><svg/onload', "\u202e", "<script>", "</svg><")


class Reader(html.parser.HTMLParser):
    """Tags, attributes and ids of a page; complains about what does not close."""

    VOID = frozenset({"meta", "link", "path", "use", "rect"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.attributes, self.references, self.open = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("aria-labelledby", "aria-describedby"):
                self.references.append(value)
            if name == "href" and value.startswith("#"):
                self.references.append(value[1:])
            self.references += re.findall(r"url\(#([^)]*)\)", value or "")

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module", params=["rising", "falling", "pooled", "hostile", "long"])
def text(request, page_of):
    return page_of(request.param)


def test_the_page_is_sound(text):
    read = Reader(text)
    assert len(read.ids) == len(set(read.ids))
    assert set(read.references) <= set(read.ids)
    assert "script" not in read.tags
    assert not [name for name in read.attributes if name.startswith("on")]
    assert read.tags.count("svg") == text.count('role="img"') == read.tags.count("figcaption")
    assert read.tags.count("details") == read.tags.count("svg")


def test_the_page_asks_for_nothing(text):
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in text
    assert not re.findall(r"https?:|//[a-z]|@import|src=", re.sub(r"&lt;img src=x", "", text))


def test_the_page_is_light(text):
    assert len(text.encode()) < 400_000


def test_names_are_escaped(page_of):
    text = page_of("hostile")
    assert "&lt;img src=x onerror=1&gt;" in text
    assert "{{7*7}}" in text
    assert ">49<" not in text
    for raw in HOSTILE:
        assert raw not in text
    assert "\\u202eevil" in text
    assert len(re.findall("\U0001f600", text)) < 3000  # a name of 3000 letters is cut


def test_an_unescaped_name_would_be_seen(card_of, monkeypatch):
    """The check above can fail: with the escaping off, the names come through."""
    import jinja2

    plain = jinja2.Environment
    monkeypatch.setattr(
        jinja2, "Environment", lambda **settings: plain(**settings | {"autoescape": False})
    )
    text = page(card_of("hostile"))
    assert "<img src=x onerror=1>" in text


def test_every_part_is_there(page_of):
    text = page_of("rising")
    for heading in (
        "Best so far",
        "Batch 4: still open",
        "Diversity",
        "Predicted against measured",
        "Slices through the best point",
        "Edges of the space",
        "What to type next",
        "The last batch again",
    ):
        assert f">{heading}</h2>" in text
    assert "study.tell([25, 26], values)" in text
    assert "inside the 90 % band" in text
    assert "Duplicates in the batch: 0" in text


def test_a_pool_shows_its_labels(page_of):
    text = page_of("pooled")
    assert "molecule" in text
    assert "add candidates beyond it?" in text


def test_an_empty_study_has_a_page(line):
    text = page(card(line))
    Reader(text)
    assert "No trial has entered this study yet." in text
    assert "batch = study.ask(8)" in text


def test_everything_failed_has_a_page(line):
    line.fail(line.ask(3))
    text = page(card(line))
    Reader(text)
    assert "Nothing has been told, so there is no best point yet." in text


def test_excluded_results_are_struck_through(line):
    line.tell(line.ask(3), [1.0, 7.5, 2.0])
    line.exclude([1], "wrong <vial>")
    text = page(card(line))
    Reader(text)
    assert "<s>7.5</s>" in text
    assert "<s>2</s>" not in text
    assert "What is excluded, and why" in text
    assert "wrong &lt;vial&gt;" in text
    assert "3 told (1 excluded)" in text
    assert "<td>told, excluded</td>" in text
    line.include([1], "right vial")
    assert "<s>" not in page(card(line))


def test_everything_excluded_has_a_page(line):
    line.tell(line.ask(3), [1.0, 7.5, 2.0])
    line.exclude([0, 1, 2], "wet")
    text = page(card(line))
    Reader(text)
    assert "Every result is excluded, so there is no best point" in text
    assert "Nothing has been told" not in text


def test_many_open_lots_are_named_in_short(line):
    for _ in range(8):
        line.ask(1)
    assert ">Batch 1, 6 more, batch 8: still open</h2>" in page(card(line))


@pytest.mark.parametrize(
    "space",
    [
        covey.Space({"x": covey.Choice(["only"])}),
        covey.Space(
            {"a": covey.Integer(0, 4), "b": covey.Integer(0, 4)},
            where=[covey.Linear({"a": 1, "b": 1}, lower=3.5, upper=4.5)],
        ),
    ],
)
def test_nothing_to_move_has_a_page(space):
    study = covey.Study(space, seed=0)
    study.tell(study.ask(1), [1.0])
    assert "No parameter can be moved on its own here." in page(card(study))


def test_everything_cancelled_has_a_page(line):
    line.cancel(line.ask(2))
    text = page(card(line))
    Reader(text)
    assert "2 trials, none told yet." in text


def test_wide_and_tall_tables_are_cut():
    space = covey.Space({f"x{i}": covey.Real(0.0, 1.0) for i in range(30)})
    study = covey.Study(space, seed=0)
    batch = study.ask(400)
    study.fail(batch[:398])
    text = page(card(study))
    assert "100 of 400 points" in text
    for i in (0, 97, 398, 399):  # the two that are awaited are among them
        assert f'<th scope="row">{i}</th>' in text
    assert '<th scope="row">98</th>' not in text
    assert "The first 16 of 30 parameters" in text
    assert len(text.encode()) < 300_000


def test_the_page_is_written(card_of, page_of, tmp_path):
    path = write_page(card_of("rising"), tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == page_of("rising")  # the same card, the same bytes
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    (tmp_path / "other").write_text("")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_the_page_is_whole_or_not_there(line, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("the old one")

    def refuse(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(ReportError, match=r"cannot write the report to .*No space left"):
        write_page(card(line), path)
    assert path.read_text() == "the old one"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_wrong_places_are_named(line, tmp_path):
    with pytest.raises(
        ReportError, match=r"is a folder; name a file in it, such as .*report\.html"
    ):
        page_path(tmp_path)
    with pytest.raises(ReportError, match="there is no folder"):
        page_path(tmp_path / "no" / "report.html")
    with pytest.raises(ReportError, match="File name too long"):
        write_page(card(line), tmp_path / ("x" * 300))
    assert page_path(str(tmp_path / "a.html")) == tmp_path / "a.html"


def test_without_jinja2_it_says_how_to_get_it(line, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        MissingExtraError, match=r"this needs jinja2: pip install 'covey\[report\]'"
    ):
        page(card(line))


def test_a_card_needs_neither_jinja2_nor_matplotlib(rising, monkeypatch):
    for name in ("jinja2", "matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    assert dataclasses.is_dataclass(card(rising))
