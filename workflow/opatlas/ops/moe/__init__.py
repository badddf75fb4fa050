"""moe: one mixture-of-experts layer on one rank: router, permute, expert matmuls, combine."""
