# SPDX-License-Identifier: Apache-2.0
"""Functions of everyday numeric work: texts as bytes, searching, dynamic programming, geometry, graphs on
arrays, numeric analysis, statistics, dates, finance."""

from __future__ import annotations

import math

import numpy as np

from .corpus import case


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


# --- cases --------------------------------------------------------------------------------------


@case((0,), (2,), (500,), (50,), (2.0,), (0.5,), (True,))
def kind_of_number(x):
    match x:
        case 0:
            return 10
        case 1 | 2:
            return 20
        case int(n) if n > 100:
            return n
        case float():
            return 30
        case _:
            return -1


@case(("+", 1, 2), ("minus", 5, 3), ("?", 1, 1))
def calculate(operator, a, b):
    match operator:
        case "+" | "plus":
            return a + b
        case "-" | "minus":
            return a - b
        case _:
            raise ValueError("unknown operator")


@case(((0, 0),), ((3, 0),), ((0, 4),), ((2, 2),), ((1, 2, 3),), ((1, 2, 3, 4),), (5,))
def size_of_shape(shape):
    match shape:
        case (0, 0):
            return 0
        case (x, 0) | (0, x):
            return x
        case (x, y) if x == y:
            return 2 * x
        case (x, y, _) as whole:
            return x * y + len(whole)
        case int(x):
            return x


@case(([],), ([4],), ([4, 5],), ([1, 2, 3],), ([2, 3, 9],), ((1, 2, 5),), (np.arange(3),))
def sum_of_ends(xs):
    match xs:
        case []:
            return 0
        case [x] | [x, _]:
            return x
        case [1, *rest]:
            return sum(rest)
        case [first, *_, last]:
            return first + last
    return -1


@case((15,), (4,))
def fizz_buzz(n):
    found = 0
    for i in range(n):
        match i % 3, i % 5:
            case 0, 0:
                found += 100
            case 0, _:
                found += 10
            case _, 0:
                continue
            case a, b if a == b:
                break
        found += 1
    return found


@case((None,), (True,), (False,), (1,), (2 + 3j,), (math.pi,), (-1,), (np.float32(1),))
def special_value(x):
    match x:
        case None:
            return 0
        case True:
            return 1
        case False:
            return 2
        case complex(real=r, imag=3):
            return r
        case math.pi:
            return 3
        case -1:
            return 4
        case "one" | (1, _):
            return 5
        case _:
            return x


# --- number theory and bits -------------------------------------------------------------------


@case((360,), (97,), (1,))
def prime_factors(n):
    factors = []
    p = 2
    while p * p <= n:
        while n % p == 0:
            factors.append(p)
            n //= p
        p += 1
    if n > 1:
        factors.append(n)
    return factors


@case((30,), (2,))
def sieve(n):
    is_prime = np.ones(n + 1, dtype=bool)
    is_prime[0] = is_prime[1] = False
    for i in range(2, int(n**0.5) + 1):
        if is_prime[i]:
            for j in range(i * i, n + 1, 1):
                if j % i == 0:
                    is_prime[j] = False
    return sum(1 for flag in is_prime if flag)


@case((36,), (1,))
def totient(n):
    result, p = n, 2
    while p * p <= n:
        if n % p == 0:
            while n % p == 0:
                n //= p
            result -= result // p
        p += 1
    if n > 1:
        result -= result // n
    return result


@case((3, 11), (2, 4), (10, 17))
def modular_inverse(a, m):
    if math.gcd(a, m) != 1:
        raise ValueError("no inverse exists")
    return pow(a, -1, m)


@case((0,), (255,), (2**62 + 5,))
def count_bits(n):
    count = 0
    while n:
        n &= n - 1
        count += 1
    return count


@case((6,), (0,), (-8,))
def lowest_bit(n):
    return n & -n


@case((13,), (0,))
def gray_code(n):
    code = n ^ (n >> 1)
    back, rest = code, code >> 1
    while rest:
        back ^= rest
        rest >>= 1
    return code, back == n


@case((11, 4), (1, 8))
def reversed_bits(n, width):
    result = 0
    for i in range(width):
        if n >> i & 1:
            result |= 1 << (width - 1 - i)
    return result


