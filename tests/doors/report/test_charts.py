import re
import sys
import xml.etree.ElementTree as ET

import pytest

from covey.errors import MissingExtraError
from covey.report.card import Dot
from covey.report.charts import chart, inline, plot_agreement, plot_slice, plot_way
from covey.report.predictions import Forecast, Pair
from covey.report.slices import Slice

AROUND = Forecast(1.0, 0.5, (0.7, 1.3), (0.2, 1.8))


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter("text")]


def test_every_trial_is_a_dot(card_of):
    dots = card_of("rising").way
    svg = chart("way", plot_way, dots)
    assert texts(svg)[:6] == ["1", "2", "add", "enq", "3", "4"]
    told = sum(dot.value is not None for dot in dots)
    waiting = sum(dot.status in ("pending", "failed") for dot in dots)
    labels = {"told", "enqueued, told", "added", "pending, no value", "failed, no value"}
    assert labels | {"best so far"} <= set(texts(svg))
    marks = re.findall(r'<use [^>]*style="[^"]*var\(--(?:blue|green|purple|red)\)', svg)
    assert len(marks) == told + waiting + 5  # five in the key; ticks are of another colour


def test_the_best_line_goes_the_right_way(card_of):
    """In SVG y grows downward: the line of a search for the largest value never goes down."""
    for name, sign in (("rising", -1.0), ("falling", 1.0)):
        svg = chart("way", plot_way, card_of(name).way)
        (line,) = re.findall(r'<path d="([^"]*)"[^>]*stroke: var\(--red\); stroke-width: 1.8', svg)[
            :1
        ]
        heights = [sign * float(y) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", line)]
        assert heights == sorted(heights)
        assert heights[0] < heights[-1]


@pytest.mark.parametrize("value", [2.0, 0.0, -1e100, 1e-300])
def test_one_value_is_enough(value):
    svg = chart("way", plot_way, [Dot(0, 0, 1, "asked", "told", value, value)])
    assert "value" in texts(svg)


def test_no_value_no_scale():
    svg = chart("way", plot_way, [Dot(0, 0, 1, "asked", "failed", None, None)])
    assert "value" not in texts(svg)
    assert "failed, no value" in texts(svg)


def test_many_batches_share_ten_ticks():
    dots = [Dot(i, i, i + 1, "asked", "told", float(i), float(i)) for i in range(500)]
    shown = [text for text in texts(chart("way", plot_way, dots)) if text.isdigit()]
    assert shown[:3] == ["1", "51", "101"]


def test_predicted_against_measured():
    pairs = [Pair(0, 1, AROUND, 1.2, 0.4), Pair(1, 2, AROUND, 3.0, 4.0)]
    assert {"batch 2", "earlier batches", "as expected"} <= set(
        texts(chart("a", plot_agreement, pairs))
    )
    assert "earlier batches" not in texts(chart("a", plot_agreement, pairs[1:]))


@pytest.mark.parametrize(
    ("at", "log"), [((0.0, 0.5, 1.0), False), ((1e-5, 1e-3, 0.1), True), ((2.0, 2.5, 3.0), True)]
)
def test_a_slice_of_numbers(at, log):
    one = Slice("x", True, log, at, (AROUND,) * 3, at[1], 0.0, 0)
    ticks = [float(text) for text in texts(chart("s", plot_slice, one)) if text != "value"]
    assert sum(at[0] <= tick <= at[-1] for tick in ticks) >= 2


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        (("adam", "sgd"), ["adam", "sgd"]),
        (("Ж", "<b>"), ["Ж", "<b>"]),
        (("漢", "a"), ["1", "2"]),
        (("a\u202eb", "a"), ["1", "2"]),
        (("$x$", "b"), ["$x$", "b"]),
        (("", "b"), ["1", "2"]),
        (("far too long for an axis", "a"), ["1", "2"]),
        (tuple("option " + c for c in "abcdefgh"), ["option " + c for c in "abcdefgh"]),
    ],
)
def test_a_slice_of_options(options, labels):
    one = Slice("c", False, False, options, (AROUND,) * len(options), options[0], 0.0, 0)
    assert texts(chart("s", plot_slice, one))[: len(labels)] == labels


def test_a_best_value_that_is_not_drawn_has_no_mark():
    """Rounding may push the best point over a constraint, and then it is left out."""
    at = (0.0, 1.0)
    here, away = (Slice("x", True, False, at, (AROUND,) * 2, x, 0.0, 0) for x in (1.0, 0.5))
    assert "var(--red)" in chart("s", plot_slice, here)
    assert "var(--red)" not in chart("s", plot_slice, away)


def test_nothing_leaks_into_matplotlib():
    from matplotlib import rcParams

    before = dict(rcParams)
    chart("way", plot_way, [Dot(0, 0, 1, "asked", "told", 1.0, 1.0)])
    assert dict(rcParams) == before


def test_without_matplotlib_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'covey\[report\]'"):
        chart("way", plot_way, [])


# SVG inside the page


RAW = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "x" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg" width="9pt">
 <defs><style type="text/css">*{stroke-linejoin: round}</style><path id="m1" d="M 1.23456 2
"/></defs>
 <g id="axes_1" clip-path="url(#p1)">
  <use xlink:href="#m1" x="3.14159" style="fill: #0072b2; stroke: #0072b2"/>
  <text style="font-size: 9px; font-family: 'DejaVu Sans', Arial; text-anchor: end"
   transform="rotate(-0 3 4)">3.14159 id="m1" #0072b2 &lt;b&gt;</text>
 </g>
 <defs><clipPath id="p1"><rect x="1"/></clipPath></defs>
</svg>
"""


def test_what_a_page_needs_is_kept_and_the_rest_is_gone():
    out = inline(RAW, "one", {"blue": "#0072b2"})
    assert out.startswith('<svg role="img" aria-labelledby="one-words" width="9pt">')
    assert "http" not in out
    assert "<style" not in out
    assert "axes_1" not in out
    assert 'id="one-m1"' in out
    assert 'href="#one-m1"' in out
    assert 'clip-path="url(#one-p1)"' in out
    assert 'x="3.1"' in out
    assert "fill: var(--blue); stroke: var(--blue)" in out
    assert "font-family" not in out
    assert "rotate" not in out


def test_text_is_left_alone():
    assert '>3.14159 id="m1" #0072b2 &lt;b&gt;<' in inline(RAW, "one", {"blue": "#0072b2"})
