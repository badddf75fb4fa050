"""dsv4_csa_topk_calib: the top-k choice of DeepSeek-V4's indexer, for flat and for peaked scores."""