@case((64,), (63,), (0,))
def is_power_of_two(n):
    return n > 0 and n & (n - 1) == 0


@case((10,), (1,))
def is_happy(n):
    slow, fast = n, n
    while True:
        slow = square_digits(slow)
        fast = square_digits(square_digits(fast))
        if slow == fast:
            return slow == 1


def square_digits(n):
    total = 0
    while n > 0:
        n, d = divmod(n, 10)
        total += d * d
    return total


@case((7,), (0,))
def catalan(n):
    return math.comb(2 * n, n) // (n + 1)


@case((10,), (90,), (100,))
def fibonacci_iterative(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@case((355, 113), (7, -2))
def continued_fraction(a, b):
    terms = []
    while b:
        q, r = divmod(a, b)
        terms.append(q)
        a, b = b, r
    return terms


# --- texts as bytes -----------------------------------------------------------------------------


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


# --- sorting and searching --------------------------------------------------------------------


@case((np.array([5, 2, 9, 1]),), (np.array([1.5]),), (np.zeros(0),))
def bubble_sort(a):
    n = len(a)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swapped = True
        if not swapped:
            break
    return a


@case((np.array([4, 1, 3, 9, 7]),), (np.array([2]),))
def heap_sort(a):
    n = len(a)
    for start in range(n // 2 - 1, -1, -1):
        sift_down(a, start, n)
    for end in range(n - 1, 0, -1):
        a[0], a[end] = a[end], a[0]
        sift_down(a, 0, end)
    return a


def sift_down(a, root, end):
    while True:
        child = 2 * root + 1
        if child >= end:
            return
        if child + 1 < end and a[child] < a[child + 1]:
            child += 1
        if a[root] >= a[child]:
            return
        a[root], a[child] = a[child], a[root]
        root = child


@case((np.array([3, 1, 2, 3, 0]), 4), (np.zeros(0, np.int64), 1))
def counting_sort(a, k):
    counts = [0] * k
    for x in a:
        counts[x] += 1
    out = []
    for value, count in enumerate(counts):
        for _ in range(count):
            out.append(value)
    return out


@case((np.array([1, 2, 2, 4]), 2), (np.array([1, 2]), 9), (np.zeros(0), 1.0))
def bisect_right(a, x):
    lo, hi = 0, len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if x < a[mid]:
            hi = mid
        else:
            lo = mid + 1
    return lo


@case((np.array([7, 2, 5, 3]), 1), (np.array([7, 2, 5, 3]), 4))
def kth_smallest(a, k):
    if not 0 <= k < len(a):
        raise IndexError("k is out of range")
    for x in a:
        less = sum(1 for y in a if y < x)
        equal = sum(1 for y in a if y == x)
        if less <= k < less + equal:
            return x
    return None


@case((np.array([3.0, 1.0, 2.0]),), (np.array([2.0, 2.0]),))
def argmin(a):
    best = 0
    for i in range(1, len(a)):
        if a[i] < a[best]:
            best = i
    return best


@case((np.array([1, 2, 4, 7]), 9), (np.array([1, 2]), 10))
def two_sum(a, target):
    i, j = 0, len(a) - 1
    while i < j:
        s = a[i] + a[j]
        if s == target:
            return i, j
        if s < target:
            i += 1
        else:
            j -= 1
    return None


@case((np.array([1, 3, 5]), np.array([2, 3])), (np.zeros(0, int), np.array([1])))
def merged(a, b):
    out = np.empty(len(a) + len(b), dtype=np.int64)
    i = j = 0
    for k in range(len(out)):
        if j == len(b) or (i < len(a) and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out


# --- dynamic programming ------------------------------------------------------------------------


@case((np.array([-2, 1, -3, 4, -1, 2, 1]),), (np.array([-3, -1]),))
def maximum_subarray(a):
    best = current = a[0]
    for x in a[1:]:
        current = max(x, current + x)
        best = max(best, current)
    return best


@case((11,), (3,), (0,))
def fewest_coins(amount):
    best = [amount + 1] * (amount + 1)
    best[0] = 0
    for value in range(1, amount + 1):
        for coin in (2, 5):
            if coin <= value:
                best[value] = min(best[value], best[value - coin] + 1)
    return best[amount] if best[amount] <= amount else -1


@case((np.array([10, 9, 2, 5, 3, 7, 101]),), (np.array([1]),))
def longest_increasing(a):
    lengths = [1] * len(a)
    for i in range(len(a)):
        for j in range(i):
            if a[j] < a[i]:
                lengths[i] = max(lengths[i], lengths[j] + 1)
    return max(lengths)


@case((np.array([[1, 3, 1], [1, 5, 1], [4, 2, 1]]),), (np.array([[7]]),))
def cheapest_path(grid):
    rows, columns = grid.shape
    cost = np.zeros((rows, columns), dtype=np.int64)
    for i in range(rows):
        for j in range(columns):
            if i == 0 and j == 0:
                before = 0
            elif i == 0:
                before = cost[i, j - 1]
            elif j == 0:
                before = cost[i - 1, j]
            else:
                before = min(cost[i - 1, j], cost[i, j - 1])
            cost[i, j] = before + grid[i, j]
    return cost[-1, -1]


@case((5,), (0,))
def pascal(n):
    row = [1]
    for k in range(n):
        row.append(row[k] * (n - k) // (k + 1))
    return row


@case((np.array([10, 30, 5, 60]),))
def matrix_chain(dims):
    n = len(dims) - 1
    cost = np.zeros((n, n))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i, j] = math.inf
            for k in range(i, j):
                c = cost[i, k] + cost[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1]
                cost[i, j] = min(cost[i, j], c)
    return cost[0, n - 1]


# --- linear algebra and geometry -------------------------------------------------------------------


@case((np.arange(9.0).reshape(3, 3),), (np.ones((0, 2)),))
def transposed(a):
    out = np.zeros((a.shape[1], a.shape[0]))
    for i, row in enumerate(a):
        for j, x in enumerate(row):
            out[j, i] = x
    return out


@case((np.array([[2.0, 1.0], [1.0, 3.0]]),), (np.array([[1.0, 2.0], [2.0, 4.0]]),))
def determinant(a):
    n = len(a)
    m = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            m[i, j] = a[i, j]
    det = 1.0
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(m[i, k]) > abs(m[pivot, k]):
                pivot = i
        if m[pivot, k] == 0.0:
            return 0.0
        if pivot != k:
            for j in range(n):
                m[k, j], m[pivot, j] = m[pivot, j], m[k, j]
            det = -det
        det *= m[k, k]
        for i in range(k + 1, n):
            factor = m[i, k] / m[k, k]
            for j in range(k, n):
                m[i, j] -= factor * m[k, j]
    return det


@case((np.array([[4.0, 2.0], [2.0, 5.0]]),), (np.array([[-1.0]]),))
def cholesky(a):
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = sum(low[i, k] * low[j, k] for k in range(j))
            if i == j:
                low[i, j] = math.sqrt(a[i, i] - s)
            else:
                low[i, j] = (a[i, j] - s) / low[j, j]
    return low


@case((np.array([[2.0, 0.0], [0.0, 1.0]]), 5))
def power_iteration(a, steps):
    v = np.ones(len(a))
    for _ in range(steps):
        w = np.zeros(len(a))
        for i in range(len(a)):
            for j in range(len(a)):
                w[i] += a[i, j] * v[j]
        norm = math.sqrt(sum(x * x for x in w))
        for i in range(len(a)):
            v[i] = w[i] / norm
    return v


@case((np.array([0.0, 4.0, 4.0, 0.0]), np.array([0.0, 0.0, 3.0, 3.0])))
def polygon_area(xs, ys):
    area = 0.0
    n = len(xs)
    for i in range(n):
        j = (i + 1) % n
        area += xs[i] * ys[j] - xs[j] * ys[i]
    return abs(area) / 2


@case((np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0]]), 3.0, 1.0), (np.zeros((0, 2)), 0.0, 0.0))
def is_inside(points, x, y):
    inside = False
    j = len(points) - 1
    for i in range(len(points)):
        xi, yi = points[i, 0], points[i, 1]
        xj, yj = points[j, 0], points[j, 1]
        if (yi > y) != (yj > y) and x < (xj - xi) * (y - yi) / (yj - yi) + xi:
            inside = not inside
        j = i
    return inside


