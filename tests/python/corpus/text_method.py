# SPDX-License-Identifier: Apache-2.0
"""Functions that build texts, and use methods of texts and bytes."""

from __future__ import annotations

from .case import case


@case(("Hello, World", 3), ("", 1), ("zZ é", 1))
def rotated(s, k):
    out = ""
    for c in s:
        if "a" <= c <= "z":
            out += chr((ord(c) - 97 + k) % 26 + 97)
        elif "A" <= c <= "Z":
            out += chr((ord(c) - 65 + k) % 26 + 65)
        else:
            out += c
    return out


@case(("(()[])",), ("(]",), ("",))
def is_balanced(s):
    stack = []
    for c in s:
        if c in "([{":
            stack.append(c)
        elif not stack or stack.pop() + c not in ("()", "[]", "{}"):
            return False
    return not stack


@case(("banana", "an"), ("banana", ""), ("", "x"), ("", ""), ("aaaa", "aa"), ("é€", "€"))
def found(s, part):
    return s.find(part), s.count(part), s.startswith(part), s.endswith(part), part in s


@case((b"banana", b"na"), (b"", b""), (b"\xff\x00", b"\x00"))
def found_in_bytes(s, part):
    return s.find(part), s.count(part), s.startswith(part), s.endswith(part), s + part, s[::-1] + s


@case(("banana", "n"), ("banana", "x"))
def place(s, part):
    try:
        return s.index(part)
    except ValueError:
        return -1


@case(("  Ab c\t\n",), ("",), ("   ",), ("\x1cx\x85",), ("ß",), ("\xa0a",))
def trimmed(s):
    return s.strip(), s.lstrip(), s.rstrip(), s.upper(), s.lower(), s.strip().upper() + "!"


@case(("abcdef", 2), ("", 1))
def halves(s, n):
    left, right = s[:n], s[n:]
    return right + left, (right + left)[::-1], s[::2] + s[1::2], "<" + s + ">", s[:1] + s[:1]


@case(("deadBEEF",), ("x",))
def hexadecimal(s):
    n = 0
    for c in s:
        n = n * 16 + "0123456789abcdef".index(c.lower())
    return n
