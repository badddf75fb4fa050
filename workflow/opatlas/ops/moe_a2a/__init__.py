"""moe_a2a: the exchange of tokens between expert-parallel ranks, as a framework wraps it."""
