"""moe, as every op of the stub."""

from opatlas.backends.stub.cases import build, call, kernel_source

__all__ = ["build", "call", "kernel_source"]