@case(((0, 0), (3, 4)), ((1.5, 2), (1.5, 2)))
def distance(p, q):
    (x0, y0), (x1, y1) = p, q
    return math.hypot(x1 - x0, y1 - y0)


@case(((0.0, 0.0), (2.0, 2.0), (0.0, 2.0), (2.0, 0.0)), ((0, 0), (1, 1), (2, 2), (3, 3)))
def intersect(a, b, c, d):
    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


@case((1.0, 2.0, 0.5), (1, 0, 0))
def rotated(x, y, angle):
    c, s = math.cos(angle), math.sin(angle)
    return c * x - s * y, s * x + c * y


# --- graphs on arrays --------------------------------------------------------------------------------


@case((np.array([[0, 1], [1, 2], [3, 4]]), 5), (np.zeros((0, 2), np.int64), 3))
def union_find(edges, n):
    parent = np.zeros(n, dtype=np.int64)
    for i in range(n):
        parent[i] = i
    for k in range(len(edges)):
        a, b = root(parent, edges[k, 0]), root(parent, edges[k, 1])
        if a != b:
            parent[a] = b
    return sum(1 for i in range(n) if parent[i] == i)


def root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@case((np.array([[0.0, 3.0, 9.0], [3.0, 0.0, 1.0], [9.0, 1.0, 0.0]]),))
def floyd_warshall(d):
    n = len(d)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


