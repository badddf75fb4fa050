"""dsv4_paged_mqa_logits_module: index scores of new tokens against DeepSeek-V4's paged compressed cache."""
