# SPDX-License-Identifier: Apache-2.0
"""Files in TOML that people write: read against declared keys, every fault at once.

    path ── text ── document ── key models (types, bounds, names) ── rules of its kind ──> value
     │       │         │                │                              │ warnings
     └───────┴─ one fault ends it       └─ all faults of these are told at once

A fault is one line: file, line, column, key, what was found, what is allowed, and the nearest name.
What a kind of file means is said by whoever reads it; nothing here knows of one. The key models
are pydantic's, so only `table`, `allowed` and what uses them load it.
"""
