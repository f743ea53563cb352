# SPDX-License-Identifier: Apache-2.0
"""The instruction set: types, the table, the emitter protocol that meanings are written in.

Importing this package declares every instruction; `INSTRUCTIONS` is complete from then on.
"""

# The order of these imports is the order of opcodes.
from ferryvm.isa import (  # isort: skip
    variable,  # noqa: F401
    numeric,  # noqa: F401
    mathematical,  # noqa: F401
    conversion,  # noqa: F401
    heap,  # noqa: F401
    control,  # noqa: F401
    cast,  # noqa: F401
    struct,  # noqa: F401
    array,  # noqa: F401
    launch,  # noqa: F401
    atomic,  # noqa: F401
    checked,  # noqa: F401
)
from ferryvm.isa.table import BY_MNEMONIC, INSTRUCTIONS, Flow, Immediate, Instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F32, F64, I32, I64, Type

__all__ = [
    "BY_MNEMONIC",
    "F32",
    "F64",
    "I32",
    "I64",
    "INSTRUCTIONS",
    "Flow",
    "Immediate",
    "Instruction",
    "Trap",
    "Type",
]
