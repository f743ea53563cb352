# SPDX-License-Identifier: Apache-2.0
"""Functions of texts as bytes."""

from __future__ import annotations

import numpy as np

from .case import case


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


@case((_bytes("hello, world"),), (_bytes(""),))
def count_vowels(text):
    return sum(1 for c in text if c in (97, 101, 105, 111, 117))


@case((_bytes("Hello"), 3), (_bytes("xyz"), 30))
def caesar(text, shift):
    out = np.zeros(len(text), dtype=np.uint8)
    for i, c in enumerate(text):
        code = int(c)
        if 65 <= code <= 90:
            code = (code - 65 + shift) % 26 + 65
        elif 97 <= code <= 122:
            code = (code - 97 + shift) % 26 + 97
        out[i] = code
    return out


@case((_bytes("1234"),), (_bytes("-56"),), (_bytes("12x"),))
def parse_integer(text):
    sign, start = 1, 0
    if text[0] == 45:
        sign, start = -1, 1
    value = 0
    for i in range(start, len(text)):
        digit = int(text[i]) - 48
        if not 0 <= digit <= 9:
            raise ValueError("invalid digit")
        value = value * 10 + digit
    return sign * value


@case((_bytes("abracadabra"), _bytes("cad")), (_bytes("aaa"), _bytes("b")))
def find_text(text, pattern):
    for i in range(len(text) - len(pattern) + 1):
        for j in range(len(pattern)):
            if text[i + j] != pattern[j]:
                break
        else:
            return i
    return -1


@case((_bytes("wikipedia"),), (_bytes(""),))
def adler32(text):
    a, b = 1, 0
    for c in text:
        a = (a + int(c)) % 65521
        b = (b + a) % 65521
    return b << 16 | a


@case((_bytes("123456789"),), (_bytes(""),))
def crc32(text):
    crc = 0xFFFFFFFF
    for c in text:
        crc ^= int(c)
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@case((_bytes("foobar"),), (_bytes("a"),))
def fnv1a(text):
    h = 2166136261
    for c in text:
        h = (h ^ int(c)) * 16777619 & 0xFFFFFFFF
    return h


@case((_bytes("aaabccd"),), (_bytes("z"),))
def run_lengths(text):
    lengths = [1]
    for i in range(1, len(text)):
        if text[i] == text[i - 1]:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths


@case((_bytes("(()())"),), (_bytes("())("),))
def is_balanced(text):
    depth = 0
    for c in text:
        depth += 1 if c == 40 else -1
        if depth < 0:
            return False
    return depth == 0


@case((_bytes("banana"),))
def letter_counts(text):
    counts = np.zeros(26, dtype=np.int64)
    for c in text:
        counts[c - 97] += 1
    return counts


@case((_bytes("79927398713"),), (_bytes("79927398710"),))
def luhn(digits):
    total = 0
    for i, c in enumerate(reversed(digits)):
        d = int(c) - 48
        if i % 2 == 1:
            d *= 2
            if d > 9:
                d -= 9
        total += d
    return total % 10 == 0
