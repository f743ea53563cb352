# SPDX-License-Identifier: Apache-2.0
"""The discrete Fourier transform by its definition, a frequency an item. sin and cos are stand-in
polynomials of a part of a turn between -1/2 and 1/2."""

from math import floor


def sine(t):
    """About sin(2 pi t)."""
    u = t * 6.283185307179586
    s = u * u
    return u * (
        1.0
        + s
        * (
            -0.16666666666666666
            + s
            * (
                0.008333333333333333
                + s
                * (
                    -0.0001984126984126984
                    + s * (2.7557319223985893e-06 + s * -2.505210838544172e-08)
                )
            )
        )
    )


def cosine(t):
    """About cos(2 pi t)."""
    u = t * 6.283185307179586
    s = u * u
    return 1.0 + s * (
        -0.5
        + s
        * (
            0.041666666666666664
            + s * (-0.001388888888888889 + s * (2.48015873015873e-05 + s * -2.755731922398589e-07))
        )
    )


def item(k, re, im):
    """Real and imaginary part of a frequency."""
    n = len(re)
    part = k / n
    sum_re = sum_im = 0.0
    for j in range(n):
        turns = part * j
        t = turns - floor(turns + 0.5)
        s, c = sine(t), cosine(t)
        sum_re += re[j] * c + im[j] * s
        sum_im += im[j] * c - re[j] * s
    return sum_re, sum_im
