# SPDX-License-Identifier: Apache-2.0
"""Schedules as pictures.

Program, source map ── view ──> Picture ── template ──> a page of HTML
"""
