# SPDX-License-Identifier: Apache-2.0
"""The n-th Fibonacci number by double recursion."""


def work(n: int) -> int:
    """fib(n)."""
    if n < 2:
        return n
    return work(n - 1) + work(n - 2)
