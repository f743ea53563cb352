# SPDX-License-Identifier: Apache-2.0
"""Mutation fuzzing of files: `python -m tests.fuzz.mutate --count 1000000 --seed 1`.

Trials run in a child process, since a fault may be one that ends it. The child notes the number of
the trial that it is at in a small file that both map; when it dies or hangs, the parent saves that
trial's file and goes on with the next. A trial's number and the seed give its file again.
"""

from __future__ import annotations

import argparse
import dataclasses
import faulthandler
import mmap
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from ferryvm.engine.saved import STATE

from .mutator import Seed, mutate
from .seed import ROOT, seeds
from .trial import Judge, Outcome

MODULE = "tests.fuzz.mutate"
OUTCOMES = tuple(Outcome)
_NOTES = struct.Struct(f"<{1 + len(OUTCOMES)}Q")
"""Number of the trial that the child is at, then how many ended in each outcome."""

HANG_SECONDS = 60
"""Far more than any trial takes: only a child that makes no progress at all is given up."""


@dataclasses.dataclass
class Report:
    """What a campaign found."""

    trials: int = 0
    outcomes: dict[Outcome, int] = dataclasses.field(
        default_factory=lambda: dict.fromkeys(OUTCOMES, 0)
    )
    faults: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        total = max(1, self.trials)
        lines = [f"{self.trials} trials, {len(self.faults)} faults"]
        for outcome, count in self.outcomes.items():
            lines.append(f"  {count:9} {100 * count / total:5.1f}%  {outcome.value}")
        return "\n".join(lines + self.faults)


def trial_file(seed: int, number: int, starts: Sequence[Seed]) -> tuple[random.Random, Seed, bytes]:
    """The random numbers of a trial, what it starts from, and the file that it tries."""
    rng = random.Random(f"{seed}/{number}")
    start = rng.choice(starts)
    return rng, start, mutate(rng, start)


# --- the child ------------------------------------------------------------------------------


def _work(judge: Judge, seed: int, first: int, end: int, notes_path: Path, out: Path) -> None:
    starts = seeds()
    with notes_path.open("r+b") as file, mmap.mmap(file.fileno(), _NOTES.size) as notes:
        _, *counts = _NOTES.unpack_from(notes)
        for number in range(first, end):
            _NOTES.pack_into(notes, 0, number, *counts)
            rng, start, content = trial_file(seed, number, starts)
            try:
                outcome = judge.judge(rng, content)
            except Exception as error:  # noqa: BLE001 - any at all is what is being looked for
                text = f"trial {number} ({start.name}): {type(error).__name__}: {error}"
                _save(out, number, content, text + "\n" + traceback.format_exc())
                continue
            counts[OUTCOMES.index(outcome)] += 1
        _NOTES.pack_into(notes, 0, end, *counts)


def _save(out: Path, number: int, content: bytes, text: str) -> None:
    suffix = ".ferry" if content.startswith(STATE.magic) else ".fvm"
    (out / f"{number}{suffix}").write_bytes(content)
    (out / f"{number}.txt").write_text(text, encoding="utf-8")


# --- the parent -----------------------------------------------------------------------------


def campaign(
    seed: int, count: int, out: Path, progress: Callable[[Report], None] | None = None
) -> Report:
    """The outcomes of trials 0 to `count`; files with faults are saved in the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise SystemExit(f"{out} is not empty: its faults would be counted as new ones")
    report, starts = Report(), seeds()
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.write_bytes(bytes(_NOTES.size))
        first = 0
        while first < count:
            command = [sys.executable, "-m", MODULE, "--worker", notes, "--out", out]
            trials = ["--seed", seed, "--first", first, "--count", count]
            child = subprocess.Popen(
                [str(word) for word in (*command, *trials)], cwd=ROOT, stderr=subprocess.PIPE
            )
            messages: list[bytes] = []
            stderr = child.stderr
            assert stderr is not None
            listener = threading.Thread(target=lambda s=stderr, m=messages: m.append(s.read()))
            listener.start()
            end = _watch(child, notes, lambda: progress and progress(_read(report, notes)))
            listener.join()
            stderr.close()
            _read(report, notes)
            first = report.trials
            if child.returncode > 0:  # not killed: it failed by itself, and would again
                raise SystemExit(messages[0].decode(errors="replace"))
            if first < count or child.returncode:
                number = min(first, count - 1)
                text = f"trial {number}: {end}\n" + messages[0].decode(errors="replace")
                _save(out, number, trial_file(seed, number, starts)[2], text)
                first = report.trials = number + 1
    texts = sorted(out.glob("*.txt"), key=lambda path: int(path.stem))
    report.faults = [path.read_text(encoding="utf-8").splitlines()[0] for path in texts]
    return report


def _watch(child: subprocess.Popen[bytes], notes: Path, tick: Callable[[], object]) -> str:
    """How the child ended; it is killed when it makes no progress."""
    seen, idle = b"", 0
    while True:
        try:
            code = child.wait(1)
        except subprocess.TimeoutExpired:
            tick()
            now = notes.read_bytes()
            if now != seen:
                seen, idle = now, 0
            elif idle == HANG_SECONDS:
                child.kill()
                child.wait()
                return f"no progress in {HANG_SECONDS} seconds"
            else:
                idle += 1  # not a clock's: one that went on while all processes stood still lies
        else:
            return f"the process ended with {code}"


def _read(report: Report, notes: Path) -> Report:
    report.trials, *counts = _NOTES.unpack(notes.read_bytes())
    report.outcomes = dict(zip(OUTCOMES, counts, strict=True))
    return report


def main(judge: Callable[[], Judge] = Judge) -> None:
    """The command line; children try files with `judge`."""
    parser = argparse.ArgumentParser(description="Alter files at random; look for faults.")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--out", type=Path, help="folder for files with faults; a new one if none")
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        faulthandler.enable()
        # Only the main thread has to be ready for Ctrl-C, which takes longer than most trials.
        arguments = (judge(), chosen.seed, chosen.first, chosen.count, chosen.worker, chosen.out)
        thread = threading.Thread(target=_work, args=arguments)
        thread.start()
        thread.join()
        return
    began = time.monotonic()

    def progress(report: Report) -> None:
        speed = report.trials / (time.monotonic() - began)
        print(f"\r{report.trials} trials, {speed:.0f}/s", end="", file=sys.stderr, flush=True)

    out = chosen.out or Path(tempfile.mkdtemp(prefix="ferryvm-fuzz-"))
    report = campaign(chosen.seed, chosen.count, out.resolve(), progress)
    print(f"\nseed {chosen.seed}, files with faults in {out}: {report}")
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
