"""Reports: a picture of a run (extra: covey[plot]), and its report card (extra: covey[report])."""

from covey.report.batches import Commands, python_commands
from covey.report.card import Card, card
from covey.report.page import page, page_path, write_page
from covey.report.picture import draw_front, draw_run, picture_path

__all__ = [
    "Card",
    "Commands",
    "card",
    "draw_front",
    "draw_run",
    "page",
    "page_path",
    "picture_path",
    "python_commands",
    "write_page",
]
