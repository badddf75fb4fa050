"""mla_generation_module: one decode step through a whole latent-attention block, projections included."""
