"""Signing, start to end, as the front sees it: one request or a thousand.

Look at the requests; refuse what needs no password; check the password off the
event loop; commit an activation, which binds the unlock key to exactly these
documents with these parameters (several for many documents); notify workers; wait
until the record says how it ended. Repeating the call is always safe; a caller that
leaves changes nothing.

Source: design §3, 1 and 2, and §4 "Activation keys"; spec "POST
{base_url}/solicitudes/firmar"; decisions "repeating firmar", "several at once".
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from structlog.contextvars import bind_contextvars

from appliance.admission.work_owner import working_for
from appliance.appearance.content import SettledStamp, Stamping
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import SIGNED_MEANWHILE, ApplianceError, ErrorCode
from appliance.domain.ids import ActivationId, PersonId, RequestId, new_id
from appliance.domain.people.identity import Credential, Person
from appliance.domain.ports import (
    CompletionNotifier,
    Subscription,
    WorkNotifier,
)
from appliance.domain.requests.levels import SignatureProfile
from appliance.domain.requests.preset import SignaturePreset, effective
from appliance.domain.requests.request import (
    RequestView,
    SignCommand,
    Signer,
    SignOutcome,
)
from appliance.domain.requests.signing_batch import SignBatch
from appliance.domain.signing.activation import (
    SIGNING_PASSWORD,
    Activation,
    ActivationDocument,
    ActivationKey,
    activation_count,
)
from appliance.domain.signing.consent import ConsentSigner, consent_of
from appliance.domain.vocab import EventKind, PersonState, RequestState
from appliance.keys.credential_store import CredentialStore
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.signing_hosts import SigningHosts
from appliance.keys.signing_password import UnlockKeys
from appliance.people.person_store import PersonStore
from appliance.pki.validation.credential_statement import as_certified
from appliance.record.idempotency_store import IdempotencyStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_store import RequestStore
from appliance.requests.shown_document_store import ShownDocumentStore
from appliance.settings import SigningSettings
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.consent_seals import seal_consent
from appliance.signing.reexamination import Reexamination
from appliance.signing.signing_rules import (
    CallParameters,
    check_document,
    check_place_of_others,
    check_signable,
    names_document,
    repeated,
    standing,
)
from appliance.system.background import Shielded

_LOOK_AGAIN_S: Final = (0.5, 1.0, 2.0, 4.0)
_EXAMINED_AGAIN: Final = 16
"""Most documents that one call has examined again after an upgrade."""


@dataclass(frozen=True, slots=True)
class SigningContext:
    """What signing needs, as found before the password is looked at."""

    person: Person
    credential: Credential
    hosts: tuple[ActivationKey, ...]
    """Who may sign."""
    stamps: Mapping[RequestId, SettledStamp]
    """What the stamps show besides the command's fields."""
    parameters: CallParameters


@dataclass(slots=True)
class _Found:
    """What a call finds of its requests."""

    refused: dict[RequestId, ApplianceError] = field(default_factory=dict)
    """What is not signed, and why."""
    going_on: list[ActivationId] = field(default_factory=list)
    """Activations that other calls made, which sign some of them."""
    is_key_new: bool = False
    """Whether its idempotency key stands for nothing yet."""
    fresh: dict[RequestId, RequestView] = field(default_factory=dict)
    """Those that are to be begun, in the order of signing."""
    outdated: list[RequestView] = field(default_factory=list)
    """Those among them whose documents an earlier version has examined."""
    parameters: CallParameters = field(default_factory=CallParameters)
    """Of all that are the signer's."""
    drawn_before: list[RequestId] = field(default_factory=list)
    """Refused ones of which the signer was shown another document."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A call whose activations are committed, or were by an earlier call."""

    refused: Mapping[RequestId, ApplianceError]
    """What is not signed, and why."""
    subscription: Subscription
    """Of the activations; looking at the record is what counts."""
    is_new: bool
    """Whether an activation was committed just now, of which nothing is to be seen
    before a worker has been at it."""
    parameters: CallParameters
    """Of every request that is the signer's."""


