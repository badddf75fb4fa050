"""Values of a gemm's operands, the same for every backend."""

WEIGHT_SCALE = 0.02
"""Standard deviation of weights: what transformer weights are initialised with and stay near."""
