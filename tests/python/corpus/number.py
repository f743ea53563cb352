# SPDX-License-Identifier: Apache-2.0
"""Functions on complex numbers, and functions of the library on numbers."""

from __future__ import annotations

import cmath
import math

import numpy as np

from .case import case

# --- complex numbers ------------------------------------------------------------------------


@case((-0.1 + 0.65j, 40), (0.5 + 0.5j, 40), (2j, 40))
def mandelbrot(c, limit):
    z = 0j
    for count in range(limit):
        if abs(z) > 2.0:
            return count
        z = z * z + c
    return limit


@case((5, 4), (0, 3))
def mandelbrot_set(width, height):
    counts = np.zeros((height, width), dtype=np.int64)
    for row in range(height):
        for column in range(width):
            c = complex(3 * column / width - 2, 2 * row / height - 1)
            counts[row, column] = mandelbrot(c, 30)
    return counts


@case((0.3 + 0.5j,), (-1 - 1j,), (0j,))
def newton_root(z):
    """The root of z**3 - 1 that Newton's method reaches."""
    for _ in range(20):
        derivative = 3 * z**2
        if derivative == 0:
            return None
        step = (z**3 - 1) / derivative
        z -= step
        if abs(step) < 1e-12:
            break
    return z.real, z.imag


