# SPDX-License-Identifier: Apache-2.0
"""`ferry repl`: an interactive session in a language.

Each input is compiled to a program of its own, which inherits the variables and the heap of the
input before it. A failing input changes nothing except what it did before it failed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferryvm.cli import termination
from ferryvm.cli.argument import ProgramCommand
from ferryvm.cli.engine import add_hosts
from ferryvm.cli.limit import limited
from ferryvm.cli.option import hosts_option
from ferryvm.cli.output import ProgramOutput
from ferryvm.cli.run_failure import host_failure
from ferryvm.engine import Engine, Execution, ProgramInterrupted
from ferryvm.engine.runnable import MIXED
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.machine.memory import Limits
from ferryvm.registry import Registry

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_HELP = """\
Type code; an input goes on over several lines until it is whole (in Skiff: parentheses close).
  :help            this text
  :backend         the backend that runs, and those there are; "mixed" is the default policy
  :backend NAME    run on another backend from now on; variables keep their values
  :quit            leave (or Ctrl-D)
Ctrl-C stops a running input, or drops the one being typed."""


class Repl:
    """An interactive session, independent of the terminal."""

    def __init__(
        self,
        backend: str | None,
        write: Callable[[str], object],
        complain: Callable[[str], object],
        language: str = "skiff",
        hosts: tuple[str, ...] = (),
        arguments: tuple[str, ...] = (),
        limits: Limits | None = None,
    ) -> None:
        """`write` receives values and help, `complain` error messages; `hosts`: as `--hosts` names
        them. Raises HostError, and FerryError for a language that has no sessions."""
        from ferryvm.language import installed

        self.session = installed().named(language).session()
        self.output = ProgramOutput()
        registry = Registry()
        add_hosts(registry, hosts)
        self.engine = Engine(
            backend, limits=limits, output=self.output, arguments=arguments, registry=registry
        )
        self.write, self.complain = write, complain
        self.failures = 0
        self.execution: Execution | None = None

    def is_complete(self, text: str) -> bool:
        """True if an input is complete."""
        return text.lstrip().startswith(":") or self.session.is_complete(text)

    def enter(self, text: str) -> bool:
        """Evaluate one input; False if it requests the end."""
        stripped = text.strip()
        try:
            if stripped.startswith(":"):
                return self._command(stripped[1:].split())
            if stripped:
                self._run(text)
        except (FerryError, ProgramInterrupted) as error:
            termination.forget()
            self.failures += 1
            self.complain(str(error))
        except Exception as error:
            failure = (
                None if self.execution is None else host_failure(self.execution.machine, error)
            )
            if failure is None:
                raise
            self.failures += 1
            self.complain(failure.message)
        return True

    def _run(self, text: str) -> None:
        program = self.session.compile(text)
        self.execution = self.engine.start(program, after=self.execution)
        self.output.collect_for(self.execution)
        try:
            self.execution.run()
        finally:
            self.output.flush()
        shown = self.execution.machine.result_text()
        if shown is not None:
            self.write(f"=> {shown}")

    def _command(self, words: list[str]) -> bool:
        match words:
            case ["quit"]:
                return False
            case ["help"]:
                self.write(_HELP)
            case ["backend"]:
                known = ", ".join((*self.engine.registry.names, MIXED))
                self.write(f"{self.engine.backend.name} (of {known})")
            case ["backend", name]:
                chosen = None if name == MIXED else name
                self.engine.backend = Engine(chosen, registry=self.engine.registry).backend
            case _:
                name = words[0] if words else ""
                raise UnknownNameError("command", f":{name}", (":help", ":backend", ":quit"))
        return True


@click.command(cls=ProgramCommand)
@click.option("--backend", metavar="NAME", help="One backend instead of the default policy.")
@click.option(
    "--language",
    default="skiff",
    show_default=True,
    metavar="NAME",
    help="Language of the inputs; see `ferry languages`.",
)
@hosts_option
@limited
def repl(
    backend: str | None,
    language: str,
    hosts: tuple[str, ...],
    limits: Limits | None,
    arguments: tuple[str, ...],
) -> int:
    """Evaluate inputs in Skiff, or another language, interactively.

    Inputs may also come through a pipe; the exit code is then 2 if one of them failed.
    ARGUMENTS, after `--`, are the arguments of each input.
    """
    is_typed = sys.stdin is not None and sys.stdin.isatty()
    complain = functools.partial(click.echo, err=not is_typed)
    session = Repl(backend, click.echo, complain, language, hosts, arguments, limits)
    for text in _typed(session, language) if is_typed else _piped(session):
        if not session.enter(text):
            break
    return 2 if session.failures and not is_typed else 0


def _piped(session: Repl) -> Iterator[str]:
    """Inputs from a file or pipe. Raises FerryError for a line that is not UTF-8."""
    pending = ""
    for number, line in enumerate(sys.stdin.buffer if sys.stdin else (), 1):
        try:
            pending += line.decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            message = f"standard input: line {number} is not UTF-8 text (byte {error.start})"
            raise FerryError(message) from None
        if session.is_complete(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending  # incomplete: compiling it reports the missing part


def _typed(session: Repl, language: str) -> Iterator[str]:
    """Inputs from a terminal, with history and editing over several lines."""
    prompt = _prompt(session)
    shown = language.capitalize()
    click.echo(f"ferryvm, {shown}. :help for help, Ctrl-D to leave.")
    while True:
        try:
            yield prompt.prompt("> ")
        except KeyboardInterrupt:
            if termination.ending_signal():
                raise
            termination.forget()
            continue
        except EOFError:
            return


def _prompt(session: Repl) -> PromptSession[str]:
    import platformdirs
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    bindings = KeyBindings()

    @bindings.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if session.is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    folder = Path(platformdirs.user_state_dir("ferryvm"))
    history: History
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "history").touch()
        history = FileHistory(str(folder / "history"))
    except OSError as error:
        click.echo(f"ferry: no history: {folder}: {error.strerror}", err=True)
        history = InMemoryHistory()
    return PromptSession(
        history=history,
        multiline=True,
        key_bindings=bindings,
        prompt_continuation=lambda width, _line, _wrap: "." * (width - 1) + " ",
    )
