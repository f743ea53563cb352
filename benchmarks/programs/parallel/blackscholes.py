# SPDX-License-Identifier: Apache-2.0
"""Prices of European calls and puts, an option an item. exp and log are stand-in polynomials."""

from math import sqrt


def exp16(x):
    """About e^x."""
    y = x * 0.0625
    p = 1.0 + y * (
        1.0
        + y
        * (
            0.5
            + y
            * (
                0.16666666666666666
                + y * (0.041666666666666664 + y * (0.008333333333333333 + y * 0.001388888888888889))
            )
        )
    )
    p2 = p * p
    p4 = p2 * p2
    p8 = p4 * p4
    return p8 * p8


def log9(x):
    """About the natural logarithm."""
    z = (x - 1.0) / (x + 1.0)
    s = z * z
    return (2.0 * z) * (
        1.0
        + s * (0.3333333333333333 + s * (0.2 + s * (0.14285714285714285 + s * 0.1111111111111111)))
    )


def normal(d):
    """About the normal distribution's part below d."""
    k = 1.0 / (1.0 + 0.2316419 * abs(d))
    tail = (0.3989422804014327 * exp16(-0.5 * (d * d))) * (
        k
        * (
            0.31938153
            + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        )
    )
    return tail if d < 0.0 else 1.0 - tail


def item(s, k, t, rate, volatility):
    """The prices of a call and a put."""
    spread = volatility * sqrt(t)
    d1 = (log9(s / k) + (rate + (0.5 * volatility) * volatility) * t) / spread
    d2 = d1 - spread
    discounted = k * exp16(-(rate * t))
    n1, n2 = normal(d1), normal(d2)
    return s * n1 - discounted * n2, discounted * (1.0 - n2) - s * (1.0 - n1)
