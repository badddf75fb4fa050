"""Plain PyTorch, on the CPU or on CUDA."""
