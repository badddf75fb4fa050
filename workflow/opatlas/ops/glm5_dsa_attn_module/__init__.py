"""glm5_dsa_attn_module: attention over the chosen tokens, in GLM-5's sparse attention."""
