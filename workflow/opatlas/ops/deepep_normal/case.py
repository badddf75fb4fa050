"""One point of the deepep_normal op."""

from opatlas.ops.deepep_case import DeepepCase

Case = DeepepCase
