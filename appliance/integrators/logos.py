"""The logos that stamps and frames show: the installation's, and integrators' own."""

from appliance.domain.appearance.details import Logo, LogoPicture
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ports import PdfInspector
from appliance.domain.vocab import EventKind
from appliance.integrators.integrator_store import IntegratorStore
from appliance.integrators.logo_store import INSTALLATION, LogoStore
from appliance.record.unit_of_work import Database, Transaction


class Logos:
    """Changes logos.

    Args:
        store: the record.
        inspector: draws a picture anew, as the stamps have it.
        clock: the time.
    """

    def __init__(self, store: Database, inspector: PdfInspector, clock: Clock) -> None:
        self._store = store
        self._inspector = inspector
        self._clock = clock

    async def show(self, content: bytes, actor: str, code: str | None = None) -> Logo:
        """Show a picture on stamps from now on.

        Args:
            content: a PNG or JPEG file.
            actor: who changes it, for the audit.
            code: of the integrator whose stamps show it; None: the installation's,
                for integrators without a logo of their own.

        Raises:
            ApplianceError: `PICTURE_UNUSABLE`, `SANDBOX_UNAVAILABLE`,
                `INTEGRATOR_NOT_FOUND`.
        """
        picture = await self._inspector.picture(content)
        async with self._store.write() as transaction:
            scope = await _scope(transaction, code)
            await LogoStore(transaction).use(scope, picture, self._clock.now())
            transaction.audit.add(_changed(actor, scope, picture.logo.sha256))
        return picture.logo

    async def picture(self, sha256: str) -> LogoPicture | None:
        """A logo with its pixels, in use or not."""
        async with self._store.read() as transaction:
            return await LogoStore(transaction).picture(sha256)

    async def drop(self, actor: str, code: str | None = None) -> bool:
        """Show no logo any more.

        Args:
            actor: who changes it, for the audit.
            code: of the integrator, which then shows the installation's; None: the
                installation's.

        Returns:
            False if there was none.

        Raises:
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        async with self._store.write() as transaction:
            scope = await _scope(transaction, code)
            dropped = await LogoStore(transaction).drop(scope)
            if dropped:
                transaction.audit.add(_changed(actor, scope, None))
        return dropped


async def _scope(transaction: Transaction, code: str | None) -> str:
    """Whose logo it is.

    Raises:
        ApplianceError: `INTEGRATOR_NOT_FOUND`.
    """
    if code is None:
        return INSTALLATION
    integrator = await IntegratorStore(transaction).get(code)
    if integrator is None:
        raise ApplianceError(ErrorCode.INTEGRATOR_NOT_FOUND)
    return integrator.id


def _changed(actor: str, scope: str, sha256: str | None) -> AuditEvent:
    return AuditEvent(
        EventKind.LOGO_CHANGED,
        actor,
        integrator=scope or None,
        detail={"sha256": sha256},
    )
