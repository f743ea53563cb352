# SPDX-License-Identifier: Apache-2.0
"""`python -m ferryvm.cli`: the `ferry` command where no script is installed."""

from ferryvm.cli import main

main()
