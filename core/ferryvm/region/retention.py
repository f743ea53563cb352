# SPDX-License-Identifier: Apache-2.0
"""Items whose objects nothing refers to once they have ended.

An object lives on where a reference to it is stored into an older one or a static, thrown, or
handed to the host. Where no item of a launch can do any of that, all that they have made is garbage
when all have ended.
"""

from __future__ import annotations

from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.declared_type import StructType
from ferryvm.isa.effect import Effect, effects
from ferryvm.isa.struct import field_of
from ferryvm.isa.type import Reference
from ferryvm.region.region import Region
from ferryvm.verify import Verified

_LEAVING = {Effect.CALLS_HOST, Effect.THROWS, Effect.CONTINUES_LAUNCHES}


def retains_objects(region: Region) -> bool:
    """True if a reference to an object that the functions called in a region make may be found
    after they have returned."""
    verified = region.verified
    opcodes, immediates = verified.program.code.opcodes, verified.program.code.immediates
    used = {
        (opcodes[pc], immediates[pc]) for number in region.callees for pc in region.pcs_of(number)
    }
    return any(_retains(verified, opcode, immediate) for opcode, immediate in used)


def _retains(verified: Verified, opcode: int, immediate: int) -> bool:
    row = INSTRUCTIONS[opcode]
    if not _LEAVING.isdisjoint(effects(row)):
        return True
    if row.mnemonic == "static.set":
        return isinstance(verified.program.statics[immediate].type, Reference)
    if row.mnemonic == "struct.set":
        number, field = field_of(immediate)
        declared = verified.types.declared(number)
        if not isinstance(declared, StructType):
            return True
        return isinstance(declared.fields[field].type, Reference)
    return row.mnemonic in ("array.set_ref", "array.fill_ref", "array.copy_ref", "call_indirect")
