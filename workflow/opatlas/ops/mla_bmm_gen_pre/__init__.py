"""mla_bmm_gen_pre: queries of a decode step taken into the latent, one matrix per head."""