@case((np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), 0), (np.zeros((2, 2), np.int64), 1))
def breadth_first(adjacent, start):
    n = len(adjacent)
    distance = [-1] * n
    distance[start] = 0
    queue = [start]
    head = 0
    while head < len(queue):
        u = queue[head]
        head += 1
        for v in range(n):
            if adjacent[u, v] and distance[v] < 0:
                distance[v] = distance[u] + 1
                queue.append(v)
    return distance


@case((np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]]), 0))
def dijkstra(weights, source):
    n = len(weights)
    distance = np.full(n, math.inf)
    done = np.zeros(n, dtype=bool)
    distance[source] = 0
    for _ in range(n):
        best = -1
        for v in range(n):
            if not done[v] and (best < 0 or distance[v] < distance[best]):
                best = v
        done[best] = True
        for v in range(n):
            distance[v] = min(distance[v], distance[best] + weights[best, v])
    return distance


@case((np.array([[0, 1, 0], [0, 1, 0], [0, 1, 0]], np.uint8),))
def life(grid):
    rows, columns = grid.shape
    new = np.zeros_like(grid)
    for i in range(rows):
        for j in range(columns):
            count = 0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if di or dj:
                        count += int(grid[(i + di) % rows, (j + dj) % columns])
            new[i, j] = 1 if count == 3 or (count == 2 and grid[i, j]) else 0
    return new


# --- numeric analysis ------------------------------------------------------------------------------------


@case((np.array([1.0, 2.0, 3.0]), 2.0), (np.zeros(0), 1.0))
def horner(coefficients, x):
    result = 0.0
    for c in coefficients:
        result = result * x + c
    return result


@case((np.array([1, 1]), np.array([1, -1])), (np.array([2]), np.array([3, 4, 5])))
def polynomial_product(a, b):
    out = np.zeros(len(a) + len(b) - 1, dtype=np.int64)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y
    return out


@case((0.0, 2.0, 1e-6), (5.0, 6.0, 1e-6))
def bisection(low, high, tolerance):
    def f(x):
        return x * x - 2

    if f(low) * f(high) > 0:
        raise ValueError("no change of sign")
    while high - low > tolerance:
        mid = (low + high) / 2
        if f(low) * f(mid) <= 0:
            high = mid
        else:
            low = mid
    return low


@case((1.0, 0.1, 10), (1.0, 0.5, 0))
def runge_kutta(y, h, steps):
    def f(t, y):
        return -y + t

    t = 0.0
    for _ in range(steps):
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h * k1 / 2)
        k3 = f(t + h / 2, y + h * k2 / 2)
        k4 = f(t + h, y + h * k3)
        y += h * (k1 + 2 * k2 + 2 * k3 + k4) / 6
        t += h
    return y


