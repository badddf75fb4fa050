"""glm5_mqa_logits_module: index scores of the new tokens against the cache, in GLM-5's sparse attention."""
