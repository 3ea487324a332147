"""Plates: a layout of wells, which points stand where, what a reader measured, and pick lists."""

from covey.plates.layout import Control, Grid, Layout
from covey.plates.wells import Plate, Well

__all__ = ["Control", "Grid", "Layout", "Plate", "Well"]
