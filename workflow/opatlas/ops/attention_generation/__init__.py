"""attention_generation: decode attention of one layer, one new token a sequence over its KV cache."""
