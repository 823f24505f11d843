"""One signature, start to end, as the front sees it.

Check everything that needs no password, reserve an attempt, check the password
off the event loop, then one transaction: lock the request, make the activation
that is bound to exactly this document and these parameters, audit. The caller
listens for the outcome before that commit, rings, and waits. Repeating the call
is always safe; a caller that leaves changes nothing.

Source: design §3; spec "POST {base_url}/solicitudes/firmar".
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from appliance.domain.activation import ActivationKey
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ActivationId, RequestId, new_id
from appliance.domain.person import Credential
from appliance.domain.ports import Doorbell, Expectation, Outcomes
from appliance.domain.records import Records, Store
from appliance.domain.records.activations import NewActivation, NewItem
from appliance.domain.request import (
    RequestView,
    SignCommand,
    Signer,
    SignOutcome,
)
from appliance.domain.stamp import stamp_lines
from appliance.domain.stamp_field import lay_out
from appliance.domain.vocab import (
    PersonState,
    RequestState,
)
from appliance.services.attempts import Attempts
from appliance.services.requests import own_request
from appliance.services.restrictions import check_permitted
from appliance.services.shielding import Shielded
from appliance.services.signing_hosts import SigningHosts, seal_to_each
from appliance.services.signing_password import UnlockKeys
from appliance.services.signing_rules import (
    bind,
    check_document,
    consent,
    ended,
    repeated,
)
from appliance.settings import SigningSettings

_LOOK_AGAIN_S: Final = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class _Means:
    """What a signature needs, as found before the password is looked at."""

    credential: Credential
    hosts: tuple[ActivationKey, ...]
    """Who may sign."""


class Signing:
    """The use case of `POST /solicitudes/firmar`."""

    def __init__(
        self,
        store: Store,
        attempts: Attempts,
        hosts: SigningHosts,
        doorbell: Doorbell,
        outcomes: Outcomes,
        clock: Clock,
        settings: SigningSettings,
        shielded: Shielded,
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._hosts = hosts
        self._doorbell = doorbell
        self._outcomes = outcomes
        self._clock = clock
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
        async with self._store.read() as records:
            view = await own_request(records, signer.person, command.request)
            await self._check_key(records, command, signer, fingerprint)
            going_on = repeated(view, fingerprint)
            if not going_on:
                check_document(view, command, document)
                means = await self._check_can_sign(records, command, view)
        if going_on:
            activation = ActivationId(view.activation or "")
            async with self._outcomes.expect(activation) as news:
                return await self._outcome(view.id, activation, fingerprint, news)
        activation = ActivationId(new_id())
        async with self._outcomes.expect(activation) as news:
            activation = await self._shielded.run(
                self._authorize(command, signer, means, activation, fingerprint)
            )
            return await self._outcome(view.id, activation, fingerprint, news)

    async def follow(self, request: RequestId) -> None:
        """Wait until a request is no longer being signed, or `wait_s` is over.

        Args:
            request: which; anybody's.

        Raises:
            ApplianceError: what ended the attempt.
        """
        async with self._store.read() as records:
            view = await records.requests.get(request)
        if view is None or view.state is not RequestState.IN_PROGRESS:
            return
        activation = ActivationId(view.activation or "")
        async with self._outcomes.expect(activation) as news:
            await self._outcome(request, activation, view.params_sha256 or "", news)

    async def _check_key(
        self, records: Records, command: SignCommand, signer: Signer, fingerprint: str
    ) -> None:
        if command.idempotency_key is None:
            return
        used = await records.requests.remembered(signer.person, command.idempotency_key)
        if used is not None and used != fingerprint:
            raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)

    async def _check_can_sign(
        self, records: Records, command: SignCommand, view: RequestView
    ) -> _Means:
        """All that can be refused before the password is looked at.

        Raises:
            ApplianceError: by the code of what stands in the way.
            HsmUnavailableError: no host can sign.
        """
        now = self._clock.now()
        if view.expires is not None and view.expires <= now:
            raise ApplianceError(
                ErrorCode.STATE, params={"estado": RequestState.EXPIRED.value}
            )
        person = await records.people.get(view.person)
        credential = await records.credentials.active(view.person)
        if person is None or person.state is not PersonState.ACTIVE:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        if credential is None or not credential.usable_at(now):
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        lines = stamp_lines(person.name, person.cuil, now, person.locale)
        check_permitted(view, command.params)
        lay_out(command.params, lines, view.inspection)
        return _Means(credential, await self._hosts.live_in(records))

    async def _authorize(
        self,
        command: SignCommand,
        signer: Signer,
        means: _Means,
        activation: ActivationId,
        fingerprint: str,
    ) -> ActivationId:
        """From the password to the committed activation; gives whose to await.

        Raises:
            ApplianceError: the password was not right, or the request moved on.
        """
        right = await self._attempts.check(signer, command.request, command.password)
        refusal: ApplianceError | None = None
        async with self._store.write() as records:
            unlock = await self._attempts.passed(records, signer, right)
            try:
                activation = await self._begin(
                    records, command, signer, means, unlock, activation, fingerprint
                )
            except ApplianceError as exc:
                # Raised before it wrote anything; the slot must be closed as
                # right all the same, so the transaction goes on to its commit.
                refusal = exc
        if refusal is not None:
            raise refusal
        await self._doorbell.ring(activation)
        return activation

    async def _begin(
        self,
        records: Records,
        command: SignCommand,
        signer: Signer,
        means: _Means,
        unlock: UnlockKeys | None,
        activation: ActivationId,
        fingerprint: str,
    ) -> ActivationId:
        """Make the activation; refuses before its first write.

        Raises:
            ApplianceError: the request moved on, or the key is in other use.
        """
        now = self._clock.now()
        view = await records.requests.get(command.request, lock=True)
        if view is None:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        if repeated(view, fingerprint):
            return ActivationId(view.activation or "")
        if unlock is None:
            # Changed since it was checked: what was typed opens nothing now.
            raise ApplianceError(ErrorCode.IN_PROGRESS)
        if means.credential.id not in unlock:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        if command.idempotency_key is not None:
            await records.requests.remember(
                signer.person, command.idempotency_key, fingerprint, now
            )
        item = NewItem(view.id, view.sha256, command.params, fingerprint)
        claim_by = now + timedelta(seconds=self._settings.claim_s)
        binding = bind(signer, means.credential, activation, item, now, claim_by)
        key = unlock[means.credential.id]
        await records.activations.add(
            NewActivation(
                id=activation,
                person=signer.person,
                credential=means.credential.id,
                factors=binding.factors,
                created=binding.created,
                claim_by=binding.claim_by,
                items=(item,),
                seals=seal_to_each(means.hosts, key, binding.info()),
            )
        )
        await records.requests.begin(view.id, fingerprint, activation)
        records.audit.add(consent(signer, view, means.credential, activation, item))
        return activation

    async def _outcome(
        self,
        request: RequestId,
        activation: ActivationId,
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
            async with self._store.read() as records:
                view = await records.requests.get(request)
                signed = await records.documents.signed(request)
            if view is None:
                raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
            if view.activation != activation and repeated(view, fingerprint):
                activation = ActivationId(view.activation or "")
            if (outcome := ended(view, signed, activation)) is not None:
                return outcome
            left = deadline - loop.time()
            if left <= 0:
                return SignOutcome(request, None)
            pause = _LOOK_AGAIN_S[min(looks, len(_LOOK_AGAIN_S) - 1)]
            await news.wait(min(pause, left))
            looks += 1
