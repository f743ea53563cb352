# SPDX-License-Identifier: Apache-2.0
"""Names in the switch interpreter's native code: functions of a control block's address."""

PLAIN = "ferry_switch_plain"
COUNTING = "ferry_switch_counting"
