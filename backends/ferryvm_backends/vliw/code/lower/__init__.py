# SPDX-License-Identifier: Apache-2.0
"""From the region IR to code of the machine.

emission ─> leaving ─> calling ─> body    each is what the next one builds on
"""
