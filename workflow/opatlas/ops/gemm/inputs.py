"""Values of a gemm's operands, the same for every backend."""

WEIGHT_SCALE = 0.02
"""Standard deviation of weights: what transformer weights are initialised with and stay near."""

FP8_SPREAD = 100.0
"""Standard deviation of normal values scaled so that the largest of some 10^5 meets fp8's 448."""
