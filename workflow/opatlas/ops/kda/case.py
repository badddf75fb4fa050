"""One point of the kda op."""

from opatlas.ops.delta_rule_case import DeltaRuleCase

Case = DeltaRuleCase
