"""Logos, and whose stamps show them."""

from datetime import datetime
from typing import Protocol

from appliance.domain.appearance.details import Logo, LogoPicture

INSTALLATION = ""
"""The scope of those whose integrator has no logo of its own."""


class LogoRecords(Protocol):
    """Logos, and whose stamps show them."""

    async def of(self, scope: str) -> Logo | None:
        """The logo of an integrator, else the installation's.

        Args:
            scope: an integrator's id, or `INSTALLATION`.
        """
        ...

    async def own(self, scope: str) -> Logo | None:
        """The logo of that scope and no other.

        Args:
            scope: an integrator's id, or `INSTALLATION`.
        """
        ...

    async def picture(self, sha256: str) -> LogoPicture | None:
        """A logo with its pixels, in use or not."""
        ...

    async def use(self, scope: str, picture: LogoPicture, at: datetime) -> None:
        """Show a logo from now on, in the place of another."""
        ...

    async def drop(self, scope: str) -> bool:
        """Show none of its own any more; False if there was none."""
        ...
