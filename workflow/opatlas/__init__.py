"""opatlas: how long single GPU operators of LLM inference take, as the serving frameworks run them."""
