"""From requests that may be signed to one committed activation.

For one request and for two hundred alike: check what needs no password, reserve
an attempt, check the password off the event loop, then one transaction that locks
the requests, binds the unlock key to exactly these documents with these
parameters, and audits each of them. Whatever is refused of one harms no other.

Source: design §3, 1 and 2, and §4 "Activation keys".
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from appliance.appearance.content import SettledStamp, Stamping
from appliance.core.idempotency_store import IdempotencyStore
from appliance.core.unit_of_work import Database, Transaction
from appliance.domain.activation import (
    Activation,
    ActivationDocument,
    ActivationKey,
    activation_data,
)
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.identity import Credential
from appliance.domain.ids import ActivationId, PersonId, RequestId
from appliance.domain.ports import Doorbell
from appliance.domain.requests.request import RequestView, Signer
from appliance.domain.requests.signing_command import SignParameters
from appliance.domain.vocab import PersonState
from appliance.identity.person_store import PersonStore
from appliance.keys.credential_store import CredentialStore
from appliance.keys.password_attempts import Attempts
from appliance.keys.signing_hosts import SigningHosts, seal_to_each
from appliance.keys.signing_password import UnlockKeys
from appliance.pki.revocation import is_found_revoked
from appliance.settings import SigningSettings
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.request_store import RequestStore
from appliance.signing.requests import owned
from appliance.signing.signing_rules import (
    SIGNING_PASSWORD,
    check_signable,
    consent,
    repeated,
)

Refusals = dict[RequestId, ApplianceError]
"""Why a request is not signed, by request."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a caller wants signed, and how."""

    wanted: dict[RequestId, str]
    """Fingerprint of the command, by request; in the order of signing."""
    params: SignParameters
    """Of every one of them."""
    password: bytes = field(repr=False)
    idempotency: tuple[str, str] | None = None
    """`Idempotency-Key` and the fingerprint that it stands for."""


@dataclass(frozen=True, slots=True)
class Means:
    """What signing needs, as found before the password is looked at."""

    credential: Credential
    hosts: tuple[ActivationKey, ...]
    """Who may sign."""
    refused: Refusals
    """What cannot be signed so."""
    stamps: Mapping[RequestId, SettledStamp]
    """What the stamps show besides the command's fields."""


