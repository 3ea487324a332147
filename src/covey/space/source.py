"""The file a table was read from: where it lies, and whether it is still the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from covey.space.lines import line_of


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was: its path, its bytes counted, the moment it was last written."""

    path: str
    size: int
    modified: int  # in nanoseconds

    @classmethod
    def of(cls, file: Path) -> Source:
        """The file as it is now; an OSError if it cannot be looked at."""
        stat = file.stat()
        return cls(str(file.absolute()), stat.st_size, stat.st_mtime_ns)

    @property
    def is_parquet(self) -> bool:
        """Whether its name says that it is a Parquet file; any other is taken for CSV."""
        return Path(self.path).suffix.lower() in (".parquet", ".pq")

    def where(self, row: int) -> str:
        """A row as one finds it in the file: the line of a CSV file, counted from 1."""
        if self.is_parquet:
            return f"row {row} (the first is row 0) of {self.path}"
        line = line_of(Path(self.path), row)
        return f"row {row} (the first is row 0)" if line is None else f"line {line} of {self.path}"
