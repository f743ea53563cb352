# SPDX-License-Identifier: Apache-2.0
"""Python functions of everyday numeric code, and arguments for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
"""A function, and the arguments of a call."""


def case(*calls: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function with the arguments of some calls."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.extend((function, arguments) for arguments in calls)
        return function

    return add


# --- number theory --------------------------------------------------------------------------


@case((91, 35), (0, 0), (-12, 18), (1 << 62, 6))
def gcd(a, b):
    while b:
        a, b = b, a % b
    return abs(a)


@case((240, 46), (-7, 5))
def extended_gcd(a, b):
    s, last_s = 0, 1
    t, last_t = 1, 0
    while b != 0:
        q = a // b
        a, b = b, a - q * b
        last_s, s = s, last_s - q * s
        last_t, t = t, last_t - q * t
    return a, last_s, last_t


@case((97,), (1,), (91,), (2,))
def is_prime(n):
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


@case((20,), (0,))
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@case((20,), (25,), (-1,))
def factorial(n):
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    result = 1
    for i in range(2, n + 1):
        result *= i
    return result


@case((27,), (1,))
def collatz(n):
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


@case((3, 1000, 1009), (2, 10, 1))
def power_modulo(base, exponent, modulus):
    result = 1
    base %= modulus
    while exponent > 0:
        if exponent & 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return result


@case((10, 3), (7, 0), (-2, 5), (2, 62), (2, 64))
def power(a, n):
    return a**n


@case((100,))
def count_primes(n):
    count = 0
    for k in range(2, n):
        if is_prime(k):
            count += 1
    return count


@case((12,), (496,), (1,))
def is_perfect(n):
    total = 0
    for d in range(1, n):
        if n % d == 0:
            total += d
    return total == n


@case((0,), (1234567,), (-15,))
def digit_sum(n):
    n = abs(n)
    total = 0
    while n:
        n, digit = divmod_by_ten(n)
        total += digit
    return total


def divmod_by_ten(n):
    return n // 10, n % 10


# --- kinds of numbers -----------------------------------------------------------------------


@case((3,), (0,))
def halves(n):
    total = 0
    for _ in range(n):
        total += 0.5
    return total


@case((7,), (7.5,), (True,), (np.float64(7.25),), (np.int32(7),))
def clamp(x):
    return max(0, min(x, 10)) if -5 <= x < 50 else x


@case((3, None), (3, 4), (3.0, 0), (3, 0))
def divided(x, y):
    if y is None:
        return x
    return x / y


@case((7, 2), (-7, 2), (7, -2), (True, 2), (7, 0), (-(2**63), -1))
def floored(a, b):
    return a // b, a % b


@case((7, 2), (-7, 62), (-1, 70), (1, 62), (1, 63), (1, -1))
def shifted(a, b):
    return a >> b, a << b


@case((12, 10), (True, False), (True, 6), (-1, 255))
def bits(a, b):
    return a & b, a | b, a ^ b


@case((5, 2.0), (2, 2.5), (2**53, 0.5), (True, 1.0), (float("nan"), 1.0))
def compared(a, b):
    return a < b, a <= b, a == b, a != b, a > b, a >= b


@case((1.5,), (-1.5,), (2.5,), (-0.0,), (float("nan"),), (float("inf"),), (1e300,), (3,))
def rounded(x):
    return math.floor(x), math.ceil(x), int(x), round(x)


@case((3,), (-3.5,), (True,), (np.float32(-2),), (-(2**63),))
def magnitude(x):
    return abs(x), -x, +x


@case((1, 2.0, True), (False, 0, 0.0))
def logic(a, b, c):
    return a and b, b or c, not c, (a or b) and c


@case((3,))
def chained(x):
    return 1 < x < 5, 1 < x > 5, (x > 1) == 1


@case((np.float32(1.5), 2), (np.float32(1.5), 0.1), (np.float64(0.1), 3), (np.int32(2**30), 4))
def numpy_scalars(x, y):
    return x + y, x - y, x * y


@case((np.int64(7), np.int64(0)), (np.int64(-(2**63)), np.int64(-1)), (np.int64(-7), 2))
def numpy_division(x, y):
    return x // y, x % y


@case((np.float64(1.0), 0.0), (np.float64(0.0), 0), (np.float64(-1.0), np.float64(0.0)))
def numpy_by_zero(x, y):
    return x / y


@case((4,), (1,), (0,), (-1,))
def early(n):
    for i in range(n):
        if i == 2:
            break
    else:
        return False, i
    return True, i


@case((3.0, 4.0))
def hypotenuse(a, b):
    return math.sqrt(a * a + b * b)


@case((-1.0,), (4,), (float("inf"),))
def square_root(x):
    return math.sqrt(x)


@case((5, 0), (2, 7))
def asserted(a, b):
    assert b != 0, "b must not be 0"
    return a % b


@case((3,))
def later(n):
    total = 0
    for k in (1, 2.5, n):
        total += k
    return total


# --- lists ----------------------------------------------------------------------------------


@case((30,), (2,))
def primes(n):
    found = []
    for k in range(2, n):
        for p in found:
            if k % p == 0:
                break
        else:
            found.append(k)
    return found


@case((9,), (0,))
def squares(n):
    return [i * i for i in range(n) if i % 2], [i / 2 for i in range(n)]


@case((4,))
def pairs(n):
    return [i * 10 + j for i in range(n) for j in range(i)]


@case((4,), (0,), (-1,))
def filled(n):
    xs = [0] * n
    for i, x in enumerate(xs):
        xs[i] = x + i
    return xs, len(xs), any(xs), all(xs)


@case((5,), (0,))
def totals(n):
    return sum([i / 2 for i in range(n)]), sum(range(n)), max([3, 1, n]), min((2.5, n))


@case((0,))
def empty_maximum(n):
    return max([i + 1 for i in range(n)])


@case((3, 0), (3, 2), (3, 3), (3, -3))
def stack(n, i):
    xs = [2 * k for k in range(n)]
    ys = xs
    ys.append(7)
    top = xs.pop()
    ys[i - 1] = top
    return xs, ys[i], top


@case((3,))
def emptied(n):
    xs = [1] * n
    total = 0
    while True:
        total += xs.pop()
        if total > n:
            return total


@case((20,), (30,), (1,))
def from_math(n):
    return (
        math.gcd(n, 12),
        math.comb(n, 2),
        math.isqrt(n),
        divmod(n, 7),
        pow(3, n, 1000),
        math.factorial(n),
    )


@case((1 << 40, 3))
def list_beyond_64_bits(n, k):
    xs = [n]
    ys = xs
    for _ in range(k):
        xs.append(int(xs[-1] % 1000) * n)
    ys.append(n)
    return n * n, xs, ys


# --- exceptions -----------------------------------------------------------------------------


@case((7, 2), (7, 0))
def safe_quotient(a, b):
    try:
        return a // b
    except ZeroDivisionError:
        return None


@case((np.arange(3.0), 1), (np.arange(3.0), 5), (np.arange(3.0), 7))
def looked_up(xs, i):
    try:
        if i == 7:
            raise KeyError("seven")
        return xs[i]
    except IndexError:
        return -1.0
    except (KeyError, ValueError):
        return -2.0


def below_three(n):
    if n > 2:
        raise ValueError("too big")
    return n


@case((5,))
def all_clauses(n):
    total = 0
    for i in range(n):
        try:
            total += below_three(i)
        except ValueError:
            total += 100
            continue
        else:
            total += 1000
        finally:
            total += 1
    return total


@case((np.zeros(1), 2), (np.zeros(1), 0))
def finally_after_return(xs, n):
    try:
        return 10 // n
    finally:
        xs[0] = 5


@case((0,), (2,))
def raised_again(n):
    try:
        return 1.0 / n
    except ArithmeticError as error:
        if n == 0:
            raise error  # noqa: TRY201  # that is what is compiled
        return 0.0


@case((1 << 40,), (3,))
def overflow_is_none(n):
    try:
        return n * n
    except OverflowError:
        return 0


# --- arrays ---------------------------------------------------------------------------------


@case((np.arange(5.0), np.arange(5.0)), (np.zeros(0), np.zeros(0)))
def dot(xs, ys):
    total = 0.0
    for i in range(len(xs)):
        total += xs[i] * ys[i]
    return total


@case((np.arange(6.0).reshape(2, 3), 2.0), (np.ones((0, 3)), 1.0))
def scale(a, k):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] *= k


@case((np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4), np.zeros((2, 4))))
def multiply(a, b, out):
    rows, inner = a.shape
    for i in range(rows):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(inner):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@case((np.array([3, 1, 2, 5, 4]),), (np.array([2.5, -1.0]),), (np.zeros(0, np.int32),))
def insertion_sort(a):
    for i in range(1, len(a)):
        value = a[i]
        j = i - 1
        while j >= 0 and a[j] > value:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = value


@case((np.array([1, 3, 5, 7]), 5), (np.array([1, 3, 5, 7]), 4))
def binary_search(a, wanted):
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        if a[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(a) and a[low] == wanted else -1


@case((np.arange(5), 5), (np.arange(5), -6), (np.arange(5), -1), (np.arange(5), 2))
def element(a, i):
    return a[i]


@case((np.arange(4.0), 1), (np.arange(4.0), 9))
def changed_before_error(a, i):
    a[0] = 7
    a[i] = 8
    return a[0]


@case((np.arange(6.0), 20), (np.arange(2.0), 3))
def mixed_iteration(xs, n):
    total = 0.0
    for i, (x, y) in enumerate(zip(xs, range(n, 0, -2))):  # noqa: B905  # the plain form
        if i > 2 and x < 5.0:
            continue
        total += x * y
    total = total + 1
    return total, i


@case((np.array([True, False, True]),), (np.zeros(0, bool),))
def count_true(flags):
    count = 0
    for flag in flags:
        if flag:
            count += 1
    return count


@case((np.array([250, 3], np.uint8), np.array([10, 20], np.uint8)))
def narrow(a, b):
    return a[0] + b[0], a[1] * b[1], a[1] - b[1]


@case((np.array([1.5, 2.5], np.float32),))
def single(a):
    return a[0] * 3 + 1, a[1] / 2, a[0] < a[1], float(a[0])


@case((10, 25), (5, 0))
def coins(amount, limit):
    """Ways to pay an amount with coins of 1, 2 and 5, by recursion."""
    if amount == 0:
        return 1
    if amount < 0 or limit == 0:
        return 0
    return (
        coins(amount - 1, 1)
        + (coins(amount - 2, 2) if limit >= 2 else 0)
        + (coins(amount - 5, 5) if limit >= 5 else 0)
    )


@case((0.0, 1.0, 10))
def integral(a, b, n):
    h = (b - a) / n
    total = 0.5 * (a * a + b * b)
    for i in range(1, n):
        x = a + i * h
        total += x * x
    return total * h


@case((2.0,), (0.0,))
def newton(x):
    guess = x if x > 1 else 1.0
    for _ in range(20):
        better = 0.5 * (guess + x / guess)
        if better == guess:
            break
        guess = better
    return guess


@case((20,))
def logistic(n):
    x = 0.3
    for _ in range(n):
        x = 3.7 * x * (1.0 - x)
    return x


@case((5,))
def random_walk(steps):
    state = 12345
    place = 0
    for _ in range(steps):
        state = (state * 1103515245 + 12345) % 2147483648
        place += 1 if state & 65536 else -1
    return place, state


@case((np.arange(8.0),))
def moments(xs):
    n = len(xs)
    mean = 0.0
    for x in xs:
        mean += x
    mean /= n
    variance = 0.0
    for x in xs:
        variance += (x - mean) ** 2
    return mean, variance / (n - 1)


@case(
    (np.frombuffer(b"kitten", np.uint8), np.frombuffer(b"sitting", np.uint8), np.zeros(8, np.int64))
)
def edit_distance(a, b, row):
    for j in range(len(row)):
        row[j] = j
    for i in range(1, len(a) + 1):
        corner = row[0]
        row[0] = i
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            best = min(row[j] + 1, row[j - 1] + 1, corner + cost)
            corner = row[j]
            row[j] = best
    return row[len(b)]


@case((np.frombuffer(b"level", np.uint8),), (np.frombuffer(b"ab", np.uint8),))
def palindrome(text):
    for i in range(len(text) // 2):  # noqa: SIM110  # a loop is what is compiled
        if text[i] != text[-1 - i]:
            return False
    return True


# --- slices, views, new arrays ---------------------------------------------------------------

GRID = np.arange(24.0).reshape(4, 6)
FLAGS = np.array([True, False])


@case((GRID,), (np.zeros((0, 3)),))
def sum_of_rows(a):
    total = 0.0
    for row in a:
        for x in row:
            total += x
    return total


@case((GRID, 1, 3, 2), (GRID, -3, 9, -1), (GRID, 3, 1, 0), (GRID, 5, 6, 2))
def views(a, i, j, k):
    return a[i:j], a[::2], a[::-1], a[i], a[:, k], a[1:3, ::-2], len(a[i:j])


@case(*((np.arange(7), i, j) for i in (-9, -3, 0, 2, 9) for j in (-8, -2, 3, 20)))
def slices(x, i, j):
    return x[i:j], x[i:], x[:j], x[j:i:-1], x[None:j]


@case(
    (GRID, 2),
)
def stores_into_views(a, i):
    v = a[1:, i]
    v[0] = 100
    w = v[::-1]
    w[0] += 1
    return w[-1], v[len(v) - 1], v.shape, a[1][i]


@case((2, 3), (0, 3), (-1, 2))
def new_arrays(n, m):
    a = np.zeros((n, m))
    b = np.ones(n, dtype=np.int32)
    c = np.full((m, n), 2.5)
    d = np.zeros_like(c[::2])
    e = np.full(3, n, dtype="float32")
    g = np.zeros(2, bool)
    for i in range(n):
        for j in range(m):
            a[i, j] = i * 10 + j
        b[i] += i
    return a, b, c, d, e, g, a[1:], np.ones_like(b)


@case((np.arange(5.0),))
def cumulated(xs):
    out = np.empty(len(xs))
    total = 0.0
    for i, x in enumerate(xs):
        total += x
        out[i] = total
    return out


@case((0,), (1,), (9,))
def from_free_arrays(i):
    if FLAGS[i % 2]:
        return GRID[i, -1] * len(GRID)
    return GRID[-1, 2]


@case((2, 0.25), (3, 1.0))
def described_error(n, x):
    if n == 2:
        raise ValueError(f"bad {n} and {x:.3f}")
    return n


@case((2,), (0,))
def caught_described_error(n):
    try:
        return described_error(n, 0.5)
    except ValueError:
        return -1


@case((np.arange(10.0), 3))
def moving_average(xs, width):
    out = np.zeros(len(xs) - width + 1)
    for i in range(len(out)):
        window = xs[i : i + width]
        out[i] = sum(window) / width
    return out


@case((np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([3.0, 5.0])))
def solved(a, b):
    """Gaussian elimination without pivots."""
    n = len(b)
    m = np.zeros((n, n + 1))
    for i in range(n):
        for j in range(n):
            m[i, j] = a[i, j]
        m[i, n] = b[i]
    for k in range(n):
        for i in range(k + 1, n):
            factor = m[i, k] / m[k, k]
            for j in range(k, n + 1):
                m[i, j] -= factor * m[k, j]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        rest = m[i, n]
        for j in range(i + 1, n):
            rest -= m[i, j] * x[j]
        x[i] = rest / m[i, i]
    return x


@case((np.array([60, 100, 120]), np.array([10, 20, 30]), 50))
def knapsack(values, weights, capacity):
    best = [0] * (capacity + 1)
    for i in range(len(values)):
        weight, value = int(weights[i]), int(values[i])
        for room in range(capacity, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[capacity]


@case((np.frombuffer(b"AGGTAB", np.uint8), np.frombuffer(b"GXTXAYB", np.uint8)))
def longest_common_subsequence(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in range(len(a)):
        for j in range(len(b)):
            if a[i] == b[j]:
                table[i + 1, j + 1] = table[i, j] + 1
            else:
                table[i + 1, j + 1] = max(table[i, j + 1], table[i + 1, j])
    return table[-1, -1]


@case((200,))
def monte_carlo(n):
    """Pi by a linear congruential generator."""
    state, inside = 1, 0
    for _ in range(n):
        state = (1103515245 * state + 12345) % 2147483648
        x = state / 2147483648
        state = (1103515245 * state + 12345) % 2147483648
        y = state / 2147483648
        if x * x + y * y <= 1.0:
            inside += 1
    return 4.0 * inside / n


@case((np.array([5, 3, 8, 1, 9, 2]),))
def quicksort(a):
    partition(a, 0, len(a) - 1)


def partition(a, low, high):
    if low >= high:
        return
    pivot, i = a[high], low
    for j in range(low, high):
        if a[j] < pivot:
            a[i], a[j] = a[j], a[i]
            i += 1
    a[i], a[high] = a[high], a[i]
    partition(a, low, i - 1)
    partition(a, i + 1, high)


@case((0.02, 100))
def decay(rate, steps):
    amount, half = 1.0, 0
    while half < steps and amount > 0.5:
        amount *= 1 - rate
        half += 1
    return half, amount


@case((np.array([2.0, 4.0, 4.0, 5.0]), np.array([1.0, 3.0, 2.0, 5.0])))
def regression(xs, ys):
    n = len(xs)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    top = bottom = 0.0
    for x, y in zip(xs, ys):  # noqa: B905  # the plain form
        top += (x - mean_x) * (y - mean_y)
        bottom += (x - mean_x) ** 2
    slope = top / bottom
    return slope, mean_y - slope * mean_x


# --- functions in functions ------------------------------------------------------------------


@case((3,), (-2, 5))
def inner_functions(n, k=2):
    base = n * 10

    def add(x, y=1):
        return x + y + base

    square = lambda v: v * v + k  # it is what is compiled

    def factorial_of(m):
        return 1 if m < 2 else m * factorial_of(m - 1)

    def both(x):
        return add(square(x)), factorial_of(x)

    base += 1
    return add(1), add(1, y=5), square(3), both(4)


@case((0.0, 1.0, 10))
def simpson(a, b, n):
    def f(x):
        return x * x * math.sqrt(x)

    h = (b - a) / n
    total = f(a) + f(b)
    for i in range(1, n):
        total += (4 if i % 2 else 2) * f(a + i * h)
    return total * h / 3


@case((3,), (1 << 62,))
def inner_beyond_64_bits(n):
    def scaled(x):
        return x * n

    total = 0
    for i in range(3):
        total += scaled(i)
    return total


@case((0, 0), (0, 2), (3, 0), (3, 2))
def lists_that_may_stay_empty(n, m):
    xs, ys, zs = [], [], [float(i) for i in range(n)]
    for i in range(n):
        xs.append(i * 0.5)
    for i in range(m):
        ys.append(i * 2)
    total = 0.0
    for x in xs:
        total += x
    doubled = xs * 2
    doubled.append(total)
    return total, len(ys), xs, ys, zs, doubled


@case((np.int64(-5), np.int64(2)), (np.int64(5), np.int64(64)), (np.int64(-5), -1))
@case((np.int32(-5), np.int32(31)), (np.int32(7), 40), (np.int32(-7), np.int32(-2)))
def numpy_shifts(a, b):
    return a << b, a >> b


# --- found by ferry fuzz --kind python ------------------------------------------------------


@case((np.array([2]), 0), (np.array([2]), 2))
def call_raises_in_try(xs, n):
    def inverse(m):
        return divmod(10, m)

    try:
        pair = inverse(n)
    except ZeroDivisionError:
        pair = 0, -1
    finally:
        xs[0] = 7
    try:
        divmod(n, 0)
    except ArithmeticError:
        xs[0] += pair[0]
    return pair


@case((np.zeros((0, 2)), 0), (np.zeros((2, 2)), 0), (np.zeros((2, 2)), 2))
def length_after_division(rows, n):
    rows[1 % n, len(rows[0]) - 1] += 1.0
    return 1 % n + len(rows[0])
