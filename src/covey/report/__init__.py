"""Pictures of a study (extra: covey[plot])."""

from covey.report.picture import draw_run, picture_path

__all__ = ["draw_run", "picture_path"]
