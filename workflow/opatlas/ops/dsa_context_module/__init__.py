"""dsa_context_module: prefill through a whole sparse latent-attention block, its indexer included."""
