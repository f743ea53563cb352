# SPDX-License-Identifier: Apache-2.0
"""Campaigns of random programs over processes: `ferry fuzz` (docs/fuzzing.md is its manual)."""

from ferryvm.testing.fuzz.campaign import Campaign
from ferryvm.testing.fuzz.outcome import FINDINGS, Finding, TrialOutcome
from ferryvm.testing.fuzz.plan import MIX, CampaignPlan
from ferryvm.testing.fuzz.report import Report

__all__ = ["FINDINGS", "MIX", "Campaign", "CampaignPlan", "Finding", "Report", "TrialOutcome"]
