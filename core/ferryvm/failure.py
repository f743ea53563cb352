# SPDX-License-Identifier: Apache-2.0
"""What code that is not ours raised or returned, in words for a message of one line."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_OWN = f"{Path(__file__).parent}{os.sep}"
"""The folder of this package: what its files' names begin with."""

_IMPORTING = "<frozen importlib"
"""What the names of the import system's own files begin with."""


def described(error: BaseException) -> str:
    """Type, message and place of an exception: `ValueError: text (mine.py:12 in enter)`.

    The place is the innermost frame outside this package, which is what its author can change;
    where there is none, the innermost one.
    """
    text = one_line(str(error))
    place, is_own = "", True
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        in_own = code.co_filename.startswith((_OWN, _IMPORTING))
        if is_own or not in_own:
            place = f" ({Path(code.co_filename).name}:{step.tb_lineno} in {code.co_name})"
            is_own = in_own
        step = step.tb_next
    name = type(error).__name__
    return f"{name}: {text}{place}" if text else f"{name}{place}"


def one_line(text: str) -> str:
    """The text without line breaks: messages are of one line, whoever wrote a part of one."""
    return " ".join(text.split())


def is_ctrl_c(error: BaseException) -> bool:
    """Whether it may come from the keyboard: another thread than the main one gets none."""
    is_main = threading.current_thread() is threading.main_thread()
    return isinstance(error, KeyboardInterrupt) and is_main


def kind_of(value: object) -> str:
    """What a value is, with its article: `a str`, `an int`, `None`, `the class Path`."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIO' else 'a'} {name}"
