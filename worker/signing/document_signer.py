"""Documents of an activation, from their bytes to their publication, in groups.

The dangerous path, read top to bottom: everything is read again and hashed
again; the exact digests are committed as intents; the key is used; its
signatures are committed. What follows needs no key and is `completion`'s: the result
is checked, and the file is durable before the record names it. Each commit is
fenced: when another worker has claimed since, this one stops and nothing it did
counts. A commit is of a whole group; what is wrong with one of its documents ends
that one.

Source: design §3, 4 and 5.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import Final

from appliance.domain.appearance.stamp import lay_out
from appliance.domain.appearance.text import StampSigner, as_shown, spoken
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    CredentialRefusedError,
    DocumentAlteredError,
    DocumentMissingError,
    ErrorCode,
    HsmRefusedError,
    HsmUnavailableError,
    ProfileDiffersError,
)
from appliance.domain.ids import RequestId
from appliance.domain.keys.hsm_keys import ResidentKey, WrappedKey
from appliance.domain.people.identity import Credential, Person
from appliance.domain.ports import BlobStore
from appliance.domain.requests.request import RequestView
from appliance.domain.signing.activation import (
    ActivationDocument,
    ActivationFormat,
    Claim,
    Seal,
    SignatureValue,
    activation_data,
)
from appliance.domain.signing.consent import (
    Consent,
    ConsentSigner,
    consent_of,
    drawn_logo,
)
from appliance.domain.vocab import (
    ItemState,
    PersonState,
    RequestState,
    StatementFault,
    VouchedBy,
)
from appliance.keys.key_encryption import open_outer, signing_key
from appliance.keys.key_facts import key_facts
from appliance.requests.inspection import Inspections
from appliance.signing.claims import ClaimedActivation, Claims
from hsm_config.pkcs11.key_wrapping import DoesNotUnwrapError
from worker.failpoints import (
    AFTER_SIGN,
    BEFORE_SIGN,
    KEYED,
    OPENING,
    RECORDED,
    crash_point,
)
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession
from worker.leased_worker import FencedOffError
from worker.pades.algorithms import SignatureMethod, method_for
from worker.pades.appearance.fonts import StampFonts
from worker.pades.byte_range_digest import FileDigests
from worker.pades.prepare import PreparedSignature, SignaturePlan, prepare
from worker.pades.reading_limits import read_all_apart
from worker.signing.activation_keys import ActivationKeys
from worker.signing.completion import Completion, DocumentInWork, Ended, ended_by
from worker.signing.consent_journal import ConsentJournal, KeyUse
from worker.signing.credential_statement import CredentialStatements
from worker.signing.level_extension import Levels
from worker.signing.stage_timings import StageTimings
from worker.signing.turns import SINGLE, TOGETHER, Turn

UsableKey = ResidentKey | WrappedKey
"""What the HSM signs with; a wrapped one only within this HSM."""
GROUP_MOST: Final = 64
"""Documents of a group, however quick the HSM is."""
_QUICK: Final = 32
"""Documents that an HSM signs in `hsm.group_ms` that is not worth waiting for."""
_GROUP_S: Final = 4.0
"""Time that a group is to take in all, while others wait for a turn, in seconds."""
_GROUP_BYTES: Final = 8_388_608
"""What the documents of a group have together, unless a single one has more."""


class OriginalUnreadableError(ApplianceError):
    """The document that was to be signed cannot be read now: that is no try."""


class Pace:
    """What a document takes from its reading to its publication, at last."""

    def __init__(self) -> None:
        self._document_s = _GROUP_S / GROUP_MOST

    @property
    def group_size(self) -> int:
        """How many come to their end while others wait for a turn."""
        return max(1, int(_GROUP_S / self._document_s))

    def took(self, documents: int, seconds: float) -> None:
        """Learn from a group.

        Args:
            documents: of it.
            seconds: that it took.
        """
        # Slower at once, quicker by and by.
        now = seconds / documents
        self._document_s = max(now, (self._document_s + now) / 2)


@dataclass(slots=True)
class GroupResult:
    """What came of a group; what is named here neither way is published."""

    ended: Ended = field(default_factory=dict)
    """Why others are not signed."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A document in work with its revision, which lacks the value alone."""

    part: DocumentInWork
    plan: SignaturePlan
    prepared: PreparedSignature

    @property
    def method(self) -> SignatureMethod:
        """How its key signs."""
        return self.plan.method

    @property
    def use(self) -> KeyUse:
        """The use of the key, as the host's journal has it."""
        digest = self.prepared.digest.hex()
        return KeyUse(digest, self.plan.signed_at, self.plan.token_bytes)

    @property
    def size_bytes(self) -> int:
        """Of the file to come."""
        return len(self.part.original.content) + len(self.prepared.increment)

    def with_value(self, value: bytes) -> DocumentInWork:
        """With its signature."""
        signature = SignatureValue(
            increment=self.prepared.increment,
            contents_at=self.prepared.contents_at,
            contents_length=self.prepared.contents_length,
            signed_attributes=self.prepared.signed_attributes,
            value=value,
        )
        document = replace(self.part.document, signature=signature)
        return replace(self.part, document=document)


