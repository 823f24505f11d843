"""Which take-over a record, or a token of the HSM, is of.

Source: docs/backup.md "One HSM, one record".
"""

import re
from typing import Final, NamedTuple, Self

_TEXT: Final = re.compile(r"-1|[0-9]{1,18}(\.[0-9a-f]{1,64})?")


class Generation(NamedTuple):
    """The number of a take-over, and what tells it from another one of that number.

    The greater one counts: of two that were begun at once, and found the same number
    free, the one with the greater mark, for whoever compares them.
    """

    number: int
    """From 1; 0: there was none; -1: the record was restored, and none followed."""
    mark: str = ""
    """Random, hexadecimal; empty for a number that no take-over gave."""

    def __str__(self) -> str:
        """As it stands in the record, and in the HSM."""
        return f"{self.number}.{self.mark}" if self.mark else str(self.number)

    @classmethod
    def parse(cls, text: str) -> Self:
        """What `str` gave.

        Raises:
            ValueError: it is none.
        """
        if _TEXT.fullmatch(text) is None:
            msg = f"no take-over: {text[:80]!r}"
            raise ValueError(msg)
        number, _, mark = text.partition(".")
        return cls(int(number), mark)


NONE: Final = Generation(0)
"""There was no take-over."""
