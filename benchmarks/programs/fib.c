/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th Fibonacci number by double recursion. */
#include <stdint.h>

static int64_t fib(int64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int64_t work(int64_t n) { return fib(n); }
