"""What the stamps of an integrator would look like, with a signer made up."""

from dataclasses import dataclass, field
from typing import Final

from appliance.appearance.content import Stamping, picture_of
from appliance.appearance.preview import draw_stamp
from appliance.domain.appearance.details import Logo
from appliance.domain.appearance.stamp import StampLayout, place
from appliance.domain.appearance.text import StampSigner, stamp_text
from appliance.domain.clock import Clock
from appliance.domain.documents.inspected import PageBox
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ports import PdfInspector
from appliance.domain.signing_command import GivenParameters
from appliance.integrators.api_keys import integrator_of
from appliance.integrators.logo_store import INSTALLATION, LogoStore
from appliance.record.unit_of_work import Database

_A4: Final = PageBox(0.0, 0.0, 595.0, 842.0, 0)
_NAME: Final = "María de los Ángeles Núñez"
_CUIL: Final = "20267565393"


@dataclass(frozen=True, slots=True)
class StampSample:
    """A stamp as an A4 page would have it."""

    layout: StampLayout
    png: bytes | None = field(repr=False)
    """None while nothing can be drawn."""


@dataclass(frozen=True, slots=True)
class LogoInUse:
    """The logo on an integrator's stamps."""

    logo: Logo
    is_own: bool
    """Its own; else the installation's."""


class StampSamples:
    """Draws samples.

    Args:
        store: the record.
        inspector: draws them.
        clock: the time.
        stamping: what stamps show.
    """

    def __init__(
        self, store: Database, inspector: PdfInspector, clock: Clock, stamping: Stamping
    ) -> None:
        self._store = store
        self._inspector = inspector
        self._clock = clock
        self._stamping = stamping

    async def draw(self, code: str, given: GivenParameters, locale: str) -> StampSample:
        """Draw what a signing command would.

        Args:
            code: of the integrator.
            given: by the command, visible.
            locale: of the signer.

        Raises:
            FieldInvalidError: not a colour.
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        params, defaults = given.params, self._stamping.defaults(given)
        async with self._store.read() as transaction:
            integrator = await integrator_of(transaction, code)
            details = await self._stamping.details(
                transaction, params, integrator.id, defaults
            )
            picture = await picture_of(transaction, details)
        signer = StampSigner(_NAME, _CUIL, locale)
        lines = stamp_text(params, signer, self._clock.now(), details)
        layout = place(params, lines, (_A4,), (), details)
        if layout is None:
            raise ApplianceError(ErrorCode.INTERNAL)
        try:
            png = await draw_stamp(self._inspector, layout, picture)
        except ApplianceError:
            png = None
        return StampSample(layout, png)

    async def logo(self, code: str) -> LogoInUse | None:
        """The logo on an integrator's stamps.

        Raises:
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            integrator = await integrator_of(transaction, code)
            own = await LogoStore(transaction).of(integrator.id, own=True)
            logo = own or await LogoStore(transaction).of(INSTALLATION)
        return None if logo is None else LogoInUse(logo, own is not None)
