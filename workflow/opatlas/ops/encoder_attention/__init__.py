"""encoder_attention: attention of a vision encoder: no mask, no cache, as many KV heads as query heads."""
