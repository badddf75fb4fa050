"""vLLM on CUDA: each op through vLLM's own layers, as an engine with default settings builds them."""