@case((np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0]), 1.5))
def lagrange(xs, ys, x):
    total = 0.0
    for i in range(len(xs)):
        term = ys[i]
        for j in range(len(xs)):
            if i != j:
                term *= (x - xs[j]) / (xs[i] - xs[j])
        total += term
    return total


@case((np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 3.0]), 2.0), (np.zeros(1), np.ones(1), 5.0))
def interpolate(xs, ys, x):
    if x <= xs[0]:
        return ys[0]
    for i in range(1, len(xs)):
        if x <= xs[i]:
            weight = (x - xs[i - 1]) / (xs[i] - xs[i - 1])
            return ys[i - 1] + weight * (ys[i] - ys[i - 1])
    return ys[-1]


@case((np.array([1.0, 0.0, -1.0, 0.0]),), (np.array([3.0]),))
def fourier(xs):
    n = len(xs)
    real, imaginary = np.zeros(n), np.zeros(n)
    for k in range(n):
        for t in range(n):
            angle = -2 * math.pi * k * t / n
            real[k] += xs[t] * math.cos(angle)
            imaginary[k] += xs[t] * math.sin(angle)
    return real, imaginary


@case((np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4)))
def fast_fourier(re, im):
    """In place, by radix 2."""
    n = len(re)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    size = 2
    while size <= n:
        half = size // 2
        for start in range(0, n, 1):
            if start % size:
                continue
            for k in range(half):
                angle = -2 * math.pi * k / size
                c, s = math.cos(angle), math.sin(angle)
                a, b = start + k, start + k + half
                x, y = re[b] * c - im[b] * s, re[b] * s + im[b] * c
                re[b], im[b] = re[a] - x, im[a] - y
                re[a], im[a] = re[a] + x, im[a] + y
        size *= 2
    return re, im


@case((1.0, 3.0, 2.0), (1.0, 0.0, 1.0), (0.0, 2.0, -4.0))
def quadratic(a, b, c):
    if a == 0:
        return (-c / b,)
    d = b * b - 4 * a * c
    if d < 0:
        return None
    r = math.sqrt(d)
    return (-b - r) / (2 * a), (-b + r) / (2 * a)


@case((0.5, 20), (0.0, 3))
def sine_series(x, terms):
    term = total = x
    for n in range(1, terms):
        term *= -x * x / ((2 * n) * (2 * n + 1))
        total += term
    return total


@case((np.array([1.0, 1e16, -1e16]),), (np.zeros(0),))
def kahan_sum(xs):
    total = c = 0.0
    for x in xs:
        y = x - c
        t = total + y
        c = (t - total) - y
        total = t
    return total


# --- statistics ------------------------------------------------------------------------------------------


@case((np.array([2.0, 4.0, 9.0]),), (np.zeros(0),))
def mean(xs):
    if len(xs) == 0:
        raise ValueError("mean of an empty data set")
    return sum(xs) / len(xs)


@case((np.array([5.0, 1.0, 3.0]),), (np.array([4.0, 1.0]),))
def median(xs):
    a = [float(x) for x in xs]
    for i in range(1, len(a)):
        j = i
        while j > 0 and a[j] < a[j - 1]:
            a[j], a[j - 1] = a[j - 1], a[j]
            j -= 1
    mid = len(a) // 2
    return a[mid] if len(a) % 2 else (a[mid - 1] + a[mid]) / 2


@case((np.array([1, 2, 2, 3]),), (np.array([7]),))
def mode(xs):
    best, best_count = None, 0
    for x in xs:
        count = sum(1 for y in xs if y == x)
        if count > best_count:
            best, best_count = x, count
    return best, best_count


@case((np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 7.0])), (np.ones(2), np.ones(2)))
def correlation(xs, ys):
    n = len(xs)
    mx, my = sum(xs) / n, sum(ys) / n
    sxy = sum((x - mx) * (y - my) for x, y in zip(xs, ys))  # noqa: B905  # the plain form
    sxx = sum((x - mx) ** 2 for x in xs)
    syy = sum((y - my) ** 2 for y in ys)
    return float(sxy) / math.sqrt(sxx * syy)


@case((np.array([0.1, 0.5, 0.95, 1.0]), 4), (np.zeros(0), 2))
def histogram(xs, bins):
    counts = np.zeros(bins, dtype=np.int64)
    for x in xs:
        counts[min(int(x * bins), bins - 1)] += 1
    return counts


