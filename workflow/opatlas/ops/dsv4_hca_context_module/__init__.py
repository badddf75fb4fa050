"""dsv4_hca_context_module: prefill through a DeepSeek-V4 block that reads all entries of 128 tokens."""
