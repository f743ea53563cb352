# SPDX-License-Identifier: Apache-2.0
"""The test whether a candidate still shows the disagreement that is being reduced."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ferryvm.errors import FerryError
from ferryvm.program import Program
from ferryvm.testing.bisect import Bisector, DivergenceMode, DivergencePoint, UnpreparedError
from ferryvm.testing.differential import Differ
from ferryvm.testing.disagreement import showing
from ferryvm.testing.environment import USUAL, condition
from ferryvm.testing.trace import instruction_at
from ferryvm.testing.trial import failing
from ferryvm.verify import verify

_PATIENCE = 0.5
"""Seconds that the bad backend gets for a candidate, which takes milliseconds."""

_WINDOWS = 40
"""Windows that are tried where the bad backend must run several instructions in one go."""

_EASIER = {
    DivergenceMode.COUNTED: (DivergenceMode.COUNTED,),
    DivergenceMode.UNCOUNTED: (DivergenceMode.UNCOUNTED,),
    DivergenceMode.MOVED: (DivergenceMode.COUNTED, DivergenceMode.MOVED),
    DivergenceMode.ENTERED: (DivergenceMode.UNCOUNTED, DivergenceMode.ENTERED),
}
"""Modes in which a candidate may show a disagreement that was found in another one: a program that
ends right after the instruction may show without moves a fault that a longer one had masked by its
end."""


@dataclasses.dataclass(frozen=True)
class Signature:
    """The properties that identify a disagreement."""

    good: str
    bad: str
    mode: DivergenceMode
    field: str
    """The first word of the field that differs: `pc`, `local`, `heap` ...; for a backend that fails
    to compile the program, its failure."""
    mnemonic: str
    """The instruction at which they diverge; empty if the program is not compiled."""
    is_single: bool = dataclasses.field(default=True, compare=False)
    """True if the bad backend need only be entered for that one instruction."""
    environment: str = USUAL
    """Name of the floating-point environment that is required."""

    def __str__(self) -> str:
        if not self.mnemonic:
            return f"{self.bad} makes no code of the program: {self.field}"
        where = f"{self.mnemonic} in {self.field}, {self.mode.value}{condition(self.environment)}"
        return f"{self.good} and {self.bad} part at {where}"


def signature(good: str, place: DivergencePoint, mnemonic: str) -> Signature:
    """The signature of a divergence."""
    field = place.difference.field.split()[0]
    if place.mode in (DivergenceMode.UNCOUNTED, DivergenceMode.ENTERED):
        field = "the end"  # that is all that can be compared, and any field of it may suffer
    is_single = place.entered == place.number
    return Signature(good, place.bad, place.mode, field, mnemonic, is_single, place.environment)


def failure_signature(error: UnpreparedError) -> Signature:
    """The signature of a backend that fails to compile the program."""
    how = failing(error.difference.right)
    assert how is not None
    return Signature(error.good, error.bad, DivergenceMode.COUNTED, how, "")


Size = tuple[int, ...]


class Interest:
    """Judges candidates, and stores the smallest one that shows the disagreement."""

    def __init__(
        self,
        differ: Differ,
        bad: str,
        wanted: Signature,
        seed: int,
        check: Callable[[], object],
        improved: Callable[[Program], object],
    ) -> None:
        """`seed`: of the schedule by chance that shows the disagreement, if it takes one; `check`
        is called often and may raise to end the search; `improved` is called with each new smallest
        program."""
        self.differ = differ.with_backends([bad], _PATIENCE)
        self.bad, self.wanted, self.seed = bad, wanted, seed
        self.check, self.improved = check, improved
        self.best: Program | None = None
        self.best_size: Size = ()
        self.tried = 0
        """Candidates judged."""

    def __call__(self, program: Program) -> bool:
        """True if the program passes the verifier and shows the same disagreement."""
        self.check()
        self.tried += 1
        try:
            bisector = Bisector(
                self.differ,
                self.bad,
                verify(program),
                self.check,
                windows=0 if self.wanted.is_single else _WINDOWS,
                environment=self.wanted.environment,
            )
            if not any(self._parts(bisector, mode) for mode in _EASIER[self.wanted.mode]):
                return False
        except UnpreparedError as error:
            if failure_signature(error) != self.wanted:
                return False
        except FerryError:  # not valid, refused by a backend, or not the same twice
            return False
        measured = size(program)
        if self.best is None or measured < self.best_size:
            self.best, self.best_size = program, measured
            # A candidate that runs much longer than the best one is of no use.
            self.differ.most = min(self.differ.most, 100 + 2 * bisector.boundaries)
            self.improved(program)
        return True

    def _parts(self, bisector: Bisector, mode: DivergenceMode) -> bool:
        """True if the backends diverge in this mode with the wanted signature, so that it can be
        saved."""
        place = bisector.search(mode)
        if place is None:
            return False
        program = bisector.program.program
        row, _ = instruction_at(program, bisector.at(place.number).pc)
        found = signature(self.differ.against, place, row.mnemonic)
        if (found.field, found.mnemonic) != (self.wanted.field, self.wanted.mnemonic):
            return False
        # Where bisecting had to move, or to set an environment, an ordinary schedule must show it
        # too, so that it can be saved and shown again.
        is_odd = self.wanted.environment != USUAL
        if not is_odd and mode not in (DivergenceMode.MOVED, DivergenceMode.ENTERED):
            return True
        return showing(self.differ, bisector.program, self.seed, is_odd) is not None


def size(program: Program) -> Size:
    """Size of a program; the smaller of two is the better one to read."""
    code = program.code
    return (
        len(code),
        len(program.functions),
        sum(len(function.locals) for function in program.functions) + len(program.statics),
        sum(len(data.bytes) for data in program.data) + len(program.table) + len(program.hosts),
        sum(min(i.bit_length(), (i ^ _ONES).bit_length() + 1) for i in code.immediates),
        sum(static.bits.bit_length() for static in program.statics),
        len(program.source_map),
    )


_ONES = (1 << 64) - 1
