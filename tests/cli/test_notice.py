# SPDX-License-Identifier: Apache-2.0
"""Notices are lines in the log, which is loaded with the first of them."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from ferryvm.notice import Log

_FIRST = """
import sys
from ferryvm import notice
notice.deliver(lambda line: print("told:", line))
log = notice.Log("ferryvm.cache")
print("logging" in sys.modules)
log.info("%d of %d", 1, 2)
log.warning("two")
"""

_OTHERS = """
from ferryvm import notice
notice.deliver(lambda line: print("told:", line))
notice.load()  # as before a plugin is loaded
import logging
logging.getLogger("ferryvm.plugin_of_mine").info("three")
"""


@pytest.mark.parametrize(
    ("code", "output"),
    [
        (_FIRST, "False\ntold: 1 of 2\ntold: two\n"),
        (_OTHERS, "told: three\n"),
        (f"import logging\n{_OTHERS.replace('notice.load()', '')}", "told: three\n"),
    ],
    ids=["first", "of-others", "logging-was-there"],
)
def test_each_line_is_told_once(code: str, output: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == output


def test_records_have_the_level_and_the_place_of_the_caller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "ferryvm"):
        Log("ferryvm.x").info("one")
        Log("ferryvm.y").warning("two")
    levels = [(each.name, each.levelno, each.filename) for each in caplog.records]
    file = "test_notice.py"
    assert levels == [("ferryvm.x", logging.INFO, file), ("ferryvm.y", logging.WARNING, file)]