class Signing:
    """The use case of `POST /solicitudes/firmar`, and what `/lote` begins with.

    Args:
        store: the record.
        attempts: checks signing passwords.
        hosts: whom to seal to.
        stamping: settles what stamps show.
        work_notifier: wakes a worker.
        completion_notifier: tells that a document is signed.
        clock: the time.
        settings: lifetimes, and how long a call waits.
        shielded: what goes on when the caller leaves.
        reexamination: looks again at what an earlier version has examined.
        profile: of the installation.
    """

    def __init__(
        self,
        store: Database,
        attempts: PasswordAttempts,
        hosts: SigningHosts,
        stamping: Stamping,
        work_notifier: WorkNotifier,
        completion_notifier: CompletionNotifier,
        clock: Clock,
        settings: SigningSettings,
        shielded: Shielded,
        reexamination: Reexamination,
        profile: SignatureProfile,
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._hosts = hosts
        self._stamping = stamping
        self._work_notifier = work_notifier
        self._completion_notifier = completion_notifier
        self._clock = clock
        self._settings = settings
        self._shielded = shielded
        self._reexamination = reexamination
        self._profile = profile

    async def sign(
        self,
        command: SignCommand,
        signer: Signer,
        sent: str | None = None,
        waits: Callable[[], object] = lambda: None,
    ) -> SignOutcome:
        """Sign one request, or give what signing it before gave.

        Args:
            command: what to sign and how, with the signing password.
            signer: who, as the front established it.
            sent: SHA-256 of the file that came with the call, hex, to be compared.
            waits: called where only another call's work is to be waited for.

        Returns:
            The signed document, or none when the work outlasts `wait_s`.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `ALREADY_SIGNED`, `IN_PROGRESS`,
                `STATE`, `IDEMKEY_CONFLICT`, `DOCUMENT_CHANGED`, `DOCUMENT_MISMATCH`;
                as `check_signable`; `CERTIFICATE_NOT_USABLE`, `HSM_UNAVAILABLE`,
                `SIGN_PASSWORD_WRONG`, `SIGN_LOCKED`, `RATE_LIMITED`, `PRESET_FIXED`,
                `ACTIVATION_EXPIRED`, `ACTIVATION_INVALID`, `SIGNING_FAILED`.
        """
        async with self.begin((command.request,), command, signer, sent) as begun:
            _refuse_single(command, begun.refused)
            if not begun.is_new:
                waits()
            return await self._outcome(
                command.request,
                begun.parameters.each[command.request].sha256(command.request),
                begun.subscription,
                look_first=not begun.is_new,
                check=lambda view: _check_meant(view, command, sent),
            )

    @asynccontextmanager
    async def begin(
        self,
        requests: Sequence[RequestId],
        command: SignCommand | SignBatch,
        signer: Signer,
        sent: str | None = None,
    ) -> AsyncIterator[Begun]:
        """Look, refuse, check the password, commit and notify; then wait within it.

        What concerns one request refuses that one, or the call of a single one; what
        concerns the person, the password or the whole appliance refuses the call.

        Args:
            requests: what to sign, in this order.
            command: how, with the signing password.
            signer: who, as the front established it.
            sent: SHA-256 of the file that came with it, hex; None without one.

        Raises:
            ApplianceError: why nothing is signed.
        """
        asked = requests, command, signer, sent
        found, context = await self._found(*asked)
        if found.outdated:
            refused = await self._examine_again(found.outdated)
            _refuse_single(command, refused)
            found, context = await self._found(*asked, again=True)
            found.refused |= refused
        if found.going_on and not found.fresh and found.is_key_new:
            async with self._store.write() as transaction:
                await self._bind_key(transaction, command, signer, found.parameters)
        parts = activation_count(len(found.fresh))
        new = [ActivationId(new_id()) for _ in range(parts)]
        awaited = list(dict.fromkeys([*new, *found.going_on]))
        if awaited:
            bind_contextvars(activation=awaited[0])
        # Listened to before the commit: no news of it is missed.
        async with self._completion_notifier.subscribe(*awaited) as subscription:
            is_new = context is not None and bool(found.fresh)
            if context is not None and found.fresh:
                found.refused |= await self._shielded.run(
                    self._authorize(command, signer, found.fresh, context, new, sent)
                )
            yield Begun(found.refused, subscription, is_new, found.parameters)

    async def _found(
        self,
        requests: Sequence[RequestId],
        command: SignCommand | SignBatch,
        signer: Signer,
        sent: str | None,
        *,
        again: bool = False,
    ) -> tuple[_Found, SigningContext | None]:
        """Look at what a call names; give the context where something is to be begun.

        Args:
            requests: what to sign.
            command: how.
            signer: who.
            sent: SHA-256 of the file that came with it.
            again: what an earlier version has examined was examined again; else none
                is begun where there is such a document.

        Raises:
            ApplianceError: why nothing is signed.
        """
        drawn_before: list[RequestId] = []
        try:
            async with self._store.read() as transaction:
                found = await self._look(transaction, requests, command, signer, sent)
                drawn_before = found.drawn_before
                _refuse_single(command, found.refused)
                if not found.fresh or (found.outdated and not again):
                    return found, None
                context = await self._context(transaction, signer, found)
                _refuse_single(command, found.refused)
            return found, context
        finally:
            if drawn_before:
                async with self._store.write() as transaction:
                    await ShownDocumentStore(transaction).refused(drawn_before)

    async def _examine_again(
        self, views: Sequence[RequestView]
    ) -> dict[RequestId, ApplianceError]:
        """Examine documents again; the rest of many is left to the chores.

        Args:
            views: requests whose documents an earlier version has examined.

        Returns:
            What this version does not take, or cannot examine now.
        """
        refused: dict[RequestId, ApplianceError] = {}
        for view in views[:_EXAMINED_AGAIN]:
            try:
                with working_for(view.integrator):
                    await self._reexamination.current(view)
            except ApplianceError as exc:
                refused[view.id] = exc
        return refused

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
        async with self._completion_notifier.subscribe(activation) as subscription:
            await self._outcome(request, view.params_sha256 or "", subscription)

    async def _look(
        self,
        transaction: Transaction,
        requests: Sequence[RequestId],
        command: SignCommand | SignBatch,
        signer: Signer,
        sent: str | None,
    ) -> _Found:
        """Tell apart what is refused, what is done or going on, and the rest.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`; `SOLICITUD_NOT_FOUND` of a single one.
        """
        views = await RequestStore(transaction).named(set(requests))
        found = _Found(parameters=CallParameters(given=command.given))
        own = _own(requests, views, command, signer, found)
        _refuse_single(command, found.refused)
        if command.idempotency_key is not None:
            used = await IdempotencyStore(transaction).remembered(
                signer.person, command.idempotency_key
            )
            sha256 = command.sha256(found.parameters.of_presets)
            if used is not None and used != sha256:
                raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)
            found.is_key_new = used is None
        changed: Mapping[RequestId, bool] = {}
        if not names_document(command, sent):
            changed = await ShownDocumentStore(transaction).changed(own.values())
        for request, view in own.items():
            try:
                is_repeat = repeated(
                    view, found.parameters.each[request].sha256(request)
                )
                if not is_repeat and view.preset is not None:
                    view.preset.check(command.given)
                # A repeat, too, has to mean what was signed.
                _check_meant(view, command, sent)
                if not is_repeat:
                    _check_unchanged(request, changed, found)
            except ApplianceError as exc:
                found.refused[request] = exc
                continue
            if is_repeat:
                found.going_on.append(ActivationId(view.activation or ""))
            else:
                found.fresh[request] = view
                if view.inspection.is_outdated:
                    found.outdated.append(view)
        return found

    async def _context(
        self, transaction: Transaction, signer: Signer, found: _Found
    ) -> SigningContext:
        """What signing needs; moves what cannot be signed so to `refused`.

        Raises:
            ApplianceError: `CERTIFICATE_NOT_USABLE`.
            HsmUnavailableError: no host can sign.
        """
        now = self._clock.now()
        person = await PersonStore(transaction).get(signer.person)
        credential = await CredentialStore(transaction).usable(signer.person, now)
        if (
            person is None
            or person.state is not PersonState.ACTIVE
            or credential is None
        ):
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        person = as_certified(person, credential)
        each = found.parameters.each
        stamps = await self._stamping.settle(
            transaction, found.parameters.given, each, found.fresh.values()
        )
        followed = [request for request, view in found.fresh.items() if view.followed]
        later: Mapping[RequestId, Sequence[SignaturePreset]] = {}
        if followed:
            later = await RequestStore(transaction).presets_after(followed)
        for request, view in list(found.fresh.items()):
            try:
                details = stamps[request].details
                check_signable(view, each[request], person, now, details)
                if request in later:
                    check_place_of_others(view, each[request], later[request])
            except ApplianceError as exc:
                found.refused[request] = exc
                del found.fresh[request]
        hosts = await self._hosts.live_in(transaction) if found.fresh else ()
        return SigningContext(person, credential, hosts, stamps, found.parameters)

    async def _authorize(
        self,
        command: SignCommand | SignBatch,
        signer: Signer,
        fresh: Mapping[RequestId, RequestView],
        context: SigningContext,
        activations: Sequence[ActivationId],
        sent: str | None,
    ) -> dict[RequestId, ApplianceError]:
        """From the password to the committed activations, and workers notified.

        Shielded from the caller's leaving: a check that is begun is counted.

        Returns:
            What moved on meanwhile, and how; what another call has begun meanwhile
            in the same way is left to that one, and no refusal.

        Raises:
            ApplianceError: the password was not right, or none can be signed now.
        """
        # The same wrong password for the same first request counts once.
        right = await self._attempts.check(signer, next(iter(fresh)), command.password)
        refusal, refused = None, dict[RequestId, ApplianceError]()
        async with self._store.write() as transaction:
            unlock = await self._attempts.passed(transaction, signer, right)
            try:
                refused = await self._commit(
                    transaction,
                    command,
                    signer,
                    fresh,
                    context,
                    unlock,
                    activations,
                    sent,
                )
            except ApplianceError as exc:
                # Raised before anything was written; the slot must be closed as
                # right all the same, so the transaction goes on to its commit.
                refusal = exc
        if refusal is not None:
            raise refusal
        # Each wakes one worker.
        for activation in activations:
            await self._work_notifier.notify(activation)
        return refused

    async def _commit(
        self,
        transaction: Transaction,
        command: SignCommand | SignBatch,
        signer: Signer,
        fresh: Mapping[RequestId, RequestView],
        context: SigningContext,
        unlock: UnlockKeys | None,
        activations: Sequence[ActivationId],
        sent: str | None,
    ) -> dict[RequestId, ApplianceError]:
        """Make the activations; refuses before its first write.

        Raises:
            ApplianceError: the key is in other use, or not the one it was.
        """
        for view in fresh.values():
            if view.shared:
                await RequestStore(transaction).lock_turns(fresh)
                break
        # Locked in the order of their numbers, signed in the command's.
        found = await RequestStore(transaction).named(fresh, lock=True)
        begun, refused = _still_to_begin(
            fresh,
            found,
            context.parameters,
            signer,
            lambda view: _check_meant(view, command, sent),
        )
        if not begun:
            if len(refused) < len(fresh):
                # Others began what this call would: it repeats theirs.
                await self._bind_key(transaction, command, signer, context.parameters)
            return refused
        if unlock is None:
            # Changed since it was checked: what was typed opens nothing now.
            raise ApplianceError(ErrorCode.IN_PROGRESS)
        # Locked: a renewal has either committed, or waits and then finds this
        # activation open. The seal is bound to the certificate.
        credential = await CredentialStore(transaction).get(
            context.credential.id, lock=True
        )
        if (
            credential is None
            or credential.id not in unlock
            or not credential.usable_at(self._clock.now())
        ):
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        await self._bind_key(transaction, command, signer, context.parameters)
        made, consents = [], []
        consenting = ConsentSigner.of(context.person, credential)
        for new, views in self._activations(activations, begun, signer, context):
            whole = consent_of(
                new, consenting, dict(enumerate(views)), self._profile_of
            )
            seals = seal_consent(context.hosts, unlock[credential.id], whole)
            made.append((new, seals))
            consents += [
                _consent(signer, view, new, document)
                for view, document in zip(views, new.documents, strict=True)
            ]
        await ActivationStore(transaction).begin_all(made)
        # Last: what is queued is written even where a refusal follows.
        for consent in consents:
            transaction.audit.add(consent)
        return refused

    def _activations(
        self,
        ids: Sequence[ActivationId],
        begun: Sequence[RequestView],
        signer: Signer,
        context: SigningContext,
    ) -> Iterator[tuple[Activation, Sequence[RequestView]]]:
        """The activations of a command, each with its requests."""
        now, claim = self._clock.now(), timedelta(seconds=self._settings.claim_s)
        parts = activation_count(len(begun))
        for number in range(parts):
            first, last = (len(begun) * at // parts for at in (number, number + 1))
            views = begun[first:last]
            # As they are consented to, in the order of signing.
            documents = tuple(
                ActivationDocument(
                    seq,
                    view.id,
                    view.sha256,
                    context.parameters.each[view.id],
                    context.parameters.each[view.id].sha256(view.id),
                    details=context.stamps[view.id].details,
                    code=context.stamps[view.id].code,
                )
                for seq, view in enumerate(views)
            )
            yield (
                Activation(
                    id=ids[number],
                    person=signer.person,
                    credential=context.credential.id,
                    factors=(*signer.factors, SIGNING_PASSWORD),
                    # Apart, so that they are claimed in the command's order.
                    created=now + timedelta(microseconds=number),
                    # Those before it have a second a document, as in a key phase.
                    claim_by=now + claim + timedelta(seconds=first),
                    documents=documents,
                    profile=self._profile.to_json(),
                ),
                views,
            )

    def _profile_of(self, view: RequestView) -> SignatureProfile:
        """How a request is to be signed, as a worker resolves it."""
        return self._profile.narrowed(view.wishes)

    async def _bind_key(
        self,
        transaction: Transaction,
        command: SignCommand | SignBatch,
        signer: Signer,
        parameters: CallParameters,
    ) -> None:
        """Have a call's idempotency key, if any, stand for its command from now on.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`: another call has used it.
        """
        if command.idempotency_key is not None:
            await IdempotencyStore(transaction).remember(
                signer.person,
                command.idempotency_key,
                command.sha256(parameters.of_presets),
                self._clock.now(),
            )

    async def _outcome(
        self,
        request: RequestId,
        fingerprint: str,
        subscription: Subscription,
        *,
        look_first: bool = True,
        check: Callable[[RequestView], None] = lambda _: None,
    ) -> SignOutcome:
        """Wait for the record to say how it ended; news only make it quick.

        Where ours was given back and another call has begun anew meanwhile, this
        one is a repeat of that.

        Args:
            request: to wait for.
            fingerprint: of the command.
            subscription: of the activations.
            look_first: whether the record may tell the outcome already.
            check: refuses an outcome that the caller does not mean.

        Raises:
            ApplianceError: what ended the attempt, or a refusal by `check`.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.wait_s
        looks = 0
        if not look_first:
            await subscription.wait(min(_LOOK_AGAIN_S[0], self._settings.wait_s))
        while True:
            async with self._store.read() as transaction:
                found = await RequestStore(transaction).with_signed((request,))
            if request not in found:
                raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
            view, signed = found[request]
            if (outcome := standing(view, signed, fingerprint)) is not None:
                check(view)
                return outcome
            left = deadline - loop.time()
            if left <= 0:
                return SignOutcome(request, None)
            pause = _LOOK_AGAIN_S[min(looks, len(_LOOK_AGAIN_S) - 1)]
            await subscription.wait(min(pause, left))
            looks += 1


def _refuse_single(
    command: SignCommand | SignBatch, refused: Mapping[RequestId, ApplianceError]
) -> None:
    """Refuse the call of a single request if that is refused.

    Raises:
        ApplianceError: why.
    """
    if isinstance(command, SignCommand) and command.request in refused:
        raise refused[command.request]


def _owned(view: RequestView | None, person: PersonId) -> RequestView:
    """What was found of a request; of somebody else it is as absent as none.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`.
    """
    if view is None or view.person != person:
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
    return view


def _own(
    requests: Sequence[RequestId],
    views: Mapping[RequestId, RequestView],
    command: SignCommand | SignBatch,
    signer: Signer,
    found: _Found,
) -> dict[RequestId, RequestView]:
    """Those that are the signer's, their parameters settled; others are refused."""
    own: dict[RequestId, RequestView] = {}
    for request in requests:
        try:
            own[request] = view = _owned(views.get(request), signer.person)
        except ApplianceError as exc:
            found.refused[request] = exc
        else:
            params = command.given.params
            if view.preset is not None:
                params = effective(command.given, view.preset)
                found.parameters.of_presets[view.id] = params.sha256(view.id)
            found.parameters.each[view.id] = params
    return own


def _check_meant(
    view: RequestView, command: SignCommand | SignBatch, sent: str | None
) -> None:
    """Refuse the command of a single request that means another document.

    Raises:
        ApplianceError: as `check_document`.
    """
    if isinstance(command, SignCommand):
        check_document(view, command, sent)


def _check_unchanged(
    request: RequestId, changed: Mapping[RequestId, bool], found: _Found
) -> None:
    """Refuse a document that the signer has not been shown since it changed.

    Args:
        request: to be begun.
        changed: as `ShownDocumentStore.changed` gives it.
        found: notes it where the earlier document was drawn for its signer.

    Raises:
        ApplianceError: `DOCUMENT_CHANGED`.
    """
    if request not in changed:
        return
    if changed[request]:
        found.drawn_before.append(request)
    raise ApplianceError(ErrorCode.DOCUMENT_CHANGED, sentence=SIGNED_MEANWHILE)


def _still_to_begin(
    fresh: Mapping[RequestId, RequestView],
    views: Mapping[RequestId, RequestView],
    parameters: CallParameters,
    signer: Signer,
    check: Callable[[RequestView], None],
) -> tuple[list[RequestView], dict[RequestId, ApplianceError]]:
    """Of what was fresh a moment ago: what still is, and what moved on.

    Args:
        fresh: as it was.
        views: as it is now.
        parameters: of the command.
        signer: whose the requests must be.
        check: refuses what another call has begun and this one does not mean.
    """
    begun: list[RequestView] = []
    refused: dict[RequestId, ApplianceError] = {}
    for request in fresh:
        try:
            view = _owned(views.get(request), signer.person)
            if repeated(view, parameters.each[request].sha256(request)):
                check(view)
                continue
            if view.sha256 == fresh[request].sha256:
                begun.append(view)
            else:  # Another one of its turn has signed: to be looked at anew.
                refused[request] = ApplianceError(ErrorCode.IN_PROGRESS)
        except ApplianceError as exc:
            refused[request] = exc
    return begun, refused


def _consent(
    signer: Signer, view: RequestView, new: Activation, document: ActivationDocument
) -> AuditEvent:
    """What the person consented to, for the audit."""
    return AuditEvent(
        EventKind.ACTIVATION_CREATED,
        signer.actor,
        integrator=view.integrator,
        request=view.id,
        activation=new.id,
        detail={
            "credential": new.credential,
            "documentSha256": document.document_sha256,
            "paramsSha256": document.params_sha256,
            "factors": list(new.factors),
        },
    )
