# SPDX-License-Identifier: Apache-2.0
"""Functions of everyday code on texts and bytes: scanning, counting, distances, codes."""

from __future__ import annotations

from .case import case

_DIGITS = "0123456789abcdef"


@case((b"ABC",), (b"",), (bytes(range(250, 256)),))
def checksum(data):
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 % 4294967296
    return value, data[0], data[-1], data[1:3], data[::-1], 65 in data, data == b"ABC"


@case(("a bc  d",), ("",), ("one\ttwo \n",))
def words(text):
    found = []
    start = -1
    for i, c in enumerate(text):
        if c.isspace():
            if start >= 0:
                found.append((start, i))
            start = -1
        elif start < 0:
            start = i
    if start >= 0:
        found.append((start, len(text)))
    return found


@case(("Hello, World", 3), ("Höllo", 3), ("", 1))
def caesar(text, k):
    out = []
    for c in text:
        if c.isalpha():
            base = ord("A") if c.isupper() else ord("a")
            out.append(chr((ord(c) - base + k) % 26 + base))
        else:
            out.append(c)
    return "".join(out)


@case(("([]{})",), ("([)]",), ("(",), ("",))
def balanced(text):
    stack = []
    for c in text:
        if c in "([{":
            stack.append(c)
        elif c in ")]}":
            if not stack:
                return False
            top = stack.pop()
            if (top == "(") != (c == ")") or (top == "[") != (c == "]"):
                return False
    return not stack


@case(("kitten", "sitting"), ("", "abc"), ("ß", "ss"))
def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last = row[0]
        row[0] = i
        for j, y in enumerate(b, 1):
            new = min(row[j] + 1, row[j - 1] + 1, last + (x != y))
            last = row[j]
            row[j] = new
    return row[-1]


@case(("racecar",), ("ab",), ("",))
def palindrome(text):
    return text == text[::-1], "ace" in text, text < "b", text[:2]


@case(("aabccc",), ("",), ("ÄÄ😀",))
def runs_of_text(text):
    runs = []
    for c in text:
        if runs and runs[-1][0] == c:
            runs[-1] = (c, runs[-1][1] + 1)
        else:
            runs.append((c, 1))
    return runs, sorted(text), "".join(c for c in text if c != "a")


@case(("1234",), ("12x4",), ("٣",))
def parsed(text):
    n = 0
    for c in text:
        n = n * 10 + int(c)
    return n


@case((48879,), (0,))
def hexadecimal(n):
    out = []
    while n:
        out.append(_DIGITS[n % 16])
        n //= 16
    return "".join(out[::-1])


@case(("banana", "ana"), ("aaa", "b"), ("abc", ""))
def occurrences(text, part):
    found = []
    for i in range(len(text) - len(part) + 1):
        if text[i : i + len(part)] == part:
            found.append(i)
    kind = "none" if not found else "one" if len(found) == 1 else "many"
    return found, kind, text[9]


@case((7, "up"), (7, "down"), (7, "?"))
def rounded(n, how="up"):
    if how == "up":
        return n + 1
    if how == "down":
        return n - 1
    raise ValueError(how)
