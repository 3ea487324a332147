"""Svg: the text a plotting library wrote, made fit to stand inside a page."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TAG = re.compile(r"<[^<>]*>")
_DECIMALS = re.compile(r"(\d+\.\d)\d+")
_STYLE = re.compile(r"<style\b.*?</style>", re.DOTALL)
_FONT = re.compile(r"font-family: [^;\"]*;\s*")
_STILL = re.compile(r'\s*transform="rotate\(-?0 [^"]*\)"')
_ID = re.compile(r'\s*\bid="([^"]*)"')
_REFERENCE = re.compile(r'(?:xlink:href="#|url\(#)([^")]*)')


def inline(svg: str, name: str, colours: Mapping[str, str]) -> str:
    """The <svg> element alone, an image named by the element ``<name>-words``.

    What goes: the prolog, the sheet of styles (it would style the page), fonts, digits nobody can
    see. Ids that nothing refers to go, and the others get ``name`` in front, since a page may hold
    an id once. A colour of the map leaves as the CSS variable of its name.

    >>> svg = '<?xml?><svg width="9pt"><g id="a" style="fill: #010101"/></svg>'
    >>> inline(svg, "c", {"ink": "#010101"})
    '<svg role="img" aria-labelledby="c-words" width="9pt"><g style="fill: var(--ink)"/></svg>'
    """
    svg = _STYLE.sub("", svg[svg.index("<svg") :])
    used = set(_REFERENCE.findall(svg))
    svg = _TAG.sub(lambda tag: _tidy(tag[0], name, used, colours), svg)
    svg = re.sub(r">\s+<", "><", svg).strip()
    return svg.replace("<svg", f'<svg role="img" aria-labelledby="{name}-words"', 1)


def _tidy(tag: str, name: str, used: set[str], colours: Mapping[str, str]) -> str:
    """One tag; the text between tags, which may be the user's, is never touched."""
    tag = _FONT.sub("", _STILL.sub("", tag)).replace("\n", "")
    tag = _ID.sub(lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", tag)
    tag = tag.replace('xlink:href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    tag = tag.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    tag = tag.replace(' xmlns="http://www.w3.org/2000/svg"', "")
    for variable, colour in colours.items():
        tag = tag.replace(colour, f"var(--{variable})")
    return _DECIMALS.sub(r"\1", tag)
