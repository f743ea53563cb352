# SPDX-License-Identifier: Apache-2.0
"""Functions of numeric analysis."""

from __future__ import annotations

import math

import numpy as np

from .case import case


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
