"""Which tests of a contract fail, as pytest would run them."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from pathlib import Path


def failed(contract: type, folder: Path, only: Collection[str] = ()) -> set[str]:
    """Names of the tests that do not pass; of those named, or of all."""
    found = set()
    for name in only or [name for name in dir(contract) if name.startswith("test_")]:
        one = contract()
        test = getattr(one, name)
        given = {}
        if "tmp_path" in inspect.signature(test).parameters:
            given["tmp_path"] = folder / name
            given["tmp_path"].mkdir()
        getattr(one, "setup_method", lambda: None)()
        try:
            test(**given)
        except Exception:
            found.add(name)
        finally:
            getattr(one, "teardown_method", lambda: None)()
    return found
