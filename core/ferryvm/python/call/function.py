# SPDX-License-Identifier: Apache-2.0
"""Python functions on ferryvm's backends: `ferryvm.function`.

    call ── types of the arguments ──> version ── instance ──> result, or Python's own exception
                                          ▲         │
                          compiled at first use     └─> what 64 bits cannot hold: CPython takes over

A version is a program for the kinds of the arguments, and for the values of the free names.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from ferryvm.engine import TrapError
from ferryvm.engine.active_call import InUseError
from ferryvm.engine.compilation import Job, submit
from ferryvm.engine.marshal import CallError
from ferryvm.errors import FerryError
from ferryvm.policy import Policy
from ferryvm.policy.model import check_chosen
from ferryvm.python.call.continuation import resume
from ferryvm.python.call.default_policy import function_engine
from ferryvm.python.call.fast_call import built_in_method, method, result_of
from ferryvm.python.call.interruption import ended
from ferryvm.python.compiled.compiled_version import Version
from ferryvm.python.compiled.pause import MOST_FRAMES
from ferryvm.python.compiled.program import Unit
from ferryvm.python.definition.annotation import disagreement
from ferryvm.python.definition.defined_text import defined
from ferryvm.python.definition.dependency import Dependencies
from ferryvm.python.definition.free_name import NO_NAMES, FreeNames
from ferryvm.python.definition.given_function import GivenFunctions
from ferryvm.python.definition.raised import add_values, site_of, too_deep
from ferryvm.python.definition.refusal import Refusal, without_numbers
from ferryvm.python.fault import UnsupportedError
from ferryvm.python.value.kind import Constant, Kind
from ferryvm.python.value.list_argument import LargeItemError
from ferryvm.python.value.value_kind import MisfitError

if TYPE_CHECKING:
    from ferryvm.python.call.explanation import FunctionExplanation

P = ParamSpec("P")
R = TypeVar("R")


@dataclasses.dataclass
class Event:
    """A fact about the calls of a function, for `explain`."""

    what: str
    """The fact, without number and reason."""
    reason: str
    count: int = 0


class PythonFunction(Generic[P, R]):
    """A Python function that runs on ferryvm's backends; made by `ferryvm.function`."""

    def __init__(
        self,
        function: Callable[P, R],
        backend: str | None,
        policy: Policy | None,
        strict: bool,
    ) -> None:
        if not isinstance(function, types.FunctionType):
            shown = type(function).__name__
            advice = "; write it below the other decorator" if hasattr(function, "__func__") else ""
            raise TypeError(f"ferryvm.function takes a Python function, found a {shown}{advice}")
        functools.update_wrapper(self, function)
        self.__name__ = function.__name__
        self.__ferryvm_function__ = function
        self._strict = strict
        check_chosen(backend, policy)
        self._options = backend, policy
        self._engine = function_engine(backend, policy)
        self._read_signature()
        kinds = [each.kind for each in self._signature.parameters.values()]
        has_named = inspect.Parameter.KEYWORD_ONLY in kinds
        self._count = -1 if has_named else len(kinds)
        """The number of arguments of a call by position alone; -1 if there is none."""
        self._plain: dict[tuple[type, ...], Version] = {}
        """Versions by the types of arguments that determine their kinds."""
        self._direct: tuple[type, ...] | None = None
        """The types of arguments for which its class has a method of its own."""
        self._versions: dict[tuple[tuple[Kind, ...], Kind | None, tuple[str, ...]], Version] = {}
        self._free: dict[tuple[Kind, ...], FreeNames] = {}
        """Free names that are arguments, by the kinds of those of calls."""
        self._closed: set[tuple[Kind, ...]] = set()
        """Kinds of arguments for which free names remain constants."""
        self._events: dict[tuple[str, str], Event] = {}
        self.parameters = tuple(self._signature.parameters)
        """The names of the parameters."""
        self.maps: dict[Hashable, Any] = {}
        """Memoised by `ferryvm.python.map.mapping`."""
        self._has_warned = False
        self._refusals: dict[tuple[tuple[Kind, ...], Kind | None], Refusal] = {}
        self._given = GivenFunctions(self._forget)

    def _forget(self, given: Constant) -> None:
        """Drop the code for a function that was an argument."""
        for key in [*self._versions]:
            if given in key[0]:
                self._versions.pop(key, None)
        for refused in [*self._refusals]:
            if given in refused[0]:
                self._refusals.pop(refused, None)
        for kinds in (*self._free, *self._closed):
            if given in kinds:
                self._free.pop(kinds, None)
                self._closed.discard(kinds)

    def _read_signature(self) -> None:
        function = self.__ferryvm_function__
        self.__signature__ = self._signature = inspect.signature(function, follow_wrapped=False)
        self._defaults = Dependencies()
        self._defaults.add_function(function)

    def __repr__(self) -> str:
        return f"<ferryvm.function {self.__ferryvm_function__.__qualname__}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By name, as a function; else what it was made of."""
        found: Any = sys.modules.get(self.__module__)
        path = self.__ferryvm_function__.__qualname__
        for name in path.split("."):
            found = getattr(found, name, None)
        if found is self:
            return path
        return PythonFunction, (self.__ferryvm_function__, *self._options, self._strict)

    def __copy__(self) -> PythonFunction[P, R]:
        return self

    def __deepcopy__(self, _memo: object) -> PythonFunction[P, R]:
        return self

    def __get__(self, owner: object, kind: object = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The value of the function for these arguments. Raises its own exceptions, and
        UnsupportedError for what cannot be compiled."""
        version = self._plain.get(tuple(map(type, args)))
        if (
            version is None
            or kwargs
            or self.__ferryvm_function__.__code__ is not version.code
            or (version.has_names and not version.is_current())
        ):
            return self._call(args, kwargs)
        try:
            found = version.function(*args)
        except BaseException as error:  # noqa: BLE001  # a clause of the function may get it
            raised = error
        else:
            return found if version.read is None else version.read(found)  # type: ignore[no-any-return]  # the function's result
        return self._left_directly(version, raised, args)

    def _call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> R:
        """A call in any situation; as `__call__`."""
        values = args
        if kwargs or len(args) != self._count:
            values = self.bound(args, kwargs)
        try:
            version = self.version(values)
        except UnsupportedError as error:
            if self._strict:
                raise
            self._warn(error)
            return self.python(values, error.place_and_reason)
        given = (*values, *version.free.values(self.__ferryvm_function__))
        try:
            found: R = version.call(given)
        except LargeItemError:
            return self.python(values, "an item of a list does not fit into 64 bits")
        except MisfitError as misfit:
            raise self.refused(str(misfit)) from None
        except BaseException as error:  # noqa: BLE001  # a clause of the function may get it
            raised = error
        else:
            return found
        return self._left(version, raised, values)

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The argument of each parameter, with the present defaults. Raises TypeError."""
        if not self._defaults.are_current():
            self._read_signature()
        try:
            found = self._signature.bind(*args, **kwargs)
        except TypeError:
            self.__ferryvm_function__(*args, **kwargs)  # raises Python's own error
            raise
        found.apply_defaults()
        return tuple(found.arguments.values())

    def _left(self, version: Version, error: BaseException, values: Sequence[Any]) -> R:
        """The end of a call whose instance raised an error."""
        if isinstance(error, TrapError):
            return self._trapped(version, error, values)
        if not isinstance(error, FerryError):
            found: R = ended(version, error, lambda error: self._left(version, error, values))
            return found
        if any(map(_is_large, values)):
            return self.python(values, "an argument does not fit into 64 bits")
        if isinstance(error, CallError):  # arrays that overlap
            refused = self.refused(without_numbers(str(error)))
            if self._strict:
                raise refused
            self._warn(refused)
            return self.python(values, refused.place_and_reason)
        raise error.with_traceback(None)

    def version(self, values: Sequence[Any]) -> Version:
        """The version for arguments, which is compiled if there is none. Raises
        UnsupportedError."""
        kinds = []
        for name, value in zip(self._signature.parameters, values, strict=True):
            try:
                kinds.append(self._given.kind(value))
            except MisfitError as misfit:
                what = f"argument {name}: {misfit}"
                raise self.refused(what) from None
        version = self.of_kinds(tuple(kinds))
        found = tuple(map(type, values))
        is_simple = self._count >= 0 and not version.free.names
        is_new = self._plain.get(found) is not version
        if is_new and is_simple and all(each in _SIMPLE for each in found):
            self._plain[found] = version
            self._specialise(found, version)
        return version

    def _specialise(self, types: tuple[type, ...], version: Version) -> None:
        """Call a version directly from now on, where arguments are numbers of these types."""
        is_plain = types and version.flat is None and result_of(version) is not None
        if is_plain and (type(self) is PythonFunction or types == self._direct):
            left, call = PythonFunction._left_directly, PythonFunction.__call__
            python = self.__ferryvm_function__
            job = Job(functools.partial(self._call_natively, types, version))
            given = method(types, python, version, left, call, functools.partial(submit, job))
            if types == self._direct:  # a name has changed
                type(self).__call__ = given  # type: ignore[method-assign]  # of its own class
            else:
                own = type(PythonFunction.__name__, (PythonFunction,), {"__call__": given})
                self.__class__, self._direct = own, types

    def _call_natively(self, types: tuple[type, ...], version: Version) -> None:
        """Call a version by a built-in function from now on."""
        otherwise = functools.partial(PythonFunction.__call__, self)
        found, reason = built_in_method(types, version, self._left_directly, otherwise)
        if found is None:
            self._noted(f"calls of {self.__name__} enter by Python code", reason)
        elif self._plain.get(types) is version:  # no name has changed meanwhile
            type(self).__call__ = found  # type: ignore[method-assign]  # of its own class

    def _left_directly(self, version: Version, error: BaseException, values: tuple[Any, ...]) -> R:
        """The end of a call of `version.function` with the arguments as they are."""
        if isinstance(error, InUseError):
            return self._call(values, {})
        return self._left(version, error, values)

    def of_kinds(
        self,
        kinds: tuple[Kind, ...],
        target: Kind | None = None,
        function: types.FunctionType | None = None,
        *,
        is_closed: bool = False,
    ) -> Version:
        """The version for kinds of arguments, and the free names that are further ones. Raises
        UnsupportedError.

        `target`: the kind to which results are converted, after the version without it; `function`:
        the one that is called, of the same code and module; `is_closed`: no free name is an
        argument.
        """
        function = function or self.__ferryvm_function__
        free = NO_NAMES if is_closed else self._free.get(kinds, NO_NAMES)
        of_free = free.kinds(function)
        if of_free is None:
            free, of_free = NO_NAMES, ()
        version = self._versions.get(((*kinds, *of_free), target, free.names))
        if version is not None and version.is_current(function):
            return version
        opened = None
        if not is_closed and target is None and kinds not in self._closed:
            opened = self._opened(kinds, free, version, function)
        if version is not None:
            reason = f"{version.dependencies.changed(function)} has changed"
            if opened is not None and opened.free.names != free.names:
                names = opened.free.names
                verb = "is an argument" if len(names) == 1 else "are arguments"
                reason += f"; {', '.join(names)} {verb} from now on"
            self._noted(f"compiled {self.__name__} again", reason)
        if opened is not None:
            return opened
        if target is None and free.names:
            free, of_free = NO_NAMES, ()
        return self._made((*kinds, *of_free), target, function, free)

    def _opened(
        self,
        kinds: tuple[Kind, ...],
        free: FreeNames,
        stale: Version | None,
        function: types.FunctionType,
    ) -> Version | None:
        """A version that takes free names as arguments, and those that have changed since a stale
        one was made; None if there are none, or the results would be of other kinds than with
        constants."""
        if stale is not None:
            free = free.with_arguments(stale.dependencies.changed_names(function), function)
        of_free = free.kinds(function)
        if not free.names or of_free is None:
            return None
        try:
            results = self._results(function, kinds)
            version = self._compiled(function, (*kinds, *of_free), None, free)
            is_like = results == set(version.results)
        except UnsupportedError:  # a constant is needed somewhere
            is_like = False
        if not is_like:
            self._closed.add(kinds)
            self._free.pop(kinds, None)
            return None
        self._free[kinds] = free
        self._versions[version.kinds, None, free.names] = version
        return version

    def _made(
        self,
        kinds: tuple[Kind, ...],
        target: Kind | None,
        function: types.FunctionType,
        free: FreeNames,
    ) -> Version:
        """A new version. Raises UnsupportedError."""
        refusal = self._refusals.get((kinds, target))
        if refusal is not None and refusal.is_current(function):
            raise refusal.error.with_traceback(None)
        try:
            self._check_annotations(kinds)
            version = self._compiled(function, kinds, target, free)
        except UnsupportedError as error:
            self._count_refusal(error)
            if not self._strict:  # it would be tried in each call
                self._refusals[kinds, target] = Refusal(error, function, kinds)
            raise
        self._versions[kinds, target, free.names] = version
        return version

    def _compiled(
        self,
        function: types.FunctionType,
        kinds: tuple[Kind, ...],
        target: Kind | None,
        free: FreeNames,
    ) -> Version:
        """The code for kinds of arguments, and of the free names that are further ones. Raises
        UnsupportedError."""
        return Version(function, kinds, target, self._engine, free)

    def _results(self, function: types.FunctionType, kinds: tuple[Kind, ...]) -> set[Kind]:
        """The kinds of results where all free names are constants. Raises UnsupportedError."""
        return set(Unit(function, kinds).results)

    def _trapped(self, version: Version, error: TrapError, values: Sequence[Any]) -> R:
        """Python's exception for a trap; or the value, where Python goes on."""
        site = site_of(error, version.sites)
        if site is None:
            raise error.with_traceback(None)
        reason = f"{site.type.__name__} at line {site.position.line}"
        if isinstance(error.state, list):
            self.count(reason)
            found: R = resume(error.state)
            return found
        if not version.has_effects:
            return self.python(values, reason)
        raise too_deep(error, site, MOST_FRAMES)

    def python(self, values: Sequence[Any], reason: str) -> R:
        """The value that CPython computes."""
        self.count(reason)
        parameters = self._signature.parameters.values()
        given = dict(zip(self._signature.parameters, values, strict=True))
        named = {
            each.name: given.pop(each.name)
            for each in parameters
            if each.kind is inspect.Parameter.KEYWORD_ONLY
        }
        try:
            found: R = self.__ferryvm_function__(*given.values(), **named)
        except OverflowError as error:
            add_values(error)
            raise
        return found

    def count(self, reason: str) -> None:
        """Count a call in which CPython took over."""
        self._noted(f"CPython ran {self.__name__}", reason)

    def _noted(self, what: str, reason: str) -> None:
        event = self._events.setdefault((what, reason), Event(what, reason))
        event.count += 1

    def refused(self, reason: str) -> UnsupportedError:
        """The error for arguments of other kinds than code can be made for, which is counted."""
        error = UnsupportedError(reason, None, self.__name__)
        self._count_refusal(error)
        return error

    def _check_annotations(self, kinds: Sequence[Kind]) -> None:
        """Raise UnsupportedError for an argument of another type than it is annotated with."""
        for name, kind in zip(self.parameters, kinds, strict=False):
            wanted = disagreement(self.__ferryvm_function__, name, kind)
            if wanted is not None:
                what = f"it is annotated as {wanted}, and is {kind}; change one of them"
                raise UnsupportedError(f"argument {name}: {what}", None, self.__name__)

    def _count_refusal(self, error: UnsupportedError) -> None:
        if self._strict:  # otherwise the call is counted as one that CPython ran
            self._noted(f"refused {self.__name__}", error.place_and_reason)

    def _warn(self, error: UnsupportedError) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(f"{error}; CPython runs it", RuntimeWarning, stacklevel=3)

    def explain(self) -> FunctionExplanation:
        """The versions that were compiled and what the engine did with each; the calls that CPython
        ran and that were refused, with the reasons."""
        from ferryvm.python.call.explanation import FunctionExplanation, VersionExplanation, counted

        versions = []
        for version in self._versions.values():
            taken = ", ".join(
                f"{name}: {kind}"
                for name, kind in zip(
                    (*self._signature.parameters, *version.free.names), version.kinds, strict=True
                )
            )
            results = " or ".join(sorted(map(str, version.results))) or "nothing"
            signature = f"{self.__name__}({taken}) -> {results}"
            versions.append(VersionExplanation(signature, version.regions()))
        notes = [counted(each.what, each.count, each.reason) for each in self._events.values()]
        return FunctionExplanation(self.__name__, tuple(versions), tuple(notes))


_SIMPLE = frozenset({int, float, bool})


def _is_large(value: object) -> bool:
    """True for an int that does not fit into 64 bits, and for what has one."""
    if isinstance(value, int):
        return value.bit_length() > 63
    if isinstance(value, range):
        return _is_large(value.start) or _is_large(value.stop)
    return isinstance(value, tuple) and any(map(_is_large, value))


@overload
def function(function: Callable[P, R], /) -> PythonFunction[P, R]: ...


@overload
def function(function: str, /) -> PythonFunction[..., Any]: ...


@overload
def function(
    *, backend: str | None = None, policy: Policy | None = None, strict: bool = True
) -> Callable[[Callable[P, R]], PythonFunction[P, R]]: ...


def function(
    function: Any = None,
    /,
    *,
    backend: str | None = None,
    policy: Policy | None = None,
    strict: bool = True,
) -> Any:
    """A Python function that is compiled for the types of its arguments, and runs on any backend; a
    decorator, with or without options.

    `function`: a Python function whose source can be read, or the text of a definition. `backend`,
    `policy`: as of `Engine`. `strict`: False lets CPython run what cannot be compiled, with a
    warning. Results and exceptions are those of CPython, which takes over where a number leaves 64
    bits. Calls raise UnsupportedError for what cannot be compiled. docs/python.md has the subset.
    """
    if function is None:
        return lambda given: PythonFunction(given, backend, policy, strict)
    if isinstance(function, str):
        function = defined(function)
    return PythonFunction(function, backend, policy, strict)
