"""gemm: one dense linear layer, y[m, n] = x[m, k] @ w[n, k]^T."""
