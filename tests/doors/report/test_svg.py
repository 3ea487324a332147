from covey.report.charts import inline

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
