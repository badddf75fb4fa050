"""attention_context: prefill attention of one layer, causal, queries and keys of the same new tokens."""
