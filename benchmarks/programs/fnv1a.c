/* SPDX-License-Identifier: Apache-2.0 */
/* The 32-bit FNV-1a hash of n bytes, which are the top bytes of a linear congruential generator. */
#include <stdint.h>

#define LARGEST 67108864

static uint8_t bytes[LARGEST];

int64_t work(int64_t n) {
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(state >> 24);
    }
    uint32_t hash = 2166136261u;
    for (int64_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return (int64_t)hash;
}
