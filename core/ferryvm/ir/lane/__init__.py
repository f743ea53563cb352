# SPDX-License-Identifier: Apache-2.0
"""Whole-function vectorisation: the items of a launch in the lanes of vectors.

    launch's Module ─ item_body ─> the item's function, scalar ─ vectorise ─> body of lanes

A *body of lanes* runs one item in each lane. Its values are uniform, one for all lanes, or varying,
one for each; its control flow is uniform, and masks say which lanes take part. It does not depend
on the number of lanes, so any target can lower it.
"""
