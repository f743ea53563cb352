# SPDX-License-Identifier: Apache-2.0
"""The clauses of a program as a forest, for the search of those that cover an instruction.

Ranges of two clauses are disjoint, or one contains the other; then the inner one comes first in the
program, and the first one of two with the same range. So each clause has at most one next clause
outward, and each stretch of code one innermost clause:

    program order   0: [2, 4)   1: [2, 9)   2: [6, 8)          1 ─── 1 ─── 1    chain of pc 3: 0, 1
    outward         0 -> 1      1 -> none   2 -> 1                0     2       chain of pc 9: none
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

from ferryvm.program import Clause

MAX_NESTING = 256
"""The largest number of clauses that may cover one instruction; the search for a handler visits
them all."""


class NestingFault(Exception):  # noqa: N818 - not for users: the verifier makes an error of it
    """Clauses that do not nest properly; `number` is the later one of the program."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class ClauseForest:
    """The clauses of a program, indexed by the instructions that they cover."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        """Raises NestingFault if ranges cross, or an outer clause comes before an inner one."""
        self.clauses = clauses
        self.outward = [-1] * len(clauses)
        """For each clause the next one outward, -1 if there is none."""
        self.starts = [0]
        """The starts of stretches with the same innermost clause."""
        self.innermost = [-1]
        """The innermost clause of each stretch, -1 if there is none."""
        self.chains: dict[int, tuple[Clause, ...]] = {}
        """The results of `covering` so far, by pc."""
        order = sorted(range(len(clauses)), key=lambda n: (clauses[n].start, -clauses[n].end, -n))
        enclosing: list[int] = []
        for number in order:
            clause = clauses[number]
            self._close(enclosing, clause.start)
            if enclosing:
                outer = enclosing[-1]
                if clauses[outer].end < clause.end:
                    message = (
                        f"{_range(clause)} crosses {_range(clauses[outer])}; "
                        "ranges are disjoint, or one is within the other"
                    )
                    raise NestingFault(max(number, outer), message)
                if outer < number:
                    message = (
                        f"{_range(clause)} comes after {_range(clauses[outer])} around it; "
                        "inner clauses come first"
                    )
                    raise NestingFault(number, message)
                self.outward[number] = outer
            enclosing.append(number)
            if len(enclosing) > MAX_NESTING:
                message = f"{len(enclosing)} clauses cover one instruction, at most {MAX_NESTING}"
                raise NestingFault(number, message)
            self._stretch(clause.start, number)
        self._close(enclosing, max((clause.end for clause in clauses), default=0))

    def __bool__(self) -> bool:
        return bool(self.clauses)

    def _numbers(self, pc: int) -> Iterator[int]:
        """Numbers of the clauses that cover the instruction at `pc`, inner ones first."""
        number = self.innermost[bisect.bisect_right(self.starts, pc) - 1]
        while number >= 0:
            yield number
            number = self.outward[number]

    def covering(self, pc: int) -> tuple[Clause, ...]:
        """The clauses that cover the instruction at `pc`, inner ones first."""
        found = self.chains.get(pc)
        if found is None:
            found = tuple(self.clauses[number] for number in self._numbers(pc))
            self.chains[pc] = found
        return found

    def _close(self, enclosing: list[int], pc: int) -> None:
        """Remove the clauses that end at `pc` or before it."""
        while enclosing and self.clauses[enclosing[-1]].end <= pc:
            ended = enclosing.pop()
            self._stretch(self.clauses[ended].end, enclosing[-1] if enclosing else -1)

    def _stretch(self, start: int, number: int) -> None:
        if self.starts[-1] == start:
            self.innermost[-1] = number
        else:
            self.starts.append(start)
            self.innermost.append(number)


def _range(clause: Clause) -> str:
    return f"the clause of pcs {clause.start} to {clause.end - 1}"
