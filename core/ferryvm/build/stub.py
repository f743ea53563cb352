# SPDX-License-Identifier: Apache-2.0
"""The stub of the instructions' methods, for type checkers and editors.

python -m ferryvm.build.stub > core/ferryvm/build/instruction.pyi
"""

from __future__ import annotations

import inspect

from ferryvm.build.body import method_name
from ferryvm.build.method import documentation, made
from ferryvm.isa import INSTRUCTIONS

_HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
"""Written by `python -m ferryvm.build.stub`."""

from ferryvm.build.body import Body
from ferryvm.build.object_type import Array, Field, OperandType, Struct
from ferryvm.build.symbol import Host, Label, Local, Static, Tag
from ferryvm.program import Signature

class Instructions(Body):
    """Code that grows by instructions."""
'''


def stub() -> str:
    """The text of the stub."""
    lines = [_HEAD]
    for row in INSTRUCTIONS:
        parameters = list(inspect.signature(made(row)).parameters.values())[1:]
        shown = ", ".join(["self", *(str(parameter).replace("'", "") for parameter in parameters)])
        text = documentation(row).replace("\n", "\n        ").replace("        \n", "\n")
        lines.append(f'    def {method_name(row)}({shown}) -> None:\n        """{text}"""\n')
    return "\n".join(lines)


if __name__ == "__main__":
    print(stub(), end="")