class Authorizing:
    """Makes activations.

    Args:
        store: the record.
        attempts: checks signing passwords.
        hosts: whom to seal to.
        doorbell: wakes a worker.
        clock: the time.
        settings: lifetimes.
        stamping: settles what stamps show.
    """

    def __init__(
        self,
        store: Database,
        attempts: Attempts,
        hosts: SigningHosts,
        doorbell: Doorbell,
        clock: Clock,
        settings: SigningSettings,
        stamping: Stamping,
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._hosts = hosts
        self._doorbell = doorbell
        self._clock = clock
        self._settings = settings
        self._stamping = stamping

    async def check_key(
        self,
        transaction: Transaction,
        person: PersonId,
        idempotency: tuple[str, str] | None,
    ) -> None:
        """Refuse an idempotency key that stands for another command.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`.
        """
        if idempotency is None:
            return
        key, fingerprint = idempotency
        used = await IdempotencyStore(transaction).remembered(person, key)
        if used is not None and used != fingerprint:
            raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)

    async def means(
        self,
        transaction: Transaction,
        person_id: PersonId,
        views: Collection[RequestView],
        params: SignParameters,
    ) -> Means:
        """All that can be refused before the password is looked at.

        Args:
            transaction: the caller's.
            person_id: the signer.
            views: their requests, each `pendiente`.
            params: of the command.

        Raises:
            ApplianceError: `CERTIFICATE_NOT_USABLE`.
            HsmUnavailableError: no host can sign.
        """
        now = self._clock.now()
        person = await PersonStore(transaction).get(person_id)
        credential = await CredentialStore(transaction).active(person_id)
        if person is None or person.state is not PersonState.ACTIVE:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        if credential is None or not credential.usable_at(now):
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        if await is_found_revoked(transaction, credential):
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        refused: Refusals = {}
        stamps = await self._stamping.settle(transaction, params, views)
        for view in views:
            try:
                check_signable(view, params, person, now, stamps[view.id].details)
            except ApplianceError as exc:
                refused[view.id] = exc
        left = len(refused) < len(views)
        hosts = await self._hosts.live_in(transaction) if left else ()
        return Means(credential, hosts, refused, stamps)

    async def authorize(
        self, wish: Wish, signer: Signer, means: Means, activation: ActivationId
    ) -> Refusals:
        """From the password to the committed activation.

        A request that another call has begun meanwhile in the same way is left to
        that one, and no refusal. Call it shielded from the caller's leaving.

        Args:
            wish: without what `means` refused.
            signer: whose they are.
            means: as found.
            activation: id of the new one; it is made unless nothing is left to it.

        Returns:
            What moved on meanwhile, and how.

        Raises:
            ApplianceError: the password was not right, or none can be signed now.
        """
        # The same wrong password for the same first request counts once.
        first = next(iter(wish.wanted))
        right = await self._attempts.check(signer, first, wish.password)
        refusal: ApplianceError | None = None
        refused: Refusals = {}
        async with self._store.write() as transaction:
            unlock = await self._attempts.passed(transaction, signer, right)
            try:
                refused = await self._begin(
                    transaction, wish, signer, means, unlock, activation
                )
            except ApplianceError as exc:
                # Raised before anything was written; the slot must be closed as
                # right all the same, so the transaction goes on to its commit.
                refusal = exc
        if refusal is not None:
            raise refusal
        await self._doorbell.ring(activation)
        return refused

    async def _begin(
        self,
        transaction: Transaction,
        wish: Wish,
        signer: Signer,
        means: Means,
        unlock: UnlockKeys | None,
        activation: ActivationId,
    ) -> Refusals:
        """Make the activation; refuses before its first write.

        Raises:
            ApplianceError: the key is in other use, or not the one it was.
        """
        views = await RequestStore(transaction).named(wish.wanted, lock=True)
        begun, refused = _sorted(wish, views, signer.person)
        if not begun:
            return refused
        if unlock is None:
            # Changed since it was checked: what was typed opens nothing now.
            raise ApplianceError(ErrorCode.IN_PROGRESS)
        if means.credential.id not in unlock:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        now = self._clock.now()
        if wish.idempotency is not None:
            await IdempotencyStore(transaction).remember(
                signer.person, *wish.idempotency, now
            )
        new = self._activation(wish, signer, means, begun, activation, now)
        data = activation_data(new, means.credential.key_version)
        seals = seal_to_each(means.hosts, unlock[new.credential], data)
        await ActivationStore(transaction).add(new, seals)
        await RequestStore(transaction).begin(
            {document.request: document.params_sha256 for document in new.documents},
            activation,
        )
        for view, document in zip(begun, new.documents, strict=True):
            transaction.audit.add(
                consent(signer, view, means.credential, activation, document)
            )
        return refused

    def _activation(
        self,
        wish: Wish,
        signer: Signer,
        means: Means,
        begun: Sequence[RequestView],
        activation: ActivationId,
        now: datetime,
    ) -> Activation:
        """The consent as it is recorded."""
        return Activation(
            id=activation,
            person=signer.person,
            credential=means.credential.id,
            factors=(*signer.factors, SIGNING_PASSWORD),
            created=now,
            claim_by=now + timedelta(seconds=self._settings.claim_s),
            documents=tuple(
                ActivationDocument(
                    seq,
                    view.id,
                    view.sha256,
                    wish.params,
                    wish.wanted[view.id],
                    details=means.stamps[view.id].details,
                    code=means.stamps[view.id].code,
                )
                for seq, view in enumerate(begun)
            ),
        )


def _sorted(
    wish: Wish, views: Mapping[RequestId, RequestView], person: PersonId
) -> tuple[list[RequestView], Refusals]:
    """What is still to be begun, in the wish's order, and what moved on."""
    begun: list[RequestView] = []
    refused: Refusals = {}
    for request, fingerprint in wish.wanted.items():
        try:
            view = owned(views.get(request), person)
            if not repeated(view, fingerprint):
                begun.append(view)
        except ApplianceError as exc:
            refused[request] = exc
    return begun, refused
