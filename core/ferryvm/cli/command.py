# SPDX-License-Identifier: Apache-2.0
"""The `ferry` command with its subcommands, and what becomes of errors."""

from __future__ import annotations

import logging
import os
import sys

import click

import ferryvm
from ferryvm.cli.backends import backends
from ferryvm.cli.bisect import bisect
from ferryvm.cli.conformance import conformance
from ferryvm.cli.diff import diff
from ferryvm.cli.doctor import doctor
from ferryvm.cli.explain import explain
from ferryvm.cli.fuzz import fuzz
from ferryvm.cli.policy import policy
from ferryvm.cli.program import assemble, compile_, disassemble, verify
from ferryvm.cli.reduce import reduce
from ferryvm.cli.repl import repl
from ferryvm.cli.replay import replay
from ferryvm.cli.run import Interrupted, Trapped, resume, run
from ferryvm.cli.show import isa
from ferryvm.errors import FerryError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ferryvm.__version__, prog_name="ferry")
def ferry() -> None:
    """Run programs on the engines of ferryvm, and move them between engines."""


for _command in (
    run,
    resume,
    explain,
    assemble,
    compile_,
    disassemble,
    verify,
    diff,
    conformance,
    fuzz,
    replay,
    bisect,
    reduce,
    repl,
    isa,
    backends,
    doctor,
    policy,
):
    ferry.add_command(_command)


class _StderrHandler(logging.Handler):
    """Notices of the library (a first build, a damaged cache entry) as lines on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"ferry: {record.getMessage()}", err=True)


def run_command() -> int:
    """Run the command that the process was started with; its exit code."""
    log = logging.getLogger("ferryvm")
    log.addHandler(_StderrHandler())
    log.setLevel(logging.INFO)
    try:
        code = ferry.main(prog_name="ferry", standalone_mode=False)
        if sys.stdout is not None:  # None where it was closed before we started
            sys.stdout.flush()
    except SystemExit:  # click ends so when whoever read our output has gone
        return 2
    except click.exceptions.Abort:
        return _fail("interrupted", 130)
    except Interrupted as error:
        return _fail(error.message, 130)
    except Trapped as error:
        return _fail(error.message, 1)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        return _fail(error.format_message(), 2)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except FerryError as error:
        return _fail(str(error), 2)
    except BrokenPipeError:
        # Whoever read our output has gone; closing it again at exit would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 2
    except OSError as error:  # files are checked where they are named: what is left is stdout
        return _fail(f"output cannot be written: {error.strerror}", 2)
    except MemoryError:
        return _fail("out of memory", 2)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    click.echo(f"ferry: {message}", err=True)
    return code
