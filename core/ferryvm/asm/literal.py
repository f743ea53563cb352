# SPDX-License-Identifier: Apache-2.0
"""Literals and names of assembly, both ways; written text reads back as the same bits.

    integers   42  -7  1_000_000  0xff  0b1010        signed or unsigned, as long as they fit
    floats     1.5  -0.0  6e23  inf  -inf  nan        rounded once, to nearest even
               0x1.8p+3                               exactly, or it is an error
               bits:0x7ff8000000000001                any bit pattern
    strings    "text\\n"   \\n \\r \\t \\0 \\" \\\\ \\xff     UTF-8, \\x gives one byte

A name is written bare or, if it has other characters, as a string.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from ferryvm.isa.type import CANONICAL_NAN, F32, Type, format_value, from_float, to_float

_INTEGER = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<hex>[0-9a-fA-F](?:_?[0-9a-fA-F])*)"
    r"|0[bB](?P<binary>[01](?:_?[01])*)|(?P<decimal>[0-9](?:_?[0-9])*))"
)
_DIGITS = r"[0-9](?:_?[0-9])*"
_DECIMAL = re.compile(rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?[0-9]+)?")
_HEX_FLOAT = re.compile(
    r"[+-]?0[xX](?P<whole>[0-9a-fA-F]+)(?:\.(?P<part>[0-9a-fA-F]*))?[pP](?P<power>[+-]?[0-9]+)"
)
_MOST_DIGITS = 200
"""Longer integers fit no type; Python refuses to read much longer ones."""

_BARE_NAME = re.compile(r"[^\W\d][\w.$!?*/<>=+@%&^~|'-]*")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)")
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", '"': b'"', "\\": b"\\"}
_ESCAPED = {value[0]: "\\" + letter for letter, value in _ESCAPES.items()}


class LiteralFault(Exception):  # noqa: N818 - becomes one line of a SourceError
    """The reason for which a text is not a literal of the wanted kind."""


def integer(text: str) -> int | None:
    """The integer that a text denotes; None if it is not an integer.

    Raises LiteralFault if it is too long to fit any type.
    """
    if text.isdecimal() and text.isascii() and len(text) <= _MOST_DIGITS:  # most are
        return int(text)
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    if len(text) > _MOST_DIGITS:
        raise LiteralFault(f"an integer of {len(text)} characters is out of every range")
    for base, group in ((16, "hex"), (2, "binary"), (10, "decimal")):
        if match[group] is not None:
            value = int(match[group], base)
            return -value if match["sign"] == "-" else value
    return None


def literal_bits(type_: Type, text: str) -> int:
    """The bit pattern of a literal of type `type_`; raises LiteralFault."""
    if type_.is_float:
        return _float_bits(type_, text)
    return integer_bits(type_.bits, str(type_), text)


def integer_bits(width: int, what: str, text: str) -> int:
    """The bit pattern of an integer that fits in `width` bits, signed or unsigned."""
    value = integer(text)
    if value is None:
        raise LiteralFault(f"expected an {what} literal, found {text!r}")
    low, high = -(1 << (width - 1)), (1 << width) - 1
    if not low <= value <= high:
        raise LiteralFault(f"{text} is out of range for {what}: {low} to {high} are allowed")
    return value & high


def _float_bits(type_: Type, text: str) -> int:
    if _DECIMAL.fullmatch(text):
        return _decimal_float_bits(type_, text)
    if text.startswith("bits:"):
        return integer_bits(type_.bits, f"{type_} bit pattern as an integer", text[5:])
    if text == "nan":
        return CANONICAL_NAN[type_]
    if text in ("inf", "+inf", "-inf"):
        return from_float(type_, float(text))
    if _HEX_FLOAT.fullmatch(text):
        return _hex_float_bits(type_, text)
    hint = "; for a bit pattern write bits:" + text if integer_like(text) else ""
    raise LiteralFault(f"expected an {type_} literal, found {text!r}{hint}")


def _decimal_float_bits(type_: Type, text: str) -> int:
    value = float(text)
    if type_ is F32 and value != 0 and math.isfinite(value):
        value = _to_odd(value, Decimal(text.replace("_", "")))
    bits = from_float(type_, value)
    if math.isinf(to_float(type_, bits)):
        raise LiteralFault(f"{text} is out of range for {type_}; write inf if that is meant")
    return bits


def integer_like(text: str) -> bool:
    """True if a text is written as an integer."""
    return _INTEGER.fullmatch(text) is not None


def _to_odd(value: float, exact: Decimal) -> float:
    """`exact` rounded to odd in f64: rounding that to f32 is then the same as rounding once.

    `value` is `exact` rounded to nearest. (Boldo and Melquiond, "When double rounding is odd".)
    """
    rounded = Decimal(value)
    if rounded == exact or math.frexp(value)[0] * 2**53 % 2 == 1:
        return value
    return math.nextafter(value, math.inf if exact > rounded else -math.inf)


def _hex_float_bits(type_: Type, text: str) -> int:
    match = _HEX_FLOAT.fullmatch(text)
    assert match is not None
    part = match["part"] or ""
    try:
        value = float.fromhex(text)
    except OverflowError:
        value = math.inf
    bits = from_float(type_, value)
    numerator, denominator = abs(to_float(type_, bits)), 1
    if math.isfinite(numerator):
        numerator, denominator = numerator.as_integer_ratio()
    digits = int(match["whole"] + part, 16)
    exact = digits == 0 == numerator
    if digits and numerator and math.isfinite(numerator):
        # A finite value that is not 0 bounds the power by the text's length.
        power = int(match["power"]) - 4 * len(part)
        left, right = digits * denominator, int(numerator)
        exact = left << max(power, 0) == right << max(-power, 0)
    if not exact:
        raise LiteralFault(f"{text} is not exactly an {type_}")
    return bits


def format_literal(type_: Type, bits: int) -> str:
    """The text of a literal; `literal_bits` reads it back as the same bits."""
    if type_.is_float:
        value = to_float(type_, bits)
        if math.isnan(value) and bits != CANONICAL_NAN[type_]:
            return f"bits:{bits:#x}"
    return format_value(type_, bits)


def string_bytes(text: str) -> bytes:
    """The bytes of a quoted string; raises LiteralFault at an unknown escape."""
    body, result, last = text[1:-1], bytearray(), 0
    for match in _ESCAPE.finditer(body):
        result += body[last : match.start()].encode("utf-8", "replace")
        last = match.end()
        code = match[1]
        if len(code) == 3:
            result.append(int(code[1:], 16))
        elif code in _ESCAPES:
            result += _ESCAPES[code]
        else:
            raise LiteralFault(
                f'unknown escape \\{code}; \\n \\r \\t \\0 \\" \\\\ and \\xNN are allowed'
            )
    return bytes(result + body[last:].encode("utf-8", "replace"))


def format_bytes(data: bytes) -> str:
    """A quoted string of ASCII characters that denotes these bytes."""
    return (
        '"'
        + "".join(
            _ESCAPED[byte]
            if byte in _ESCAPED
            else chr(byte)
            if 32 <= byte < 127
            else f"\\x{byte:02x}"
            for byte in data
        )
        + '"'
    )


def format_string(text: str) -> str:
    """A quoted string that denotes this text; printable characters are not escaped."""
    return (
        '"'
        + "".join(
            character
            if character.isprintable() and character not in '"\\'
            else format_bytes(character.encode())[1:-1]
            for character in text
        )
        + '"'
    )


def name(text: str) -> str:
    """The name that a token denotes; raises LiteralFault."""
    if text.startswith('"'):
        try:
            return string_bytes(text).decode()
        except UnicodeDecodeError:
            raise LiteralFault("a name must be UTF-8") from None
    if not is_bare_name(text):
        raise LiteralFault(f"expected a name, found {text!r}; other names stand in quotes")
    return text


def is_bare_name(text: str) -> bool:
    """True if a text is a name that needs no quotes."""
    return _BARE_NAME.fullmatch(text) is not None


def format_name(text: str) -> str:
    """A name in assembly syntax: bare if that is unambiguous, else quoted."""
    is_type = any(text == str(type_) for type_ in Type)
    is_bare = text.isascii() and is_bare_name(text) and not is_type
    return text if is_bare else format_string(text)
