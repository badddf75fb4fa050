"""One point of the gdn op."""

from opatlas.ops.delta_rule_case import DeltaRuleCase

Case = DeltaRuleCase
