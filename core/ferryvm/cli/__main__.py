# SPDX-License-Identifier: Apache-2.0
"""`python -m ferryvm.cli`: the `ferry` command for installations without its script."""

from ferryvm.cli import main

main()
