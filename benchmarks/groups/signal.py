# SPDX-License-Identifier: Apache-2.0
"""Kernels that transform signals: wavelets and Fourier transforms."""

from __future__ import annotations

import numpy

from benchmarks.groups.sample import Array, Sample, Sizes, Work, grid, uniform

ROOT = numpy.float32(0.70710678)


def _haar(sizes: Sizes) -> Work:
    values = uniform(sizes["n"], -1.0, 1.0)
    return Work((sizes["n"], values, numpy.zeros_like(values)), (2,))


def _wavelets(work: Work, _sizes: Sizes) -> list[Array]:
    values, found = work.array(1), work.array(2).copy()
    while len(values) > 1:
        width = len(values) // 2
        found[width : 2 * width] = (values[::2] - values[1::2]) * ROOT
        values = (values[::2] + values[1::2]) * ROOT
    found[0] = values[0]
    return [found]


def _fft(sizes: Sizes) -> Work:
    rows, size = sizes["rows"], sizes["SIZE"]
    angles = numpy.pi * numpy.arange(size) / size
    turns = numpy.cos(angles).astype(numpy.float32), numpy.sin(angles).astype(numpy.float32)
    count = rows * 2 * size
    signal = uniform(count, -1.0, 1.0, 0), uniform(count, -1.0, 1.0, 1)
    results = numpy.zeros(count, numpy.float32), numpy.zeros(count, numpy.float32)
    return Work((rows, *turns, *signal, *results), (5, 6))


def _spectrum(work: Work, sizes: Sizes) -> list[Array]:
    size = sizes["SIZE"]
    re, im = (grid(work.array(position), sizes["rows"]) for position in (3, 4))
    local, done = numpy.arange(size), 1
    while done < 2 * size:
        k = local & (done - 1)
        c, s = (work.array(position)[k * (size // done)] for position in (1, 2))
        a_re, a_im, b_re, b_im = re[:, :size], im[:, :size], re[:, size:], im[:, size:]
        turned_re, turned_im = b_re * c + b_im * s, b_im * c - b_re * s
        re, im, j = numpy.empty_like(re), numpy.empty_like(im), 2 * local - k
        re[:, j], re[:, j + done] = a_re + turned_re, a_re - turned_re
        im[:, j], im[:, j + done] = a_im + turned_im, a_im - turned_im
        done *= 2
    return [re.ravel(), im.ravel()]


SAMPLES = (
    Sample("haar", _haar, _wavelets, {"SIZE": 4, "n": 16}, {"n": 1 << 20}),
    Sample("fft", _fft, _spectrum, {"SIZE": 4, "rows": 2}, {"SIZE": 128, "rows": 2048}),
)
