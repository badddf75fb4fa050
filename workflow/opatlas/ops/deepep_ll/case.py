"""One point of the deepep_ll op."""

from opatlas.ops.deepep_case import DeepepCase

Case = DeepepCase
