# SPDX-License-Identifier: Apache-2.0
"""The document of the default policy: what `default.toml`, which explains it, reads as.

Reading that file takes longer than small programs run. A test compares both.
"""

from __future__ import annotations

from typing import Any, Final

DOCUMENT: Final[dict[str, Any]] = {
    "interpreter": "threaded",
    "profile": {
        "loop_threshold": 100_000,
        "function_threshold": 25_000,
        "scope_threshold": 1,
        "delay_ms": 5,
    },
    "rule": [
        {"name": "marked", "when": {"marked": True}, "backends": ["llvm"]},
        {
            "name": "hot, on one processor",
            "when": {"machine": {"cpus": 1}},
            "backends": [{"name": "llvm", "threshold": 2_000_000}],
        },
        {
            "name": "launches",
            "when": {"kind": "launch"},
            "backends": ["llvm", "opencl"],
            "place": "measured",
        },
        {"name": "hot", "backends": ["llvm"]},
    ],
}
