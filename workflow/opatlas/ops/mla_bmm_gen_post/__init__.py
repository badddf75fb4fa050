"""mla_bmm_gen_post: attention outputs of a decode step taken out of the latent, one matrix per head."""
