"""dsv41_module: a DeepSeek-V4.1 decoder: prompts in chunks and a few decode steps, a row per component."""
