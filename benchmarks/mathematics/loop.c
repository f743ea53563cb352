/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that call a function of a library through a pointer: vectors of BITS bits, and scalars. */
#include <stdint.h>
#include <string.h>

#define LOOPS(T, NAME)                                                                             \
    typedef T vector_##NAME __attribute__((vector_size(BITS / 8)));                                \
    enum { LANES_##NAME = BITS / 8 / sizeof(T) };                                                  \
    static inline vector_##NAME load_##NAME(const T *p) {                                          \
        vector_##NAME v;                                                                           \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    void lanes1_##NAME(vector_##NAME (*f)(vector_##NAME), int64_t n, const T *x,                   \
                   T *to) {                                                                        \
        for (int64_t i = 0; i < n; i += LANES_##NAME) {                                            \
            vector_##NAME v = f(load_##NAME(x + i));                                               \
            memcpy(to + i, &v, sizeof v);                                                          \
        }                                                                                          \
    }                                                                                              \
    void lanes2_##NAME(vector_##NAME (*f)(vector_##NAME, vector_##NAME), int64_t n,                \
                   const T *x, const T *y, T *to) {                                                \
        for (int64_t i = 0; i < n; i += LANES_##NAME) {                                            \
            vector_##NAME v = f(load_##NAME(x + i), load_##NAME(y + i));                           \
            memcpy(to + i, &v, sizeof v);                                                          \
        }                                                                                          \
    }                                                                                              \
    T sum1_##NAME(T (*f)(T), int64_t n, const T *x) {                                              \
        T sum = 0;                                                                                 \
        for (int64_t i = 0; i < n; i++) sum += f(x[i]);                                            \
        return sum;                                                                                \
    }                                                                                              \
    T sum2_##NAME(T (*f)(T, T), int64_t n, const T *x, const T *y) {                               \
        T sum = 0;                                                                                 \
        for (int64_t i = 0; i < n; i++) sum += f(x[i], y[i]);                                      \
        return sum;                                                                                \
    }

LOOPS(double, f64)
LOOPS(float, f32)
