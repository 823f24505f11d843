"""Roots by which this machine believes who signed, from files of its own.

The trust store of the record lets chains be imported, and whoever writes to the
database adds a root there. What the installation says of a signature to the public
rests on the installation's own root and on roots that the machine's operator pinned; in
an upgraded installation that is not closed yet, roots of the record count, too.
"""

from collections.abc import Awaitable, Callable, Sequence

from appliance.domain.signing.activation import ActivationFormat
from appliance.keys.activation_format import PinnedFormat
from appliance.pki.validation.pinned_anchors import PinnedAnchors
from appliance.pki.validation.trust_anchors import OwnRoot


class SignerRoots:
    """Reads the roots that count for signers here.

    Args:
        own: reads the installation's root.
        pinned: roots of outside CAs that this machine believes.
        formats: tells whether what an earlier version believed still counts.
        recorded: reads the roots of the record that are trusted for signers, DER.
    """

    def __init__(
        self,
        own: OwnRoot,
        pinned: PinnedAnchors,
        formats: PinnedFormat,
        recorded: Callable[[], Awaitable[Sequence[bytes]]],
    ) -> None:
        self._own = own
        self._pinned = pinned
        self._formats = formats
        self._recorded = recorded

    async def read(self) -> tuple[bytes, ...]:
        """Every root that counts now, DER.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: a file is there and cannot be read, or
                the record is away.
        """
        own = self._own()
        roots = [*([own] if own else []), *self._pinned.certificates()]
        if self._formats.oldest < ActivationFormat.WHOLE:
            roots += await self._recorded()
        return tuple(dict.fromkeys(roots))
