# SPDX-License-Identifier: Apache-2.0
"""Pages in a real browser."""

from __future__ import annotations

import pytest

VIEWS = [
    (1280, "light"),
    pytest.param((1280, "dark"), marks=pytest.mark.nightly),
    pytest.param((400, "light"), marks=pytest.mark.nightly),
    (400, "dark"),
]
"""Widths of a screen in pixels, and schemes of colours, as parameters."""

CONTRAST = """() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return { rgb: [r, g, b], a };
  };
  const light = ([r, g, b]) => {
    const f = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const faults = [];
  for (const element of document.querySelectorAll("body *")) {
    const has_text = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!has_text || !element.checkVisibility() || ["SCRIPT", "OPTION"].includes(element.tagName))
      continue;
    let ground = element;
    while (ground && parse(getComputedStyle(ground).backgroundColor).a < 1)
      ground = ground.parentElement;
    const behind = ground ? parse(getComputedStyle(ground).backgroundColor).rgb : null;
    if (!behind) { faults.push("nothing behind " + element.className); continue; }
    const [a, b] = [light(parse(getComputedStyle(element).color).rgb), light(behind)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faults.push(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
  }
  return [...new Set(faults)];
}"""
"""What of the text that can be seen has too little contrast."""
