# SPDX-License-Identifier: Apache-2.0
"""Make the constants of the f32 functions, bit for bit:

    python -m tests.mathematics.make            write core/ferryvm/isa/mathematics/single/coefficient.py
    python -m tests.mathematics.make --check    compare with it instead

Polynomials are near-minimax (`tests.mathematics.chebyshev`). A nudge moves coefficients by units in
the last place, so that operands which come out wrong with the nearest coefficients come out right:
RLIBM's idea (Lim and Nagarakatte, "High performance correctly rounded math libraries for 32-bit
floating point representations", PLDI 2021), that a coefficient has to give right results and not to
be near a number, in its simplest form. `tests.mathematics.nudge` finds them.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

from mpmath import mp, mpf
from tests.mathematics.chebyshev import bits, double, interpolate, nudged, single, split, truncated

TARGET = Path("core/ferryvm/isa/mathematics/single/coefficient.py")

NUDGES: dict[str, list[int]] = {
    "LOG": [-10, -10, -10, 10, 7, -10],
    "ATAN": [2, 0, 3, -2],
    "ERFC": [2, 2, -4],
}

EXCEPTIONS: dict[str, tuple[tuple[int, int], ...]] = {
    "LOG": (
        (0x4C5D_65A5, 0x418F_034B),
        (0x65D8_90D3, 0x4254_D1F9),
        (0x6F31_A8EC, 0x4284_5A89),
    ),
    "SIN": ((0x4619_9998, 0xBEB1_FA5D), (0xC619_9998, 0x3EB1_FA5D)),
    "LOG10": ((0x0EFE_EE7A, 0xC1E9_9D23),),
    "LOG1P": (
        (0x3540_0003, 0x353F_FFFF),
        (0x3710_001B, 0x370F_FFF3),
        (0x4107_8FEB, 0x400F_E5E7),
        (0x65D8_90D3, 0x4254_D1F9),
        (0x6F31_A8EC, 0x4284_5A89),
        (0xB53F_FFFD, 0xB540_0001),
        (0xB70F_FFE5, 0xB710_000D),
        (0xBB0E_C8C4, 0xBB0E_F0A5),
    ),
    "ACOS": ((0x3288_85A3, 0x3FC9_0FDB), (0x3982_6222, 0x3FC9_07B5)),
    "COS": ((0x5F18_B878, 0x3F7F_14BB), (0x7908_CD73, 0x3F79_8BB5)),
    "EXP2": ((0x3B42_9D37, 0x3F80_4385), (0xBCF3_A937, 0x3F7A_C6B1)),
}
"""Operands that come out wrong, as `tests.mathematics.exhaustive` prints them, with the right
results, by function."""

ERFC_POLE, ERFC_SCALE, ERFC_SHIFT = 3, 8, -1.625
"""d = 1 / (a + pole), and the variable of the polynomial is scale d + shift."""

ARC_ERROR, ATAN_ERROR, ERF_ERROR = (mpf(each) * mpf(2) ** -37 for each in (4, 10, 13))
"""More than the relative errors of functions by pieces, by which their coefficients are less."""

HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
"""Constants of the f32 functions, as bits of f64, or of f32 those of eight digits.

