# SPDX-License-Identifier: Apache-2.0
"""Multiplies two n x n matrices again and again; each product depends on the one before."""


def multiply(n: int, a: list[float], b: list[float], c: list[float]) -> None:
    """Set c to a * b."""
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total = total + a[i * n + k] * b[k * n + j]
            c[i * n + j] = total


def work(n: int, times: int) -> float:
    """The sum of the last product's elements."""
    size = n * n
    a = [(i % 13) / 7.0 for i in range(size)]
    b = [(i % 11) / 3.0 - 1.0 for i in range(size)]
    c = [0.0] * size
    for _ in range(times):
        multiply(n, a, b, c)
        a[0] = c[0] * 0.001
    total = 0.0
    for element in c:
        total = total + element
    return total
