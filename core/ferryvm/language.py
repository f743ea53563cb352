# SPDX-License-Identifier: Apache-2.0
"""The registry of languages, and the compilation of texts to programs.

    file ── name, or suffix ──> Language ── front end, loaded once ──> Listing ──> Program
                 │ no built-in language matches: load plugins

Built-in languages come first: no plugin can take their names, and their programs load no plugins.
A fault of a plugin's front end is reported in one line that names the plugin.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path

from ferryvm import in_tree, pattern
from ferryvm.errors import FerryError, UnknownNameError, suggestion
from ferryvm.failure import kind_of, one_line, shown
from ferryvm.float_environment import callers
from ferryvm.foreign import ForeignError, contained
from ferryvm.front_end import FrontEnd, Session
from ferryvm.garbage import collector_suspended
from ferryvm.hooks import LanguageEntry
from ferryvm.input_file import read_text
from ferryvm.listing import Listing
from ferryvm.listing.encode import encode
from ferryvm.plugin import OWN, Plugin, PluginFault, Plugins
from ferryvm.program import Program
from ferryvm.verify import VerifyError, verify

IMAGE = ".fvm"
"""Suffix of program images."""

_HOOK = "ferryvm_languages"
_NAME = pattern.lazy(r"[a-z][a-z0-9-]*")
_SUFFIX = pattern.lazy(r"\.[A-Za-z0-9_+-]+")


class Language:
    """A registered language; its front end is loaded for its first program."""

    def __init__(self, entry: LanguageEntry, plugin: Plugin, plugins: Plugins) -> None:
        self.name, self.suffixes = entry.name, entry.suffixes
        self.summary = one_line(entry.summary)
        self.plugin = plugin
        self._entry, self._plugins = entry, plugins
        self._who = f"language {self.name!r} of {plugin}"

    def program(self, text: str, file: str, optimize: bool | None = None) -> Program:
        """The program of a text; `optimize`: run the peephole (None: the language's default).

        Raises SourceError with all errors of the text, FerryError for a fault of the plugin.
        """
        front_end = self._front_end
        with self._running(f"compiling {file}"), collector_suspended():
            return self._encoded(front_end.parse(text, file), front_end, optimize)

    def session(self) -> LanguageSession:
        """A new session. Raises FerryError if the language has none."""
        begin = self._front_end.session
        if begin is None:
            raise FerryError(f"{self._who} compiles whole programs: `ferry repl` cannot take it")
        with self._running("beginning a session"):
            return LanguageSession(self, begin())

    @functools.cached_property
    def _front_end(self) -> FrontEnd:
        try:
            with self._plugins.loading(self.plugin, f"loading {self._who}"):
                found: object = self._entry.load()
        except ForeignError as error:
            raise FerryError(f"{self._who} does not load: {error}{self.plugin.remedy}") from error
        if not isinstance(found, FrontEnd):
            what = f"loads as {kind_of(found)}, not a FrontEnd"
            raise FerryError(f"{self._who} {what}{self.plugin.remedy}")
        for field in ("parse", "session"):
            value = getattr(found, field)
            if not callable(value) and (value is not None or field == "parse"):
                what = f"has {kind_of(value)} as its {field}, no function"
                raise FerryError(f"{self._who} {what}{self.plugin.remedy}")
        return found

    @contextlib.contextmanager
    def _running(self, doing: str) -> Iterator[None]:
        """Run the front end; a fault of a plugin becomes a FerryError that names it."""
        if self.plugin.is_own:
            yield
            return
        try:
            with contained(f"{doing} by {self._who}", FerryError), callers():
                yield
        except VerifyError as error:
            what = f"{self._who} made code that cannot run: {error}{self.plugin.remedy}"
            raise FerryError(what) from error
        except ForeignError as error:
            raise FerryError(f"{self._who} failed: {error}{self.plugin.remedy}") from error

    def _encoded(self, listing: object, front_end: FrontEnd, optimize: bool | None) -> Program:
        if not isinstance(listing, Listing):
            what = f"returned {kind_of(listing)}, not a Listing"
            raise FerryError(f"{self._who} {what}{self.plugin.remedy}")
        program = encode(listing, front_end.optimize if optimize is None else optimize)
        if not self.plugin.is_own:
            verify(program)  # the message names the plugin
        return program


class LanguageSession:
    """Inputs that are compiled one after another, each to a program."""

    def __init__(self, language: Language, session: Session) -> None:
        self._language, self._session = language, session

    def compile(self, text: str) -> Program:
        """The program of the next input. Raises as `Language.program`."""
        language = self._language
        with language._running("compiling an input"):
            return language._encoded(self._session.listing(text), language._front_end, None)

    def is_complete(self, text: str) -> bool:
        """True if an input is complete; false if it continues on another line."""
        with self._language._running("looking at an input"):
            return bool(self._session.is_complete(text))


_OTHER_FILES = {
    ".ferry": "is a saved state, no program; `ferry resume` goes on with it",
    ".disagreement": "is a saved disagreement, no program; `ferry replay` shows it again",
}
"""The files of other commands, by suffix, as users may take them for programs."""


class Languages:
    """The registered languages, by name and by suffix."""

    def __init__(self, plugins: Plugins | None = None) -> None:
        """`plugins`: plugins with further languages; by default the installed ones."""
        self._by_name: dict[str, Language] = {}
        self._by_suffix: dict[str, Language] = {}
        own = Plugins(discover=False)
        own.register(in_tree, Plugin("in_tree_languages", OWN))
        self._collect(own)
        self._others = plugins
        self._is_complete = False

    def named(self, name: str) -> Language:
        """The language of a name. Raises UnknownNameError."""
        found = self._by_name.get(name) or self._all().get(name)
        if found is None:
            raise UnknownNameError("language", name, self._by_name)
        return found

    def of(self, path: Path) -> Language:
        """The language of a file, by its suffix. Raises FerryError if no language has it."""
        suffix = path.suffix
        if suffix not in self._by_suffix:
            self._all()
        found = self._by_suffix.get(suffix)
        if found is None and suffix in _OTHER_FILES:
            raise FerryError(f"{path}: {_OTHER_FILES[suffix]}")
        if found is None:
            known = (*self._by_suffix, IMAGE)
            near = suggestion(suffix, known) if suffix else ""
            raise FerryError(
                f"{path}: no language has the suffix {suffix!r}{near} "
                f"(known: {', '.join(sorted(known))}); --language says what a file is in, and "
                f"plugins bring languages{self._missing()}"
            )
        return found

    def is_program(self, path: Path, language: str | None = None) -> bool:
        """True if a file is a program by its suffix: an image, or a text in a language."""
        if language is not None or path.suffix == IMAGE or path.suffix in self._by_suffix:
            return True
        self._all()
        return path.suffix in self._by_suffix

    def read(
        self, path: Path, optimize: bool | None = None, language: str | None = None
    ) -> Program:
        """The program in a file, as `ferryvm.read`."""
        if language is None and path.suffix == IMAGE:
            from ferryvm import image

            return image.load(path)
        found = self.of(path) if language is None else self.named(language)
        return found.program(read_text(path), str(path), optimize)

    @property
    def all(self) -> tuple[Language, ...]:
        """All languages; `faults` then has the faults of plugins."""
        return tuple(self._all().values())

    @property
    def faults(self) -> list[PluginFault]:
        """Faults of plugins so far."""
        return self._others.faults if self._others is not None else []

    def _all(self) -> dict[str, Language]:
        if not self._is_complete:
            self._is_complete = True
            if self._others is None:
                self._others = Plugins()
            self._collect(self._others)
        return self._by_name

    def _missing(self) -> str:
        missing = "; ".join(fault.message for fault in self.faults)
        return f"; not there to ask: {missing}" if missing else ""

    def _collect(self, plugins: Plugins) -> None:
        for plugin, entry in plugins.entries(_HOOK, LanguageEntry, _fault):
            if entry.name in self._by_name:
                owner = self._by_name[entry.name].plugin
                what = f"language name {entry.name!r} of {plugin} is taken by {owner}"
                plugins.log(f"{what}{plugin.remedy}")
                continue
            language = self._by_name[entry.name] = Language(entry, plugin, plugins)
            for suffix in entry.suffixes:
                taken = self._by_suffix.setdefault(suffix, language)
                if taken is not language:
                    what = f"suffix {suffix!r} of language {entry.name!r} of {plugin}"
                    by = f"language {taken.name!r} of {taken.plugin}"
                    plugins.log(
                        f"{what} is taken by {by}; --language {entry.name} says what is meant"
                    )


def _fault(entry: LanguageEntry) -> str | None:
    """The fault of an entry; None if it has none."""
    if type(entry.name) is not str or not _NAME.fullmatch(entry.name):
        allowed = "small letters, digits and - are allowed, a letter first"
        return f"returned a language of the name {shown(entry.name)}; {allowed}"
    who = f"language {entry.name!r}"
    if not callable(entry.load):
        return f"returned {kind_of(entry.load)} to load {who} by, no function"
    if not isinstance(entry.summary, str):
        return f"returned {kind_of(entry.summary)} as the summary of {who}, not a text"
    if not isinstance(entry.suffixes, tuple):
        return f"returned {kind_of(entry.suffixes)} as the suffixes of {who}, not a tuple of texts"
    for suffix in entry.suffixes:
        if type(suffix) is not str or not _SUFFIX.fullmatch(suffix) or suffix == IMAGE:
            allowed = f"a dot and then letters, digits, _ + - are allowed, not {IMAGE}"
            return f"returned the suffix {shown(suffix)} of {who}; {allowed}"
    return None


@functools.cache
def installed() -> Languages:
    """The languages of this installation, found once in a process."""
    return Languages()
