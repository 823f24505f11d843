"""The frame's last steps: where the mark goes, the signature, and its outcome.

The signature is made by the same `Signing.sign` as firmar's; the host is told of it
with one event that never changes.

Source: decisions "Iframe", "delivery"; design §3.
"""

import contextlib
from typing import Final

from appliance.domain.audit import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.command import SignParameters
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.frame import FrameState, FrameView, Placement, SignOrder
from appliance.domain.integration import EmbedSession
from appliance.domain.ports import DocumentStream
from appliance.domain.presets import Corner, preset
from appliance.domain.records import Store
from appliance.domain.records.requests import FRAME_ORIGIN
from appliance.domain.request import SignCommand, SignedDocumentView, Signer
from appliance.domain.stamp_field import lay_out
from appliance.domain.stamp_words import StampSigner
from appliance.domain.vocab import EventKind, RequestState
from appliance.services.frame_views import FrameViews
from appliance.services.links import Links
from appliance.services.requests import Requests
from appliance.services.restrictions import nearest_permitted
from appliance.services.signing import Signing
from appliance.services.signing_password import normalize
from appliance.services.stamping import Stamping

FACTORS: Final = ("otp",)
"""What a signer in a frame has proven before the signing password."""


class FrameSigning:
    """What the frame's page may do once its session has a request.

    Args:
        store: the record.
        clock: the time.
        views: reads sessions.
        signing: makes signatures.
        requests: hands documents out.
        links: makes download links.
        base_url: where those lead.
        stamping: what marks show.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        views: FrameViews,
        signing: Signing,
        requests: Requests,
        links: Links,
        base_url: str,
        stamping: Stamping,
    ) -> None:
        self._store = store
        self._stamping = stamping
        self._clock = clock
        self._views = views
        self._signing = signing
        self._requests = requests
        self._links = links
        self._base_url = base_url

    async def placement(
        self, session: EmbedSession, corner: Corner, page: int
    ) -> Placement:
        """Where the mark would lie.

        Raises:
            ApplianceError: `PAGE_OUT_OF_RANGE`, `SESSION_IN_USE` before there is a
                request.
        """
        view = await self._views.view(session)
        return await self._placed(view, corner, page)

    async def _placed(self, view: FrameView, corner: Corner, page: int) -> Placement:
        person_id = view.session.person
        if view.document is None or view.signer is None or person_id is None:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        async with self._store.read() as records:
            person = await records.people.get(person_id)
            details = await self._stamping.details(
                records, SignParameters(), view.session.integrator.id
            )
        locale = person.locale if person is not None else "es"
        named = StampSigner(view.signer.name, view.signer.cuil, locale)
        inspection = view.document.inspection
        now = self._clock.now()
        params = nearest_permitted(
            preset(corner, page, named, now, inspection, details), inspection
        )
        return Placement(params, lay_out(params, named, now, inspection, details))

    async def sign(self, session: EmbedSession, order: SignOrder) -> FrameView:
        """Sign; or give what signing gave.

        Raises:
            ApplianceError: those of `Signing.sign`; `DOCUMENT_CHANGED` when another
                document was on the screen.
        """
        view = await self._views.view(session)
        session = view.session
        if view.state is FrameState.SIGNED:
            return view
        if session.request is None or session.person is None or not view.document:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        placed = await self._placed(view, order.corner, order.page)
        try:
            secret = normalize(order.password)
        except FieldInvalidError as exc:
            # No password is so short or long; nothing was tried, nothing counts.
            raise ApplianceError(ErrorCode.SIGN_PASSWORD_WRONG) from exc
        signer = Signer(
            person=session.person,
            actor=f"person:{session.person}",
            factors=FACTORS,
            authenticated_at=session.otp_at or session.issued,
        )
        command = SignCommand(
            request=session.request,
            params=placed.params,
            password=secret,
            if_match=order.seen,
        )
        await self._signing.sign(command, signer)
        return await self._views.view(session)

    async def view(self, session: EmbedSession, *, wait: bool = False) -> FrameView:
        """Where the session stands.

        Args:
            session: of the caller.
            wait: while it is being signed, until that ends or `wait_s` is over.
        """
        view = await self._views.view(session)
        if not wait or view.state is not FrameState.SIGNING:
            return view
        if view.session.request is not None:
            with contextlib.suppress(ApplianceError):
                await self._signing.follow(view.session.request)
        return await self._views.view(session)

    async def completed(self, session: EmbedSession) -> dict[str, object]:
        """What the host is told of the signature, with a fresh download address.

        Raises:
            ApplianceError: `NOT_SIGNED_YET`.

        Source: spec "Signature-completed payload".
        """
        view = await self._views.view(session)
        request = view.session.request
        if view.completed is None or request is None:
            raise ApplianceError(ErrorCode.NOT_SIGNED_YET)
        clave = await self._links.mint(request, f"person:{view.session.person}")
        url = f"{self._base_url}/solicitudes/{request}/documento?clave={clave}"
        delivery = {**_object(view.completed["delivery"]), "url": url}
        return {**view.completed, "delivery": delivery}

    async def signed(
        self, session: EmbedSession
    ) -> tuple[SignedDocumentView, DocumentStream]:
        """The signed document.

        Raises:
            ApplianceError: `NOT_SIGNED_YET`, `STORE_UNAVAILABLE`.
        """
        if session.request is None:
            raise ApplianceError(ErrorCode.NOT_SIGNED_YET)
        return await self._requests.signed(session.person, session.request)

    async def cancel(self, session: EmbedSession, *, by_signer: bool) -> None:
        """End a session without a signature; its request with it.

        Args:
            session: not signed and not being signed.
            by_signer: the signer rejects; else the host takes it back.

        Raises:
            ApplianceError: `SESSION_IN_USE` for one that is being signed or done.
        """
        then = RequestState.REJECTED if by_signer else RequestState.CANCELLED
        kind = EventKind.REQUEST_REJECTED if by_signer else EventKind.REQUEST_CANCELLED
        async with self._store.write() as records:
            if not await records.sessions.cancel(session.id, self._clock.now()):
                raise ApplianceError(ErrorCode.SESSION_IN_USE)
            actor = f"person:{session.person}" if session.otp_at else "anonymous"
            records.audit.add(
                AuditEvent(
                    EventKind.SESSION_CANCELLED,
                    actor,
                    integrator=session.integrator.id,
                    request=session.request,
                    detail={"session": session.public_id, "bySigner": by_signer},
                )
            )
            if session.request is None:
                return
            view = await records.requests.get(session.request, lock=True)
            # One that the signer picked from a list outlives this session.
            if view is None or view.origin != FRAME_ORIGIN:
                return
            if not await records.requests.move(view.id, view.state, then):
                raise ApplianceError(ErrorCode.SESSION_IN_USE)
            records.audit.add(
                AuditEvent(
                    kind,
                    actor,
                    integrator=session.integrator.id,
                    request=session.request,
                )
            )


def _object(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}
