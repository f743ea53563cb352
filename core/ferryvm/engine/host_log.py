# SPDX-License-Identifier: Apache-2.0
"""The log of host calls for users: recorded in one run, replayed in others, saved in a file."""

from __future__ import annotations

from pathlib import Path

from ferryvm.engine.call_log import CallLog


class HostLog(CallLog):
    """Host calls of a run: recorded by `Engine.start(..., record=log)`, replayed by
    `replay=log`."""

    def save(self, path: str | Path) -> None:
        """Write the log to a file. Raises ImageError if it cannot be written."""
        from ferryvm.engine import host_log_file

        host_log_file.save(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> HostLog:
        """The log in a file. Raises ImageError if it is not a log, or damaged."""
        from ferryvm.engine import host_log_file

        log = HostLog()
        host_log_file.load(log, Path(path))
        return log

    def to_bytes(self) -> bytes:
        """The content of the log's file."""
        from ferryvm.engine import host_log_file

        return host_log_file.to_bytes(self)

    @staticmethod
    def from_bytes(content: bytes, name: str) -> HostLog:
        """The log in the content of a file called `name`. Raises ImageError."""
        from ferryvm.engine import host_log_file

        log = HostLog()
        host_log_file.read_into(log, content, name)
        return log
