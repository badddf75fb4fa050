"""dsv4_csa_context_module: prefill through a DeepSeek-V4 block that chooses among entries of 4 tokens."""
