# SPDX-License-Identifier: Apache-2.0
"""Functions of dates and finance."""

from __future__ import annotations

import math

import numpy as np

from .case import case
from .statistic import normal_cdf


@case((2000,), (1900,), (2024,), (2023,))
def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@case((2024, 2), (2023, 2), (2023, 13))
def days_in_month(year, month):
    if not 1 <= month <= 12:
        raise ValueError("month must be in 1..12")
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@case((2024, 2, 29), (1970, 1, 1))
def weekday(year, month, day):
    if month < 3:
        month += 12
        year -= 1
    k, j = year % 100, year // 100
    return (day + 13 * (month + 1) // 5 + k + k // 4 + j // 4 + 5 * j) % 7


@case((2024, 3, 1), (1970, 1, 1), (1969, 12, 31))
def days_since_epoch(y, m, d):
    y -= m <= 2
    era = y // 400
    yoe = y - era * 400
    doy = (153 * (m + (-3 if m > 2 else 9)) + 2) // 5 + d - 1
    doe = yoe * 365 + yoe // 4 - yoe // 100 + doy
    return era * 146097 + doe - 719468


@case((3661,), (0,), (-1,))
def clock(seconds):
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return hours, minutes, seconds


# --- finance ---------------------------------------------------------------------------------------------


@case((1000.0, 0.05, 10), (1000, 0, 3))
def compound(principal, rate, years):
    for _ in range(years):
        principal *= 1 + rate
    return principal


@case((200000.0, 0.04, 360), (1200.0, 0.0, 12))
def annuity(loan, rate, months):
    r = rate / 12
    if r == 0:
        return loan / months
    return loan * r / (1 - (1 + r) ** -months)


@case((np.array([-100.0, 60.0, 60.0]), 0.1), (np.zeros(0), 0.1))
def net_present_value(flows, rate):
    return sum(flow / (1 + rate) ** t for t, flow in enumerate(flows))


@case((100.0, 95.0, 0.05, 0.2, 1.0), (100.0, 100.0, 0.0, 0.1, 0.0))
def black_scholes(s, k, r, sigma, t):
    d1 = (math.log(s / k) + (r + sigma * sigma / 2) * t) / (sigma * math.sqrt(t))
    d2 = d1 - sigma * math.sqrt(t)
    return s * normal_cdf(d1) - k * math.exp(-r * t) * normal_cdf(d2)


@case((np.array([7, 1, 5, 3, 6, 4]),), (np.array([2]),))
def best_trade(prices):
    lowest, profit = prices[0], 0
    for price in prices:
        lowest = min(lowest, price)
        profit = max(profit, price - lowest)
    return profit


@case((50000.0,), (0.0,), (9000.0,))
def tax(income):
    total, lower = 0.0, 0.0
    for upper, rate in ((10000.0, 0.1), (40000.0, 0.2), (float("inf"), 0.4)):
        if income <= lower:
            break
        total += (min(income, upper) - lower) * rate
        lower = upper
    return total
