"""The one exception for a user's mistake, and a collector so that all mistakes of a file show at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake the user can mend: what is wrong, where (file and key), what would be right.

    Commands print it as it is, without a traceback, and exit with 1.
    """


class Problems:
    """Collects messages and raises them together as one :class:`UserError`."""

    def __init__(self) -> None:
        self._messages: list[str] = []

    def add(self, message: str) -> None:
        self._messages.append(message)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Turns a UserError of the block into one more collected message."""
        try:
            yield
        except UserError as error:
            self._messages.append(str(error))

    def raise_if_any(self) -> None:
        if self._messages:
            raise UserError("\n".join(self._messages))
