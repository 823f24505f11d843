"""A sandbox that is played: each test's own overrides what it is asked for."""

from collections.abc import Sequence

from appliance.domain.appearance.details import LogoPicture
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents import Inspection, RepairedCopy, VerificationReport
from appliance.domain.timestamps import RevokedTsa


class PlayedSandbox:
    """Is always there, and is asked for nothing (port `PdfInspector`)."""

    async def inspect(self, pdf: bytes) -> Inspection:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def repair(self, pdf: bytes) -> RepairedCopy:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def render(
        self,
        pdf: bytes,
        page: int,
        stamp: StampLayout | None,
        dpi: int,
        picture: LogoPicture | None = None,
    ) -> bytes:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def verify(
        self,
        pdf: bytes,
        roots: Sequence[bytes],
        stamp_roots: Sequence[bytes] | None = None,
        revoked: Sequence[RevokedTsa] = (),
    ) -> VerificationReport:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def picture(self, content: bytes) -> LogoPicture:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def ping(self) -> None:
        """It answers."""
