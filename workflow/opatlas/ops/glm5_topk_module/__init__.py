"""glm5_topk_module: the top-k choice of GLM-5's sparse attention, for flat and for peaked scores."""
