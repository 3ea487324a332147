import inspect
import re

import numpy as np
import pytest

from covey import errors
from covey.errors import brief, is_whole

CLASSES = [
    c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == "covey.errors"
]


@pytest.mark.parametrize("error", CLASSES)
def test_every_error_is_ours_and_a_builtin(error):
    assert issubclass(error, errors.CoveyError)
    if error is not errors.CoveyError:
        assert any(base.__module__ == "builtins" for base in error.__mro__[1:-3])


def test_the_tree_in_the_docstring_is_complete():
    words = r"[├└]── (\w+)\b"
    drawn = set(re.findall(words, errors.__doc__))
    assert drawn == {c.__name__ for c in CLASSES} - {"CoveyError"}


def test_a_missing_extra_says_how_to_get_it():
    with pytest.raises(ImportError, match=r"pip install 'covey\[plot\]'"):
        raise errors.MissingExtraError("matplotlib", "plot")


def test_a_text_in_brief_keeps_its_beginning_and_its_end():
    assert brief("short\n text", 20) == "short text"
    cut = brief("the command ended: " + "noise " * 100 + "CUDA out of memory", 60)
    assert len(cut) == 60
    assert cut.startswith("the command ended")
    assert cut.endswith("CUDA out of memory")
    trace = "status 1: Traceback:\n" + "  File x\n    ^^^^^^^\n" * 9 + "RuntimeError: oops\n"
    assert brief(trace, 60) == "status 1: Traceback: … RuntimeError: oops"


def test_a_whole_number_is_pythons_or_numpys_and_no_boolean():
    assert all(is_whole(value, 0) for value in (0, 3, np.int8(2), np.uint64(7)))
    odd = (-1, True, np.True_, 1.0, np.float64(1.0), "1", None, np.array(1))
    assert not any(is_whole(value, 0) for value in odd)