@dataclass(frozen=True, slots=True)
class DocumentSigner:
    """Signs documents, a group at a time, under a claim.

    Args:
        claims: this worker's transactions.
        documents: where PDFs are.
        completion: takes it from its signature on.
        levels: knows the room that a timestamp needs.
        session: the HSM.
        keys: opens what was sealed to this host.
        fonts: of the stamp.
        clock: the time.
        installation: the setting of that name.
        served: whether the HSM serves this record.
        inspections: the sandbox's, by which a document is signed.
        statements: whose key a credential is, by its certificate.
        journal: of this host, by which a consent is used once and in time.
        prefer_pss: whether RSA keys sign by PSS (`hsm.signature_scheme`).
        refuses_tests: whether nobody signs who was made up in PREPROD.
        pace: of this worker.
    """

    claims: Claims
    documents: BlobStore
    completion: Completion
    levels: Levels
    session: HsmSession
    keys: ActivationKeys
    fonts: StampFonts
    clock: Clock
    installation: str
    served: GenerationCheck
    inspections: Inspections
    statements: CredentialStatements
    journal: ConsentJournal
    prefer_pss: bool = False
    refuses_tests: bool = False
    pace: Pace = field(default_factory=Pace)

    @property
    def hsm_is_slow(self) -> bool:
        """Whether other groups are to go on while one is in the HSM."""
        return self.session.group_size < _QUICK

    async def unlock(self, work: ClaimedActivation) -> UsableKey:
        """Open both locks of a claim's key, by what stands recorded now.

        Once a claim: what comes of it is wrapped by the HSM, and the unlock key is
        let go of here. Again where the claim was read again: its seal then opens only
        if all that the signer consented to is still the same.

        Raises:
            ActivationInvalidError: a lock does not open, or this host saw the
                activation end.
            CredentialRefusedError: the key is not the person's, by its certificate.
            ProfileDiffersError: the settings of this host are not the front's.
            ApplianceError: `ACTIVATION_EXPIRED`, `CERTIFICATE_NOT_USABLE`.
        """
        person, credential = await self._checked(work)
        data = self._bound(work, person, credential)
        aad = credential.aad(self.installation)
        begin = partial(self._begin, work.claim)
        unlock = self.keys.unlock(work.claim.seal, data, begin)
        return signing_key(credential, open_outer(unlock, credential.outer, aad))

    async def seal_again(self, work: ClaimedActivation) -> Seal | None:
        """Seal a claim's unlock key to this host's newest key, with `unlock`'s checks.

        Raises:
            ActivationInvalidError: the seal does not open.
            CredentialRefusedError: the key is not the person's, by its certificate.
            ProfileDiffersError: the settings of this host are not the front's.
            ApplianceError: `ACTIVATION_EXPIRED`, `CERTIFICATE_NOT_USABLE`.
        """
        seal = work.claim.seal
        if seal is None:
            return None
        # What this host saw end is not kept alive by a row that says otherwise.
        self.journal.demand_not_ended(work.claim.id)
        person, credential = await self._checked(work)
        return self.keys.seal_again(seal, self._bound(work, person, credential))

    def _begin(self, claim: Claim) -> None:
        """Note the opening before it happens: who dies in between has used no key.

        Raises:
            ApplianceError: as `ConsentJournal.begin`.
        """
        self.journal.begin(claim)
        for document in claim.documents:
            crash_point(OPENING, document.request)

    def _bound(
        self, work: ClaimedActivation, person: Person, credential: Credential
    ) -> bytes:
        """The `info` of a claim's seal, by what this worker is about to use.

        Raises:
            ActivationInvalidError: a request or a logo of it is missing.
            ProfileDiffersError: the settings of this host are not the front's.
            ApplianceError: `ACTIVATION_EXPIRED`: it has no seal for this host.
        """
        claim = work.claim
        if claim.seal is None:
            raise ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
        if not claim.is_in_order:
            raise ActivationInvalidError("seal")
        bound = claim.seal.format
        if bound is ActivationFormat.FIRST:
            try:
                return activation_data(claim, credential.key_version)
            except ValueError as exc:
                raise ActivationInvalidError("seal") from exc
        own = self.completion.profile.to_json()
        if claim.profile is not None and claim.profile != own:
            raise ProfileDiffersError
        try:
            return self._consent(work, ConsentSigner.of(person, credential)).data(bound)
        except (KeyError, ValueError) as exc:
            raise ActivationInvalidError("seal") from exc

    def _consent(self, work: ClaimedActivation, signer: ConsentSigner) -> Consent:
        """What was consented to, by what this worker is about to use.

        Raises:
            KeyError: a request or a logo of it is missing.
            ValueError: a logo is none.
        """
        return consent_of(
            work.claim,
            signer,
            work.requests,
            self.completion.profile_of,
            lambda logo: drawn_logo(work.pictures[logo.sha256]),
        )

    def over(self, claim: Claim, documents: Sequence[ActivationDocument]) -> None:
        """Have the key never be used again here for documents that were given up.

        Args:
            claim: of the caller.
            documents: of it, which the record says have ended.
        """
        waited = [each.seq for each in documents if each.state is ItemState.WAITING]
        if waited:
            self.journal.over(claim, waited)

    def next_group(
        self, work: ClaimedActivation, left: Sequence[ActivationDocument]
    ) -> Sequence[ActivationDocument]:
        """What is signed together next: the first ones of what is left.

        As many as the HSM signs in `hsm.group_ms`, as come to their end in a short
        while, and as memory has room for. What may have ended a worker is signed
        alone. What was signed already goes with others of its kind.

        Args:
            work: the claim.
            left: its documents still to be signed, one at least.
        """
        if work.claim.tries > 1:
            return left[:1]
        if left[0].state is ItemState.KEYED:
            # What was fetched for it is there: no earlier claim died with it.
            left = [*takewhile(lambda one: one.state is ItemState.KEYED, left)]
        most = min(self.session.group_size, self.pace.group_size, GROUP_MOST)
        size = 0
        for count, document in enumerate(left[:most]):
            view = work.requests.get(document.seq)
            size += 0 if view is None else view.inspection.size_bytes
            if count and size > _GROUP_BYTES:
                return left[:count]
        return left[:most]

    async def sign(
        self,
        work: ClaimedActivation,
        group: Sequence[ActivationDocument],
        key: UsableKey | None,
        turn: Turn = SINGLE,
    ) -> GroupResult:
        """Take documents to their end, from wherever an earlier attempt left them.

        Args:
            work: the claim.
            group: of it, as `next_group` gave it.
            key: as `unlock` gave it; None for those whose signatures are stored.
            turn: of the group.

        Raises:
            FencedOffError: another worker has claimed since.
            CertificateChangedError: do it again, with the claim read again.
            ApplianceError: `STORE_UNAVAILABLE`: the record is away.
        """
        result = GroupResult()
        stages = StageTimings(turn)
        begun = time.monotonic()
        # 1. Read the originals again, and hash them.
        async with turn.waiting():
            parts = await self._read(work, group, result)
        await stages.over("read")
        # 2. Use the key, unless an earlier attempt did.
        waiting = [p for p in parts if p.document.state is ItemState.WAITING]
        signed = [p for p in parts if p.document.state is not ItemState.WAITING]
        if waiting:
            signed += await self._use_key(work, waiting, key, result.ended, stages)
        # 3. Timestamp, check, store and publish them, as far as what they need of
        # servers outside was fetched.
        if signed and await self._is_stated(work, signed, result.ended):
            result.ended |= await self.completion.complete(work, signed, stages)
        self.pace.took(len(group), time.monotonic() - begun)
        return result

    async def _read(
        self,
        work: ClaimedActivation,
        group: Sequence[ActivationDocument],
        result: GroupResult,
    ) -> list[DocumentInWork]:
        """Read what there is something to do for."""
        found = []
        nobody = work.person is None or work.credential is None
        for document in group:
            view = work.requests.get(document.seq)
            if view is None or nobody:
                result.ended[document.seq] = ApplianceError(ErrorCode.SIGNING_FAILED)
                continue
            if document.state is ItemState.WAITING:
                # An upgrade may have come since it was asked for: what this version
                # does not take is not signed.
                try:
                    current = await self.inspections.current(view)
                except ApplianceError as exc:
                    result.ended[document.seq] = exc
                    continue
                if not _is_as_consented(work, view, current):
                    expired = ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
                    result.ended[document.seq] = expired
                    continue
                view = current
            found.append((document, view))
        wanted = [(view.integrator, each.document_sha256) for each, view in found]
        originals: list[bytes | ApplianceError]
        try:
            originals = await self.documents.get_all(wanted)
        except ApplianceError as exc:
            originals = [exc] * len(wanted)
        parts = []
        for (document, view), pdf in zip(found, originals, strict=True):
            is_damaged = isinstance(pdf, DocumentMissingError | DocumentAlteredError)
            if is_damaged and document.state is ItemState.WAITING:
                # No key was used for it: its signer is told, and may sign it later.
                result.ended[document.seq] = ApplianceError(ErrorCode.DOCUMENT_DAMAGED)
            elif isinstance(pdf, ApplianceError):
                result.ended[document.seq] = OriginalUnreadableError(pdf.code)
            else:
                parts.append(DocumentInWork(document, view, FileDigests(pdf)))
        return parts

    async def _use_key(
        self,
        work: ClaimedActivation,
        waiting: Sequence[DocumentInWork],
        key: UsableKey | None,
        ended: Ended,
        stages: StageTimings,
    ) -> list[DocumentInWork]:
        """Key phase: nothing is signed that is not on the record."""
        if key is None:
            ended |= ended_by(ApplianceError(ErrorCode.ACTIVATION_EXPIRED), waiting)
            return []
        try:
            # 0. Rows may be others by now: each check is made of what is signed with.
            person, credential = await self._checked_with(work, key)
            # 1. The revisions, which lack nothing but the value, of what was
            # consented to; and room for the files: a key is not used for nothing.
            signer = (person, credential)
            ready = await self._prepare(work, waiting, signer, ended, stages.turn)
            stages.done("prepare")
            ready = await self._with_room(ready, ended)
            if not ready:
                return []
            # 2. The intents are committed before the key is used: no signature is
            # ever made that the record does not know of.
            documents = [each.part.document for each in ready]
            certificate = credential.certificate
            named = key_facts(credential.spki, certificate)
            if not await self.claims.intend(work.claim, documents, certificate, named):
                raise FencedOffError
            # 3. So does this host's own journal, whose word the record cannot change.
            ready = self._not_used_yet(work.claim, ready, ended)
        except ApplianceError as exc:
            ended |= ended_by(exc, waiting) | ended
            return []
        await stages.over("intend")
        for each in ready:
            crash_point(BEFORE_SIGN, each.part.document.request)
        # 4. The key is used, and its signatures are committed, with all that
        # publishing them needs.
        async with stages.turn.waiting(long=self.hsm_is_slow):
            made = await self._sign(key, ready, ended)
            stages.done("sign")
            if not made:
                return []
            documents = [part.document for part in made]
            if not await self.claims.record_signatures(work.claim, documents, named):
                raise FencedOffError
        for document in documents:
            crash_point(RECORDED, document.request)
        self.journal.over(work.claim, [document.seq for document in documents])
        await stages.over("keyed")
        for document in documents:
            crash_point(KEYED, document.request)
        return made

    async def _is_stated(
        self, work: ClaimedActivation, signed: Sequence[DocumentInWork], ended: Ended
    ) -> bool:
        """Check whose key made stored signatures, before any of them is published.

        They need no seal: whoever writes rows would have a signature of their own
        published, by a certificate of their own.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if work.person is None or work.credential is None:
            return False
        try:
            # Dates counted when the key was used.
            await self.statements.demand(work.person, work.credential)
        except CredentialRefusedError as exc:
            ended |= ended_by(exc, signed)
            return False
        return True

    async def _checked_with(
        self, work: ClaimedActivation, key: UsableKey
    ) -> tuple[Person, Credential]:
        """Check as `_checked` does; the unlocked key is still the credential's.

        Raises:
            CredentialRefusedError: the credential has another key by now, or the key
                is not the person's.
            ApplianceError: see `_checked`.
        """
        person, credential = await self._checked(work)
        if key.spki != credential.spki:
            raise CredentialRefusedError(StatementFault.KEY)
        return person, credential

    async def _checked(self, work: ClaimedActivation) -> tuple[Person, Credential]:
        """The person, named as certified, and the key, if they may sign now.

        Raises:
            CredentialRefusedError: the key is not the person's, by its certificate.
            ApplianceError: `CERTIFICATE_NOT_USABLE`; `STORE_UNAVAILABLE`.
        """
        person, credential, now = work.person, work.credential, self.clock.now()
        if (
            person is None
            or credential is None
            or credential.person != person.id
            or person.state is not PersonState.ACTIVE
            or not credential.usable_at(now)
            or (self.refuses_tests and credential.vouched_by is VouchedBy.TEST)
        ):
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        statement = await self.statements.demand(person, credential, now)
        if self.refuses_tests and statement.vouched_by is VouchedBy.TEST:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        return replace(person, name=statement.name), credential

    def _not_used_yet(
        self, claim: Claim, ready: Sequence[_Prepared], ended: Ended
    ) -> list[_Prepared]:
        """Those that the key was not used for under this consent, as this host knows.

        Raises:
            ApplianceError: as `ConsentJournal.intend`.
        """
        uses = {each.part.document.seq: each.use for each in ready}
        refused = self.journal.intend(claim, uses)
        for seq in refused:
            ended[seq] = ActivationInvalidError("journal")
        return [each for each in ready if each.part.document.seq not in refused]

    async def _prepare(
        self,
        work: ClaimedActivation,
        waiting: Sequence[DocumentInWork],
        signer: tuple[Person, Credential],
        ended: Ended,
        turn: Turn,
    ) -> list[_Prepared]:
        """Lay the stamps out and make the revisions, with room for timestamps.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the host's journal.
        """
        asked, calls = [], []
        certificate = signer[1].certificate
        attempted = self.journal.attempted(work.claim)
        for part in waiting:
            profile = self.completion.profile_of(part.view)
            document = part.document
            try:
                # What was consented to is what is stored, and what is stored is this.
                _check_consent(document, part.view)
                method = method_for(
                    certificate, prefer_pss=self.prefer_pss, digest=profile.digest
                )
            except ApplianceError as exc:
                ended[document.seq] = exc
                continue
            # An interrupted attempt is made again as it was, to the last bit.
            if (before := attempted.get(document.seq)) is None:
                at = self.clock.now()
                room = await self.levels.token_bytes(profile, method.digest)
            else:
                at, room = before.signed_at, before.token_bytes
            asked.append(part)
            call = partial(
                self._prepare_one, work, part, signer, method, at=at, token_bytes=room
            )
            calls.append(call)
        results: list[tuple[SignaturePlan, PreparedSignature] | ApplianceError] = []
        for first in range(0, len(calls), TOGETHER):
            results += await read_all_apart(calls[first : first + TOGETHER])
            await turn.make_way()
        ready = []
        for part, made in zip(asked, results, strict=True):
            if isinstance(made, ApplianceError):
                ended[part.document.seq] = made
            else:
                plan, prepared = made
                # With the exact digest to be signed.
                document = replace(part.document, digest=prepared.digest.hex())
                with_digest = replace(part, document=document)
                ready.append(_Prepared(with_digest, plan, prepared))
        return ready

    def _prepare_one(
        self,
        work: ClaimedActivation,
        part: DocumentInWork,
        signer: tuple[Person, Credential],
        method: SignatureMethod,
        *,
        at: datetime,
        token_bytes: int,
    ) -> tuple[SignaturePlan, PreparedSignature]:
        document, original = part.document, part.original
        plan = signature_plan(work, document, part.view, *signer, method, at)
        plan = replace(plan, token_bytes=token_bytes)
        return plan, prepare(original.content, plan, self.fonts, original)

    async def _with_room(
        self, ready: Sequence[_Prepared], ended: Ended
    ) -> list[_Prepared]:
        """Those that the store has room for, one after the other."""
        with suppress(ApplianceError):
            await self.documents.make_room(sum(each.size_bytes for each in ready))
            return [*ready]
        with_room: list[_Prepared] = []
        total = 0
        for each in ready:
            try:
                await self.documents.make_room(total + each.size_bytes)
            except ApplianceError as exc:
                ended[each.part.document.seq] = exc
            else:
                total += each.size_bytes
                with_room.append(each)
        return with_room

    async def _sign(
        self, key: UsableKey, ready: Sequence[_Prepared], ended: Ended
    ) -> list[DocumentInWork]:
        """Have the HSM sign them, those together that are signed alike."""
        made = []
        alike: dict[SignatureMethod, list[_Prepared]] = {}
        for each in ready:
            alike.setdefault(each.method, []).append(each)
        for method, group in alike.items():
            requests = iter([each.part.document.request for each in group])

            def signed(_: bytes, requests: Iterator[RequestId] = requests) -> None:
                crash_point(AFTER_SIGN, next(requests))

            digests = [each.prepared.digest for each in group]
            values, failed = await self._sign_digests(key, method, digests, signed)
            made += [
                each.with_value(value)
                for each, value in zip(group, values, strict=False)
            ]
            if failed is not None:
                ended |= ended_by(failed, [each.part for each in group[len(values) :]])
        return made

    async def _sign_digests(
        self,
        key: UsableKey,
        method: SignatureMethod,
        digests: Sequence[bytes],
        made: Callable[[bytes], object] | None = None,
    ) -> tuple[list[bytes], ApplianceError | None]:
        """Have the HSM sign; the values made, and why there are no more.

        That is `ActivationInvalidError` where it does not take the wrapped key,
        `HsmUnavailableError` where it took the key and does not sign so, or as the
        HSM says.
        """
        try:
            # Reading and preparing may have taken long since the worker last looked.
            await self.served.demand()
        except ApplianceError as exc:
            return [], exc
        done = await self.session.sign_all(
            key, digests, method.scheme, method.digest, made
        )
        failed = done.failed
        if isinstance(failed, DoesNotUnwrapError):
            failed = ActivationInvalidError("hsm")
        elif isinstance(failed, HsmRefusedError):
            # What it lacks, as a mechanism, is an operator's to mend. No new password
            # does, and the request is not lost for it.
            failed = HsmUnavailableError(failed.reason)
        return done.values, failed


def signature_plan(
    work: ClaimedActivation,
    item: ActivationDocument,
    view: RequestView,
    person: Person,
    credential: Credential,
    method: SignatureMethod,
    at: datetime,
) -> SignaturePlan:
    """Lay the stamp out, and say what the signature is to be.

    Args:
        work: the claim.
        item: of it.
        view: its request.
        person: who signs.
        credential: with which key.
        method: how that key signs.
        at: the claimed signing time, aware.

    Raises:
        ApplianceError: the stamp has no place, as `lay_out` says.
    """
    params, details = item.params, item.details
    named = StampSigner(person.name, person.cuil, person.locale)
    return SignaturePlan(
        field_name=f"Firma-{item.request}",
        layout=lay_out(params, named, at, view.inspection, details),
        restriction=params.restriction,
        existing=params.field,
        signed_at=at,
        signer_name=person.name,
        certificate=credential.certificate,
        chain=credential.chain,
        method=method,
        picture=work.pictures.get(details.logo.sha256) if details.logo else None,
        spoken=spoken(params, named, at, details),
        # A request of before such texts were refused may still bring one.
        reason=params.reason and as_shown(params.reason),
        place=params.place and as_shown(params.place),
        above=view.inspection.last_number,
    )


def _is_as_consented(
    work: ClaimedActivation, view: RequestView, current: RequestView
) -> bool:
    """True if a document that was inspected again is what its seal is bound to.

    Args:
        work: the claim.
        view: its request, by which the seal was opened.
        current: the same, as this version inspects the document.
    """
    seal = work.claim.seal
    if current is view or seal is None:
        return True
    is_whole = seal.format is not ActivationFormat.FIRST
    same = current.inspection.basis_sha256 == view.inspection.basis_sha256
    return same or not is_whole


def _check_consent(document: ActivationDocument, view: RequestView) -> None:
    """Refuse what is not what was consented to.

    Raises:
        ApplianceError: `SIGNING_FAILED`.
    """
    if (
        view.sha256 != document.document_sha256
        # Its document may have been found after a restore, meanwhile.
        or view.state is not RequestState.IN_PROGRESS
        or document.params.sha256(document.request) != document.params_sha256
    ):
        raise ApplianceError(ErrorCode.SIGNING_FAILED)
