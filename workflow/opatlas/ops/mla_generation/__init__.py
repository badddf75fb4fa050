"""mla_generation: decode attention of a latent-attention layer, projections left out."""