@case((np.array([1.0, 2.0, 4.0]), 0.5), (np.array([3.0]), 0.1))
def smoothed(xs, alpha):
    out = [float(xs[0])]
    for x in xs[1:]:
        out.append(alpha * float(x) + (1 - alpha) * out[-1])
    return out


@case((np.array([3.0, 1.0, 2.0]),))
def ranks(xs):
    return [1 + sum(1 for y in xs if y < x) for x in xs]


@case((0.0,), (1.96,), (-40.0,))
def normal_cdf(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@case((10, 3, 0.5), (4, 0, 0.0))
def binomial(n, k, p):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


# --- random numbers --------------------------------------------------------------------------------------


@case((1, 5), (0, 2))
def xorshift(seed, n):
    x = seed
    out = []
    for _ in range(n):
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        out.append(x)
    return out


@case((42, 4), (7, 0))
def shuffled(seed, n):
    a = list(range(n))
    for i in range(n - 1, 0, -1):
        seed = (seed * 69069 + 1) % 2**32
        j = seed % (i + 1)
        a[i], a[j] = a[j], a[i]
    return a


@case((3, 8))
def dice(seed, n):
    total = 0
    for _ in range(n):
        seed = seed * 6364136223846793005 % 2**31
        total += seed // 65536 % 6 + 1
    return total


# --- dates -----------------------------------------------------------------------------------------------


@case((2000,), (1900,), (2024,), (2023,))
def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@case((2024, 2), (2023, 2), (2023, 13))
def days_in_month(year, month):
    if not 1 <= month <= 12:
        raise ValueError("month must be in 1..12")
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@case((2024, 2, 29), (1970, 1, 1))
def weekday(year, month, day):
    if month < 3:
        month += 12
        year -= 1
    k, j = year % 100, year // 100
    return (day + 13 * (month + 1) // 5 + k + k // 4 + j // 4 + 5 * j) % 7


@case((2024, 3, 1), (1970, 1, 1), (1969, 12, 31))
def days_since_epoch(y, m, d):
    y -= m <= 2
    era = y // 400
    yoe = y - era * 400
    doy = (153 * (m + (-3 if m > 2 else 9)) + 2) // 5 + d - 1
    doe = yoe * 365 + yoe // 4 - yoe // 100 + doy
    return era * 146097 + doe - 719468


@case((3661,), (0,), (-1,))
def clock(seconds):
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return hours, minutes, seconds


# --- finance ---------------------------------------------------------------------------------------------


@case((1000.0, 0.05, 10), (1000, 0, 3))
def compound(principal, rate, years):
    for _ in range(years):
        principal *= 1 + rate
    return principal


@case((200000.0, 0.04, 360), (1200.0, 0.0, 12))
def annuity(loan, rate, months):
    r = rate / 12
    if r == 0:
        return loan / months
    return loan * r / (1 - (1 + r) ** -months)


@case((np.array([-100.0, 60.0, 60.0]), 0.1), (np.zeros(0), 0.1))
def net_present_value(flows, rate):
    return sum(flow / (1 + rate) ** t for t, flow in enumerate(flows))


@case((100.0, 95.0, 0.05, 0.2, 1.0), (100.0, 100.0, 0.0, 0.1, 0.0))
def black_scholes(s, k, r, sigma, t):
    d1 = (math.log(s / k) + (r + sigma * sigma / 2) * t) / (sigma * math.sqrt(t))
    d2 = d1 - sigma * math.sqrt(t)
    return s * normal_cdf(d1) - k * math.exp(-r * t) * normal_cdf(d2)


@case((np.array([7, 1, 5, 3, 6, 4]),), (np.array([2]),))
def best_trade(prices):
    lowest, profit = prices[0], 0
    for price in prices:
        lowest = min(lowest, price)
        profit = max(profit, price - lowest)
    return profit


@case((50000.0,), (0.0,), (9000.0,))
def tax(income):
    total, lower = 0.0, 0.0
    for upper, rate in ((10000.0, 0.1), (40000.0, 0.2), (float("inf"), 0.4)):
        if income <= lower:
            break
        total += (min(income, upper) - lower) * rate
        lower = upper
    return total
