/* SPDX-License-Identifier: Apache-2.0 */
/* The number of primes below n, by the sieve of Eratosthenes with a byte for each number. */
#include <stdint.h>

#define LARGEST 10000000

static uint8_t composite[LARGEST];

int64_t work(int64_t n) {
    int64_t count = 0;
    for (int64_t i = 2; i < n; i++) {
        if (composite[i] == 0) {
            count++;
            for (int64_t j = i * i; j < n; j += i)
                composite[j] = 1;
        }
    }
    return count;
}
