# SPDX-License-Identifier: Apache-2.0
"""The output of `ferry run`: few writes to a pipe, and nothing lost or out of order."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from ferryvm.cli import main
main()
"""
COMMAND = [sys.executable, "-c", START, "run", "--backend", "threaded"]
SPIN = "(define n 0) (while #t (set! n (+ n 1)))"
LOOP = "(define i 0) (while (< i 20000) (print! i) (set! i (+ i 1)))"
LINES = "".join(f"{number}\n" for number in range(20000))


def saved(folder: Path, text: str) -> Path:
    path = folder / "p.skiff"
    path.write_text(text)
    return path


def test_pieces_are_collected_for_a_pipe(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # a packet a write
    process = subprocess.Popen([*COMMAND, saved(tmp_path, LOOP)], stdout=theirs)
    theirs.close()
    packets = []
    with ours:
        while packet := ours.recv(1 << 17):
            packets.append(packet)
    assert process.wait(timeout=120) == 0
    assert b"".join(packets).decode() == LINES
    assert len(packets) < 2000


def test_output_stands_before_the_message_of_a_trap(tmp_path: Path) -> None:
    path = saved(tmp_path, f'{LOOP} (write-string! "end") (print! (/ 1 (- i i)))')
    done = subprocess.run(
        [*COMMAND, path], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    output, _, message = done.stdout.partition("end")
    assert output == LINES
    assert message.startswith("ferry: ")


@pytest.mark.rotate("number", most=1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_loses_no_output(tmp_path: Path, number: signal.Signals) -> None:
    path = saved(
        tmp_path, f"(define (spin) {SPIN[len('(define n 0) ') :]}) (define n 0) {LOOP} (spin)"
    )
    read, write = os.pipe()
    process = subprocess.Popen([*COMMAND, path], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    with open(read, "rb") as stream:
        assert stream.readline() == b"0\n"
        process.send_signal(number)
        rest = stream.read().decode()
    _, err = process.communicate(timeout=120)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert len(err.splitlines()) >= 1
    output = f"0\n{rest}"
    assert LINES.startswith(output)
    assert output.endswith("\n")


def test_two_lines_in_a_row_before_a_signal_are_both_written(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, saved(tmp_path, f'(print! 1) (write-string! "2") {SPIN}')],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (-signal.SIGTERM, b"ferry: ended by SIGTERM\n")
    assert out in (b"2", b"")  # the signal may come between the two


def test_a_prompt_is_written_before_input_is_read(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        '(host-function read_byte () i32) (print! 1) (write-string! "name? ") (print! (read_byte))',
    )
    process = subprocess.Popen([*COMMAND, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.read(8) == b"1\nname? "
    out, _ = process.communicate(b"A", timeout=120)
    assert out == b"65\n"


def test_a_terminal_gets_each_line(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    path = saved(tmp_path, f'(print! 1) (write-string! "a") (print! "b") {SPIN}')
    process = subprocess.Popen([*COMMAND, path], stdout=theirs)
    os.close(theirs)
    with open(ours, "rb", buffering=0) as stream:
        found = b""
        while not found.endswith(b"ab\r\n"):
            found += stream.read(100)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=120)
    assert found == b"1\r\nab\r\n"


def test_prints_of_host_functions_stay_in_order(tmp_path: Path) -> None:
    hosts = tmp_path / "mine.py"
    hosts.write_text(
        "import os\nfrom ferryvm import host, i64\n@host\ndef say(x: i64) -> i64:\n"
        "    os.write(1, b'written\\n')\n    print('printed')\n    return x\n"
    )
    path = saved(tmp_path, "(host-function say (i64) i64) (print! 1) (print! (say 2)) (print! 3)")
    done = subprocess.run(
        [*COMMAND, path, "--hosts", f"{hosts}:say"], check=True, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert done.stdout == "1\nwritten\nprinted\n2\n3\n"


def test_a_reader_that_does_not_read_does_not_hold_the_process_up(tmp_path: Path) -> None:
    path = saved(tmp_path, "(while #t (print! 123456789))")
    read, write = os.pipe()
    process = subprocess.Popen([*COMMAND, path], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert os.read(read, 5) == b"12345"
    assert process.stderr is not None
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    os.close(read)
    assert process.returncode == -signal.SIGTERM
    assert err.splitlines()[-1] == "ferry: ended by SIGTERM"


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, saved(tmp_path, LOOP)], check=False, stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=120,
        )  # fmt: skip
    message = "ferry: output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, message)
