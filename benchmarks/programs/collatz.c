/* SPDX-License-Identifier: Apache-2.0 */
/* The number below n whose Collatz chain is longest (the first one of them). */
#include <stdint.h>

int64_t work(int64_t n) {
    int64_t best = 0, longest = 0;
    for (int64_t i = 1; i < n; i++) {
        int64_t value = i, steps = 1;
        while (value != 1) {
            if ((value & 1) == 0)
                value = value >> 1;
            else
                value = value * 3 + 1;
            steps++;
        }
        if (steps > longest) {
            longest = steps;
            best = i;
        }
    }
    return best;
}
