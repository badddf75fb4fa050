"""dsa_context_module_skip_indexer: dsa_context_module in a layer that takes the last top-k choice."""
