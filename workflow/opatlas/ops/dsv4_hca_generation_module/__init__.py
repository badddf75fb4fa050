"""dsv4_hca_generation_module: decode through a DeepSeek-V4 block that reads all entries of 128 tokens."""
