# SPDX-License-Identifier: Apache-2.0
"""Files in TOML that people write: read against declared keys, every fault at once.

    path ── text ── document ── key models (types, bounds, names) ── rules of its kind ──> value
     │       │         │                │                              │ warnings
     └───────┴─ one fault ends it       └─ all faults of these are reported at once

A fault is one line: file, line, column, key, what was found, what is allowed, and the nearest name.
The package does not depend on any kind of file; its users define the meaning. The key models are
pydantic's, so only `table`, `allowed` and their users load it.
"""