Made by `python -m tests.mathematics.make`; not to be edited.
"""
'''


def tables() -> dict[str, tuple[str, Any]]:
    """Constants by name: what they are, and their bits."""
    ln2 = mp.log(2)
    found: dict[str, tuple[str, Any]] = {}

    def whole(name: str, meaning: str, value: Any) -> None:
        found[name] = meaning, value

    def fitted(name: str, meaning: str, f: Any, low: Any, high: Any, terms: int) -> None:
        values = [bits(c) for c in interpolate(f, low, high, terms)]
        whole(name, meaning, nudged(values, NUDGES.get(name, [])))

    def short(name: str, meaning: str, f: Any, low: Any, high: Any, terms: int) -> None:
        whole(name, meaning, [single(c) for c in interpolate(f, low, high, terms)])

    def pieces(name: str, f: Any, width: str, terms: int, sums: int, error: Any) -> None:
        biased, step = lambda x: f(x) * (1 - error), mp.mpf(width)
        rows = [_piece(biased, step * j, step, terms, sums) for j in range(32)]
        of = f"{name.lower()} near multiples of {width}"
        whole(f"{name}_SUMS", f"coefficients of {of}, in two parts each", [a for a, _ in rows])
        whole(f"{name}_TERMS", f"further coefficients of {of}", [b for _, b in rows])

    whole("LOG2_E", "log2 e", bits(1 / ln2))
    whole("MINUS_LN2", "-ln 2 in two parts, the first a multiple of 2^-40", split(-ln2, 40))
    whole("LN2", "ln 2 in two parts", pair(ln2))
    whole("LOG10_2", "log10 2 in two parts", pair(mp.log10(2)))

    half = ln2 / 2 * mpf("1.0001")
    fitted("EXP", "(e^r - 1) / r", lambda r: mp.expm1(r) / r, -half, half, 11)
    half = mpf("0.50001")
    exp2_slope = lambda r: mp.expm1(r * ln2) / r if r else ln2
    fitted("EXP2", "(2^r - 1) / r", exp2_slope, -half, half, 11)

    whole("LN2_SHORT", "ln 2 in two parts of f32", short_pair(ln2))
    whole("LN2_32", "ln 2 / 32 in two parts of f32", short_pair(ln2 / 32))
    powers = [mpf(2) ** (mpf(j) / 32) for j in range(32)]
    words = [single(each) - (j << 18) & 0xFFFF_FFFF for j, each in enumerate(powers)]
    whole("EXP_WORDS", "bits of 2^(j/32) as f32, less j 2^18", words)
    rests = [single(mp.log(each / rounded(each))) for each in powers]
    whole("EXP_RESTS", "logarithms of 2^(j/32) over that f32", rests)
    end = ln2 / 64 * mpf("1.01")
    exp_rest = lambda r: (mp.expm1(r) - r) / r**2  # no node may be near 0
    short("EXP_QUICK", "(e^r - 1 - r) / r^2", exp_rest, -end, end * mpf("1.01"), 3)

    top = (ln2 / 64 * mpf("1.01")) ** 2
    cosh_rest = lambda u: (mp.cosh(mp.sqrt(u)) - 1) / u
    short("COSH_QUICK", "(cosh(r) - 1) / r^2 over r^2", cosh_rest, 0, top, 2)
    sinh_rest = lambda u: (mp.sinh(mp.sqrt(u)) / mp.sqrt(u) - 1) / u
    short("SINH_QUICK", "(sinh(r) / r - 1) / r^2 over r^2", sinh_rest, 0, top, 2)

    cs, middles = _short_inverses(), range(32)
    whole("LOG_INVERSES", "inverses near those of 32 ranges of a mantissa", list(map(single, cs)))
    for name, scale in (("LOG", mpf(1)), ("LOG2", 1 / ln2), ("LOG10", 1 / mp.log(10))):
        values = [-mp.log(cs[j]) * scale for j in middles]
        tops = [truncated(each, 16) for each in values]
        whole(f"{name}_TOPS", "their logarithms, multiples of 2^-16", list(map(single, tops)))
        rests = [single(a - b) for a, b in zip(values, tops, strict=True)]
        whole(f"{name}_RESTS", "what is missing", rests)
        step = truncated(ln2 * scale, 16)
        whole(
            f"{name}_STEP",
            "the logarithm of 2 likewise",
            [single(step), single(ln2 * scale - step)],
        )
        whole(f"{name}_SCALE", "that of e, in two parts of f32", short_pair(scale))
    log_rest = lambda r: (mp.log1p(r) - r + r**2 / 2) / r**3
    short("LOG_QUICK", "(ln(1 + r) - r + r^2 / 2) / r^3", log_rest, "-0.0313", "0.0315", 5)

    log_top = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mpf("1.0001")) ** 2

    def artanh(scale: Any) -> Any:
        return lambda u: 2 * mp.atanh(mp.sqrt(u)) / mp.sqrt(u) * scale

    fitted("LOG", "2 artanh(s) / s over s^2", artanh(1), 0, log_top, 9)
    log1p_tail = lambda u: (artanh(1)(u) - 2) / u
    fitted("LOG1P", "(2 artanh(s) / s - 2) / s^2 over s^2", log1p_tail, 0, log_top, 8)
    fitted("LOG2", "the same over ln 2", artanh(1 / ln2), 0, log_top, 9)
    fitted("LOG10", "the same over ln 10", artanh(1 / mp.log(10)), 0, log_top, 9)

    bounds = (50, 77, 102)
    whole("INVERSE_PI_BOUNDS", "ends of ranges of |x|, as exponents of 2", bounds)
    whole("INVERSE_PI", "1 / pi modulo 2 for each range", inverse(1 / mp.pi, bounds))
    bounds = (49, 76, 101)
    whole("INVERSE_HALF_PI_BOUNDS", "the same", bounds)
    whole("INVERSE_HALF_PI", "2 / pi modulo 2 for each range", inverse(2 / mp.pi, bounds))

    def sine(scale: Any) -> Any:
        return lambda u: mp.sin(scale * mp.sqrt(u)) / mp.sqrt(u)

    fitted("SIN_PI", "sin(pi h) / h over h^2", sine(mp.pi), 0, mpf("0.5535") ** 2, 9)
    top = mpf("0.5222") ** 2
    fitted("SIN_HALF_PI", "sin(pi/2 h) / h over h^2", sine(mp.pi / 2), 0, top, 7)
    cosine = lambda u: mp.cos(mp.pi / 2 * mp.sqrt(u))
    fitted("COS_HALF_PI", "cos(pi/2 h) over h^2", cosine, 0, top, 8)

    whole("PI", "pi", bits(mp.pi))
    whole("HALF_PI", "pi / 2", bits(mp.pi / 2))
    whole("QUARTER_PI", "pi / 4", bits(mp.pi / 4))
    quarter = mpf("0.25")

    def arcsine(u: Any) -> Any:
        return mp.asin(mp.sqrt(u)) / mp.sqrt(u)

    def arctangent(u: Any) -> Any:
        return mp.atan(mp.sqrt(u)) / mp.sqrt(u)

    fitted("ASIN", "arcsin(s) / s over s^2", arcsine, 0, quarter, 14)
    for name, share in (("ARC", ARC_ERROR), ("ATAN", ATAN_ERROR)):
        less = [_coarse_pair(each * (1 - share)) for each in (mp.pi / 2, mp.pi)]
        whole(f"{name}_ANGLES", "pi / 2 and pi, less an error", less)
    pieces("ASIN", mp.asin, "33/2048", 5, 2, ARC_ERROR)
    top = (mp.tan(mp.pi / 8) * mpf("1.0001")) ** 2
    fitted("ATAN", "arctan(s) / s over s^2", arctangent, 0, top, 12)
    pieces("ATAN", mp.atan, "33/1024", 6, 2, ATAN_ERROR)

    fitted("ATAN_TAIL", "(arctan(s) / s - 1) / s^2", lambda u: (arctangent(u) - 1) / u, 0, top, 12)
    # 4 times the first part is exact.
    whole("QUARTER_PI_PARTS", "pi / 4, the first part with 50 bits", split(mp.pi / 4, 50))

    c0, c1 = 2 / ln2, 2 / ln2 / 3
    whole("POW_LOG2_FIRST", "2 / ln 2 and a third of it, each in two parts", [pair(c0), pair(c1)])
    log2_tail = lambda u: (artanh(1 / ln2)(u) - c0 - c1 * u) / u**2
    fitted(
        "POW_LOG2",
        "(2 artanh(s) / (s ln 2) - 2 / ln 2 - 2 s^2 / (3 ln 2)) / s^4",
        log2_tail,
        0,
        log_top,
        8,
    )
    e1 = ln2**2 / 2
    whole("POW_EXP2_FIRST", "ln 2 and its square over 2, each in two parts", [pair(ln2), pair(e1)])

    def exp2_tail(r: Any) -> Any:
        return ((mp.expm1(r * ln2) / r - ln2) / r - e1) / r  # no node may be near 0

    fitted("POW_EXP2", "the rest of (2^r - 1) / r, over r^2", exp2_tail, -half, mpf("0.5001"), 11)

    inverses = _inverses()
    whole(
        "POW_INVERSES",
        "inverses of the middles of 16 ranges of a mantissa",
        list(map(bits, inverses)),
    )
    logarithms = [bits(-mp.log(each, 2)) for each in inverses]
    whole("POW_LOGARITHMS", "binary logarithms of the inverses of these", logarithms)
    log2_slope = lambda r: mp.log1p(r) / r / ln2
    fitted("POW_FAST_LOG2", "log2(1 + r) / r", log2_slope, "-0.0313", "0.0626", 9)
    fitted("POW_FAST_EXP2", "(2^r - 1) / r", exp2_slope, "-0.03126", "0.03126", 5)

    # Inverse cube root: r is near a^(-1/3) and d = a r^3 - 1; the factor that makes it near is
    # (1 + d)^(-1/3) = 1 + d Q(d).
    def cube(d: Any) -> Any:
        return (mp.cbrt(1 / (1 + d)) - 1) / d

    fitted("CBRT_COARSE", "((1 + d)^(-1/3) - 1) / d, for the estimate", cube, "-0.13", "0.12", 5)
    short(
        "CBRT_QUICK",
        "the same in f32, for an estimate by bits of f32",
        cube,
        "-0.1025",
        "0.1025",
        4,
    )
    inverse_root = lambda d: (1 / mp.sqrt(1 - d) - 1) / d
    short("ROOT_QUICK", "((1 - d)^(-1/2) - 1) / d in f32", inverse_root, "-0.0683", "0.0682", 3)
    taylor = [bits(mpf(each) / 81) for each in (-27, 18, -14)]
    whole("CBRT_FINE", "the first terms of Taylor's series of the same", taylor)

    def error(t: Any) -> Any:
        return mp.erf(mp.sqrt(t + 8)) / mp.sqrt(t + 8)

    fitted("ERF", "erf(a) / a over a^2 - 8", error, -8, 8, 30)

    pieces("ERF", mp.erf, "1/8", 8, 3, ERF_ERROR)

    def complement(t: Any) -> Any:
        d = (t - ERFC_SHIFT) / ERFC_SCALE
        a = 1 / d - ERFC_POLE
        return mp.exp(a * a) * mp.erfc(a) / d

    low, high = (ERFC_SCALE / (a + ERFC_POLE) + ERFC_SHIFT for a in (mpf("10.11"), mpf(0)))
    fitted("ERFC", "exp(a^2) erfc(a) / d over d scaled, d = 1 / (a + 3)", complement, low, high, 22)
    return found


def _inverses() -> list[Any]:
    """Multiples of 2^-12 near the inverses of the middles of ranges of mantissas: ten of 1/32 from
    11/16 on, six of 1/16 from 1 on. Beside 1 they are 1, where the logarithm is small."""
    starts = [mpf(22 + n) / 32 for n in range(10)] + [1 + mpf(n) / 16 for n in range(7)]
    return [
        mpf(1) if 1 in each else truncated(2 / sum(each), 12) for each in itertools.pairwise(starts)
    ]


def _short_inverses() -> list[Any]:
    """The same of 20 ranges of 1/64 from 11/16 on and 12 of 1/32 from 1 on, multiples of 2^-5 or of
    2^-6: a mantissa of f32 times its one, less 1, is an f32."""
    starts = [mpf(44 + n) / 64 for n in range(20)] + [1 + mpf(n) / 32 for n in range(13)]
    return [
        mpf(1) if 1 in each else truncated(2 / sum(each), 5 if each[0] < 1 else 6)
        for each in itertools.pairwise(starts)
    ]


def _piece(f: Any, center: Any, width: Any, terms: int, sums: int) -> tuple[list[int], list[int]]:
    """Coefficients of f(center + t): sums of two f32, then f32. At 0 those of f(t) / t for positive
    t."""
    end = width / 2 * mpf("1.001")
    if center:
        found = interpolate(lambda t: f(center + t), -end, end, terms)
    else:
        found = [mpf(0), *interpolate(lambda t: f(t) / t, 0, end, terms - 1)]
    constant, *others = found[:sums]
    parts = [*_coarse_pair(constant), *(each for value in others for each in short_pair(value))]
    return parts, list(map(single, found[sums:]))


def _coarse_pair(value: Any) -> list[int]:
    """Bits of a multiple of 2^-22 near a number, and of the f32 nearest to the rest."""
    first = truncated(value, 22)
    return [single(first), single(value - first)]


def inverse(value: Any, bounds: tuple[int, ...]) -> list[list[int]]:
    """For each range of |x|, what is left of a factor of x if the product counts modulo 2: two
    f64, as bits. The bounds are those for which the second parts are least."""
    pairs = []
    for lowest in (None, *bounds):
        rest = value
        if lowest is not None:
            period = mpf(2) ** (24 - lowest)  # 2 over the unit of floats in the range
            rest = value - period * mp.nint(value / period)
        pairs.append(pair(rest))
    return pairs


def rounded(value: Any) -> Any:
    """The number that is the f32 nearest to one."""
    with mp.workprec(24):
        return +value


def short_pair(value: Any) -> list[int]:
    """Bits of the f32 nearest to a number, and of the one nearest to the rest."""
    return [single(value), single(value - rounded(value))]


def pair(value: Any) -> list[int]:
    """Bits of the f64 nearest to a number, and of the one nearest to the rest."""
    first = double(value)
    return [bits(first), bits(value - first)]


_EXCEPTIONAL = '"""operands and their results, as bits of f32"""\n'


def text() -> str:
    """The module."""
    lines = [HEAD]
    for name, pairs in EXCEPTIONS.items():
        rows = [f"    (0x{a:08X}, 0x{b:08X})," for a, b in pairs]
        opened, closed = f"{name}_EXCEPTIONS = (", ")"
        if len(rows) == 1:  # as the formatter wants it
            opened, rows, closed = f"{opened}{rows[0].strip()})", [], ""
        lines += [each for each in (opened, *rows, closed) if each] + [_EXCEPTIONAL]
    for name, (meaning, value) in tables().items():
        if isinstance(value, int):
            lines.append(f"{name} = {_hexadecimal(value)}")
        elif isinstance(value, tuple):
            lines.append(f"{name} = {value}")
        else:
            lines.append(f"{name} = (")
            lines += [f"    {_row(each)}," for each in value]
            lines.append(")")
        lines.append(f'"""{meaning}"""\n')
    return "\n".join(lines)


def _row(value: int | list[int]) -> str:
    if isinstance(value, int):
        return _hexadecimal(value)
    return f"({', '.join(map(_hexadecimal, value))})"


def _hexadecimal(value: int) -> str:
    digits = f"{value:08X}" if value < 1 << 32 else f"{value:016X}"
    return "0x" + "_".join(digits[n : n + 4] for n in range(0, len(digits), 4))


def main() -> None:
    """Write or compare."""
    made = text()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if made == TARGET.read_text() else f"{TARGET} is not what this makes")
    TARGET.write_text(made)


if __name__ == "__main__":
    main()
