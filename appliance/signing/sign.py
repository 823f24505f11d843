"""One signature, start to end, as the front sees it.

`services.authorizing` makes the activation. The caller listens for the outcome
before that is committed, and waits. Repeating the call is always safe; a caller
that leaves changes nothing.

Source: design §3; spec "POST {base_url}/solicitudes/firmar".
"""

import asyncio
import hashlib
from typing import Final

from structlog.contextvars import bind_contextvars

from appliance.core.background import Shielded
from appliance.core.unit_of_work import Database
from appliance.documents.document_store import DocumentRowStore
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ActivationId, RequestId, new_id
from appliance.domain.ports import Expectation, Outcomes
from appliance.domain.requests.request import SignCommand, Signer, SignOutcome
from appliance.domain.vocab import RequestState
from appliance.settings import SigningSettings
from appliance.signing.activation import Authorizing, Refusals, Wish
from appliance.signing.request_store import RequestStore
from appliance.signing.requests import own_request
from appliance.signing.signing_rules import check_document, repeated, standing

_LOOK_AGAIN_S: Final = (0.5, 1.0, 2.0, 4.0)


class Signing:
    """The use case of `POST /solicitudes/firmar`."""

    def __init__(
        self,
        store: Database,
        authorizing: Authorizing,
        outcomes: Outcomes,
        settings: SigningSettings,
        shielded: Shielded,
    ) -> None:
        self._store = store
        self._authorizing = authorizing
        self._outcomes = outcomes
        self._settings = settings
        self._shielded = shielded

    async def sign(
        self, command: SignCommand, signer: Signer, document: bytes | None = None
    ) -> SignOutcome:
        """Sign one request, or give what signing it before gave.

        Args:
            command: what to sign and how, with the signing password.
            signer: who, as the front established it.
            document: the file that came with the call, to be compared.

        Returns:
            The signed document, or none when the work outlasts `wait_s`.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `ALREADY_SIGNED`,
                `IN_PROGRESS`, `STATE`, `IDEMKEY_CONFLICT`, `DOCUMENT_CHANGED`,
                `DOCUMENT_MISMATCH`, `PAGE_OUT_OF_RANGE`,
                `POSITION_OUT_OF_PAGE`, `PDF_ALREADY_SIGNED`, `PDF_LOCKED`,
                `PDF_CERTIFIED`, `SIGNATURE_FIELD_NOT_FOUND`,
                `SIGNATURE_FIELD_FILLED`, `SIGNATURE_FIELD_DEMANDS`,
                `SIGNERS_LOCKED_OUT`,
                `CERTIFICATE_NOT_USABLE`, `HSM_UNAVAILABLE`,
                `SIGN_PASSWORD_WRONG`, `SIGN_LOCKED`, `RATE_LIMITED`,
                `ACTIVATION_EXPIRED`, `ACTIVATION_INVALID`, `SIGNING_FAILED`.
        """
        fingerprint = command.params.sha256(command.request)
        key = command.idempotency_key
        wish = Wish(
            {command.request: fingerprint},
            command.params,
            command.password,
            None if key is None else (key, fingerprint),
        )
        sent = None if document is None else await asyncio.to_thread(_sha256, document)
        async with self._store.read() as transaction:
            view = await own_request(transaction, signer.person, command.request)
            await self._authorizing.check_key(
                transaction, signer.person, wish.idempotency
            )
            going_on = repeated(view, fingerprint)
            if not going_on:
                check_document(view, command, sent)
                means = await self._authorizing.means(
                    transaction, signer.person, (view,), command.params
                )
                _raise_refusal(means.refused, view.id)
        activation = ActivationId(view.activation or "" if going_on else new_id())
        bind_contextvars(activation=activation)
        async with self._outcomes.expect(activation) as news:
            if not going_on:
                refused = await self._shielded.run(
                    self._authorizing.authorize(wish, signer, means, activation)
                )
                _raise_refusal(refused, view.id)
            return await self._outcome(view.id, fingerprint, news)

    async def follow(self, request: RequestId) -> None:
        """Wait until a request is no longer being signed, or `wait_s` is over.

        Args:
            request: which; anybody's.

        Raises:
            ApplianceError: what ended the attempt.
        """
        async with self._store.read() as transaction:
            view = await RequestStore(transaction).get(request)
        if view is None or view.state is not RequestState.IN_PROGRESS:
            return
        activation = ActivationId(view.activation or "")
        async with self._outcomes.expect(activation) as news:
            await self._outcome(request, view.params_sha256 or "", news)

    async def _outcome(
        self,
        request: RequestId,
        fingerprint: str,
        news: Expectation,
    ) -> SignOutcome:
        """Wait for the record to say how it ended; news only make it quick.

        Where ours was given back and another call has begun anew meanwhile, this
        one is a repeat of that.

        Raises:
            ApplianceError: what ended the attempt.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.wait_s
        looks = 0
        while True:
            async with self._store.read() as transaction:
                view = await RequestStore(transaction).get(request)
                signed = await DocumentRowStore(transaction).signed(request)
            if view is None:
                raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
            if (outcome := standing(view, signed, fingerprint)) is not None:
                return outcome
            left = deadline - loop.time()
            if left <= 0:
                return SignOutcome(request, None)
            pause = _LOOK_AGAIN_S[min(looks, len(_LOOK_AGAIN_S) - 1)]
            await news.wait(min(pause, left))
            looks += 1


def _sha256(document: bytes) -> str:
    """A document's hash, in hex; of a large one not for the event loop."""
    return hashlib.sha256(document).hexdigest()


def _raise_refusal(refused: Refusals, request: RequestId) -> None:
    """Refuse the call if its one request was.

    Raises:
        ApplianceError: why.
    """
    if request in refused:
        raise refused[request]
