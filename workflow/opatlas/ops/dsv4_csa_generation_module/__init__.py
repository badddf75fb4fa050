"""dsv4_csa_generation_module: decode through a DeepSeek-V4 block that chooses among entries of 4 tokens."""
