# SPDX-License-Identifier: Apache-2.0
"""The process that builds programs, which isolates crashes and hangs of drivers.

Requests and answers are JSON; `ferryvm.child.serve` reads and writes them. Run as
`python -m ferryvm_backends.opencl.child`.
"""

from __future__ import annotations

import base64
import functools
import json
import shutil
import sys
import warnings
from typing import Any

import pyopencl as cl

from ferryvm.child import serve
from ferryvm.ir.c import ENTRY
from ferryvm.process import end_with_parent
from ferryvm_backends.opencl.device import Device, devices, same
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.kernel import Kernel


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request: `error`, or `binary` where one is wanted."""
    device = same(devices(), tuple(request["device"]))
    if device is None:
        return {"error": "the device is gone"}
    try:
        program = built(device, request["source"], request["options"], request["arguments"])
    except cl.Error as error:
        return {"error": str(error)}
    if not request["binary"]:
        return {}
    return {"binary": base64.b64encode(program.get_info(cl.program_info.BINARIES)[0]).decode()}


def built(device: Device, source: str, options: list[str], arguments: int | None = None) -> Any:
    """A program that has been built, and run once without doing anything: some drivers finish the
    code only then. `arguments`: of the items of a launch, if its work-items are that."""
    context = _context(device)
    # Our cache replaces pyopencl's.
    program = cl.Program(context, source).build(options, cache_dir=sys.argv[1])
    queue = cl.CommandQueue(context)
    if arguments is None:
        Kernel(context, program, ENTRY).run_dry(queue)
    else:
        ItemKernel(context, program, arguments).run_dry(queue)
    return program


@functools.cache
def _context(device: Device) -> cl.Context:
    """A device's context. It is retained: PoCL drops its library of built-in functions with the
    last context of a device, and reading it again takes twice as long as building a small
    kernel."""
    return cl.Context([device.handle])


def main() -> None:
    """Answer until there are no more requests; the arguments are a folder for drivers' files, which
    the parent removes, and the parent's number."""
    end_with_parent(int(sys.argv[2]), lambda: shutil.rmtree(sys.argv[1], ignore_errors=True))
    warnings.simplefilter("ignore", cl.CompilerWarning)  # a driver's remarks on good code
    serve(lambda request: json.dumps(answer(json.loads(request))).encode())


if __name__ == "__main__":
    main()