@case((np.array([1, 2, 3, 4], dtype=complex),), (np.arange(8) * 1j,), (np.zeros(0, complex),))
def fourier_transform(values):
    """In place, radix two (Cooley and Tukey 1965)."""
    n = len(values)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            values[i], values[j] = values[j], values[i]
    size = 2
    while size <= n:
        angle = -2 * math.pi / size
        turn = complex(math.cos(angle), math.sin(angle))
        for start in range(0, n, 1):
            if start % size:
                continue
            factor = 1 + 0j
            for k in range(size // 2):
                even = values[start + k]
                odd = values[start + k + size // 2] * factor
                values[start + k] = even + odd
                values[start + k + size // 2] = even - odd
                factor *= turn
        size *= 2
    return values


@case((1, -3, 2), (1.0, 2.0, 5.0), (0, 0, 1))
def quadratic_roots(a, b, c):
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        root = complex(0, math.sqrt(-discriminant))
    else:
        root = complex(math.sqrt(discriminant))
    return (-b + root) / (2 * a), (-b - root) / (2 * a)


@case((1 + 2j, 3 - 4j), (1, 2j), (0.5, -0j), (True, 1j), (1j, 7), (1e200 + 1j, 1e200j))
@case((complex("inf"), 1j), (complex("nan+1j"), 2), (1j, complex("nan")), (-0.0, 1j), (1j, 0))
def complex_operators(a, b):
    product, total, difference = a * b, a + b, a - b
    try:
        quotient = a / b
    except ZeroDivisionError:
        quotient = None
    return product, total, difference, quotient, -a, +b, a == b, a != b, not a, bool(b)


@case((1 + 2j, 2), (1 + 2j, -3), (2j, 0), (0j, 0), (0j, -1), (1e200j, 2), (3j, 100), (2, 1j))
def complex_power(z, n):
    return z**n


@case((np.array([1 + 2j, -3j]), 1j), (np.array([1 + 2j, 0], np.complex64), 2.0))
@case((np.array([0j, 1e300j]), np.complex128(1j)), (np.array([1j, 2], np.complex64), 0))
def numpy_complex(values, factor):
    total = 0
    for value in values:
        total += value * factor
    values[0] = values[1] / factor
    values[-1] = 3
    return total, values[0] == total, abs(values[1]), values[1].real, values[0].imag, -values[1]


@case((np.arange(6).reshape(2, 3) * (1 + 1j),))
def complex_views(matrix):
    trace = 0j
    for row in matrix[:, ::-1]:
        trace += row[0] * matrix[1, 1]
    return trace, matrix[1, 1:], matrix.shape, matrix[0][2]


@case((np.arange(4) + 1j, 3), (np.arange(4) + 1j, -5), (np.arange(4) + 1j, 1 << 62))
@case((np.arange(4) + 1j, -(1 << 63)))
def complex_element(values, i):
    return values[i]


# --- functions of numbers -------------------------------------------------------------------


@case((2.675, 2), (0.5, 0), (-1234.5678, -2), (5e15 + 0.5, 0), (0.15, 1), (1e23, 2), (7, -1))
@case((25, -1), (-35, -1), (1 << 62, -19), (True, 0), (math.inf, 3), (2.5, None), (-0.4, 0))
@case((np.float64(2.675), 2), (np.float32(0.15), 1), (np.int64(7), 1), (0.1, 400), (1.5, 2.0))
def rounded_to(x, digits):
    return round(x, digits)


@case((7.5, 2.0), (-7.5, 2), (1e308, 1e-308), (0.0, -1), (1.0, 0.0), (math.inf, 2.0), (3, math.nan))
@case((-8, 1 / 3), (5e-324, 1.0))
def functions_of_two(x, y):
    close = math.isclose(x, y, abs_tol=5)
    return math.fmod(x, y), math.remainder(x, y), math.pow(x, y), math.nextafter(x, y), close


@case((0.1,), (-5e-324,), (3,), (math.inf,), (math.nan,), (1.7976931348623157e308,), (-0.0,))
def parts_of_float(x):
    fraction, exponent = math.frexp(x)
    return math.ldexp(fraction, exponent), exponent, math.modf(x), math.ulp(x)


@case((1.5, 1023), (1.0, -1074), (3.0, -1075), (5e-324, 2100), (1.0, 1 << 62), (-1.0, -(1 << 62)))
def scaled_by_power(x, n):
    return math.ldexp(x, n)


@case((np.array([1e16, 1.0, 1e-16, -1e16]),), (np.array([0.1] * 10),), (np.array([1e308, 1e308]),))
@case((np.array([math.inf, 1]),), ((1, 0.5),), (np.zeros(0),))
def exact_total(values):
    return math.fsum(values)


@case((3.0, 4.0, 12.0), (1e300, 1e300, 0), (1e-320, 0.0, 0.0), (math.nan, math.inf, 1.0))
def lengths(a, b, c):
    return math.hypot(a, b, c), math.hypot(a), math.dist((a, b), (b, c)), math.dist((), ())


@case((10, 3), (3, 10), (-1, 2), (30, 25), (5, -1))
def counted(n, k):
    return math.comb(n, k), math.perm(n, k), math.gcd(n, k, 6), math.lcm(n, k, 2), math.gcd()


@case((8, 2), (10.0, 1), (2, 0))
def logarithm(x, base):
    return math.log(x, base)


@case((0,), (255,), (-256,), (-(1 << 63),), (True,))
def bits_of(n):
    return n.bit_length(), n.bit_count(), n.conjugate(), n.real, n.imag


@case((2.0,), (2.5,), (math.inf,), (np.float32(3),), (1e300,))
def is_whole(x):
    return x.is_integer(), round(x * 0 + 1)


@case((1 - 2j,), (2.5,), (np.complex64(1 + 1j),))
def conjugated(z):
    return z.conjugate() * z, (z + 1).real


@case((np.array([3.0, -4.0, 1.0]),), (np.zeros(0),), (np.array([2, -2]),))
def extremes_by_key(values):
    least = min(values, key=lambda v: (v - 1) * (v - 1), default=None)
    greatest = max(values, default=0)
    try:
        return least, greatest, max(values, key=abs)
    except ValueError:
        return least, greatest


@case((3, -5, 4), (1, 1, 1))
def extremes_of_three(a, b, c):
    return max(a, b, c, key=abs), min([a, b, c], key=lambda v: v % 3), sum((a, b), start=c)


@case(())
def numbers_in_texts():
    return int("12"), int("ff", 16), float("-inf"), complex("1+2j")


# --- types and ranges -----------------------------------------------------------------------


@case((True,), (3,), (2.5,), (1j,), (np.float64(2),), (np.int32(1),), ((1, 2),), (np.zeros(2),))
def classified(x):
    if isinstance(x, bool):
        return x, 1
    if isinstance(x, int):
        return 2
    if isinstance(x, float | complex):
        return 3, isinstance(x, complex)
    if isinstance(x, (np.integer, np.ndarray)):  # also as a tuple
        return 4
    return type(x) == tuple, type(x) in (int, tuple)  # types are compared, too


@case((1, 20, 3), (20, 1, -7), (1, 5, 0), (-(1 << 63), (1 << 63) - 1, 1 << 62), (5, 1, 2))
def ranges_of_any_step(start, stop, step):
    total = 0
    for k, i in enumerate(range(start, stop, step)):
        total = total * 3 + i % 1000 + k
    return total, len(range(start, stop, step)), start in range(stop, start, step)


@case((50,))
def sieve_with_steps(n):
    is_prime = np.ones(n + 1, dtype=bool)
    for p in range(2, n + 1):
        if is_prime[p]:
            for multiple in range(p * p, n + 1, p):
                is_prime[multiple] = False
    return sum(is_prime[2:])


@case((1, 80, 7))
def product_leaves_a_stepped_range(start, stop, step):
    total = 1
    for i in range(start, stop, step):
        total *= i * i
    return total


# --- NumPy's scalars ------------------------------------------------------------------------


@case((np.array([1, 1 << 63, 7], np.uint64), 5), (np.array([1, 1 << 31, 7], np.uint32), -1))
@case((np.array([250, 3, 7], np.uint8), np.uint8(9)), (np.array([-128, 3, 7], np.int8), 2))
def numpy_integers(values, k):
    total = 0
    for value in values:
        total += value * value
    values[0] = values[1] // 3
    values[2] = k
    largest = max(values[0], values[1])
    return total, values[1] >> 3, values[1] << 2, ~values[1], -values[1], values[1] % 5, largest


@case((np.uint64(1 << 63), np.int64(-1)), (np.uint32(5), np.int8(-3)), (np.int64(3), np.int64(-1)))
@case((np.int16(7), np.int16(0)), (np.float32(-7), np.float32(2)), (np.uint8(3), np.uint8(200)))
def numpy_mixtures(a, b):
    return a + b, a < b, a == b, a // b, a % b, a**b, float(a), bool(b), np.float64(a)


@case((np.float64(-0.0), 0.0), (1, 2.5), (np.float32(math.nan), 1.0), (np.int8(-5), np.uint8(3)))
def numpy_functions(a, b):
    least, greatest = np.minimum(a, b), np.maximum(a, b)
    return least, greatest, np.clip(a, -1, b), np.sign(a), np.add(a, b), np.isnan(a), np.square(b)


@case((np.uint16(70),), (np.int32(-3),), (np.uint64((1 << 64) - 1),), (3,), (np.bool_(True),))
def numpy_conversions(x):
    return np.uint8(np.int64(x)), np.uint32(np.int64(x)), np.int16(np.int64(x)), np.bool_(x)


# --- cmath ----------------------------------------------------------------------------------


@case((8, 3), (-1.0, 2), (1j, 4), (complex("nan"), 1), (complex("inf"), 1), (0, 2))
def roots_of(z, n):
    if z == 0:
        return cmath.sqrt(z), cmath.isnan(z), n
    size, angle = cmath.polar(z)
    total = 0j
    for k in range(n):
        total += cmath.rect(size ** (1 / n), (angle + 2 * math.pi * k) / n)
    return cmath.isclose(total, 0, abs_tol=1e-9) or n == 1, cmath.isfinite(z)


@case((0.5 + 0.25j,), (2,), (-1.5j,), (complex(1e400, 1),), (800.0,))
def euler(z):
    turned = cmath.exp(1j * z)
    difference = cmath.cos(z) + 1j * cmath.sin(z) - turned
    inverse = cmath.log(cmath.exp(z)) - z
    square = cmath.sqrt(z) ** 2
    hyperbolic = cmath.cosh(z) ** 2 - cmath.sinh(z) ** 2
    quotient = cmath.tan(z) - cmath.sin(z) / cmath.cos(z)
    size = abs(difference) + abs(inverse) + abs(hyperbolic - 1) + abs(quotient)
    return size < 1e-9, cmath.isclose(square, z), cmath.phase(z) == cmath.log(z).imag


@case((np.array([1 + 1j, -2, 0.5j]), 3), (np.array([2j, 1], np.complex64), 1))
def polynomial_value(coefficients, x):
    total = 0
    for coefficient in coefficients[::-1]:
        total = total * x + coefficient
    return total, total.conjugate().imag, total == 0


# --- number theory, statistics, simulation --------------------------------------------------


@case((561, 2), (7919, 3), (1 << 61, 5), (1, 2))
def passes_fermat(n, base):
    return n > 1 and pow(base, n - 1, n) == 1


@case((7, 3, 11), (5, 2, 10))
def chinese_remainder(a, b, modulus):
    other = modulus + 1
    inverse = pow(modulus, -1, other)
    return (a + (b - a) * inverse % other * modulus) % (modulus * other), math.lcm(modulus, other)


@case((1_000_003, 12), (91, 5))
def pollard_rho(n, limit):
    slow = fast = 2
    for _ in range(limit):
        slow = (slow * slow + 1) % n
        fast = (fast * fast + 1) % n
        fast = (fast * fast + 1) % n
        factor = math.gcd(abs(slow - fast), n)
        if factor > 1:
            return factor
    return n


@case((np.array([2.5, 0.1, 7.25, -3.0]),), (np.array([1.0]),), ((1, 2, 3),))
def described(values):
    n = len(values)
    mean = math.fsum(values) / n
    spread = math.fsum([(x - mean) ** 2 for x in values]) / max(n - 1, 1)
    farthest = max(values, key=lambda x: abs(x - mean))
    return round(mean, 3), round(math.sqrt(spread), 3), farthest, min(values, default=0)


@case((np.array([1.0, 2.0, 4.0]), np.array([2.0, 3.9, 8.2])), (np.ones(2), np.zeros(2)))
def fitted_line(xs, ys):
    n = len(xs)
    sum_x, sum_y = math.fsum(xs), math.fsum(ys)
    sum_xx = math.fsum(x * x for x in xs)
    sum_xy = math.fsum(x * y for x, y in zip(xs, ys))  # noqa: B905  # of one length
    slope = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x)
    return round(slope, 4), round((sum_y - slope * sum_x) / n, 4)


@case((np.uint64(88172645463325252), 20), (np.uint64(1), 3))
def xorshift(state, count):
    """Marsaglia's generator, with integers that wrap."""
    total = 0.0
    for _ in range(count):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        total += float(state >> np.uint64(11)) / 9007199254740992.0
    return state, total


@case((np.uint32(42), 16), (np.uint32(0), 1))
def random_walk(seed, steps):
    position, farthest = 0j, 0.0
    for _ in range(steps):
        seed = seed * np.uint32(1664525) + np.uint32(1013904223)
        position += (1, 1j, -1, -1j)[0] if seed >> np.uint32(31) else 1j
        farthest = max(farthest, position.real + position.imag)
    return position, farthest, seed


@case((1.0, 0.3, 50), (1, 0, 3))
def damped_oscillator(x, damping, steps):
    state = complex(x, 0)
    for _ in range(steps):
        state += 0.05 * complex(state.imag, -state.real - damping * state.imag)
    return round(state.real, 9), round(state.imag, 9), abs(state) < abs(x) + 1


@case((np.uint64((1 << 63) - 1),), (np.int64((1 << 53) + 1),), (np.uint8(7),))
def floors_of_scalars(x):
    return math.floor(x), math.ceil(x), round(x), np.float64(x) == 1j, 1j * np.float64(x)


@case((-(1 << 63), 1 << 62), (0, 50))
def long_ranges(start, stop):
    return len(range(start, stop, 7)), len(range(stop, start, -1))
