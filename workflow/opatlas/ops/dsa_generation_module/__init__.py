"""dsa_generation_module: one decode step through a whole sparse latent-attention block."""
