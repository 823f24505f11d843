"""Documents that wait to be signed, examined again where an earlier version did it.

A newer version may see more in a file, or take it no more. What it refuses is never
signed: its request ends, `fallida`, with the code of the refusal as its reason.

Source: docs/documents.md "After an upgrade".
"""

from typing import Final

import structlog

from appliance.domain.audit.record import AuditEvent
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import EventKind, RequestState
from appliance.record.unit_of_work import Database
from appliance.requests.inspection import Inspections
from appliance.requests.request_store import RequestStore
from appliance.signing.signing_order import end_rest

_log = structlog.get_logger(__name__)
_PAGE: Final = 200
_OF_THE_MOMENT: Final = frozenset({ErrorCode.PDF_TOO_COMPLEX})
"""Refusals that a busy machine may be to blame for: the next look tries again."""


class Reexamination:
    """Keeps what is known of requests' documents up to date, and ends what is refused.

    Args:
        store: the record.
        inspections: the sandbox's.
    """

    def __init__(self, store: Database, inspections: Inspections) -> None:
        self._store = store
        self._inspections = inspections

    async def current(self, view: RequestView) -> RequestView:
        """A request whose document is described as this version does.

        Args:
            view: the request as it stands recorded.

        Raises:
            DocumentRefusedError: this version does not take the document. Where that
                is for good, the request is over.
            ApplianceError: `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        try:
            return await self._inspections.current(view)
        except DocumentRefusedError as refusal:
            if refusal.code not in _OF_THE_MOMENT:
                await self._end(view, refusal)
            raise

    async def _end(self, view: RequestView, refusal: DocumentRefusedError) -> None:
        """End a request, unless it moved on meanwhile or is being signed.

        What is being signed is ended by its worker, what waits for its turn by what
        becomes of those before it.
        """
        async with self._store.write() as transaction:
            now = await RequestStore(transaction).get(view.id, lock=True)
            if (
                now is None
                or now.state is not RequestState.PENDING
                or now.sha256 != view.sha256
            ):
                return
            await RequestStore(transaction).move(
                now.id, now.state, RequestState.FAILED, refusal.code.value
            )
            transaction.audit.add(
                AuditEvent(
                    EventKind.REQUEST_FAILED,
                    "system",
                    integrator=now.integrator,
                    request=now.id,
                    detail={"reason": refusal.code.value},
                )
            )
            await end_rest(transaction, now.id, RequestState.FAILED, "system")
        _log.warning("request.refused", request=view.id, code=refusal.code.value)

    async def renew(self) -> int:
        """Bring those of all unfinished requests up to date; how many were.

        What cannot be examined now is left to its signer's next look.
        """
        renewed, last = 0, RequestId(0)
        while True:
            async with self._store.read() as transaction:
                views = await RequestStore(transaction).unfinished(last, _PAGE)
            for view in views:
                try:
                    renewed += await self.current(view) is not view
                except ApplianceError as exc:
                    _log.warning(
                        "inspection.outdated", request=view.id, code=exc.code.value
                    )
            if len(views) < _PAGE:
                return renewed
            last = views[-1].id
