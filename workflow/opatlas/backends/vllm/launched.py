"""Which of a framework's own operators a call goes through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class _Operators(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self, namespace: str) -> None:
        super().__init__()
        self.namespace = namespace
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        namespace, _, name = func._schema.name.partition("::")
        if namespace == self.namespace:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def operators(run: Callable[[], Any], namespace: str) -> list[str]:
    """Names of the operators of a namespace of torch.ops that one run calls, in order."""
    seen = _Operators(namespace)
    with seen:
        run()
    return seen.names
