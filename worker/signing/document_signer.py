"""One document of an activation, from its bytes to its publication.

The dangerous path, read top to bottom: everything is read again and hashed
again; the exact digest is committed as an intent; the key is used; its
signature is committed. What follows needs no key and is `completion`'s: the result
is checked, and the file is durable before the record names it. Each commit is
fenced: when another worker has claimed since, this one stops and nothing it did
counts.

Source: design §3, 4 and 5.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from appliance.domain.activation import (
    ActivationDocument,
    SignatureValue,
    activation_data,
)
from appliance.domain.appearance.stamp import lay_out
from appliance.domain.appearance.text import StampSigner, spoken
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    ErrorCode,
    HsmRefusedError,
    HsmUnavailableError,
)
from appliance.domain.identity import Credential, Person
from appliance.domain.keys import KeyReference, WrappedKey
from appliance.domain.ports import BlobStore
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import ItemState, PersonState, RequestState
from appliance.keys.key_encryption import open_outer, signing_key
from appliance.signing.claims import ClaimedActivation, Claims
from hsm_config.pkcs11.key_wrapping import DoesNotUnwrapError
from worker.failpoints import (
    AFTER_SIGN,
    BEFORE_SIGN,
    KEYED,
    crash_point,
)
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession
from worker.leased_worker import FencedOffError
from worker.pades.algorithms import SignatureMethod, method_for
from worker.pades.appearance.fonts import StampFonts
from worker.pades.byte_range import FileDigests
from worker.pades.prepare import PreparedSignature, SignaturePlan, prepare
from worker.pades.reading_limits import read_apart
from worker.signing.activation_keys import ActivationKeys
from worker.signing.completion import Completion
from worker.signing.level_extension import Levels
from worker.stage_timings import StageTimings

UsableKey = KeyReference | WrappedKey
"""What the HSM signs with; a wrapped one only within this HSM."""


class OriginalUnreadableError(ApplianceError):
    """The document that was to be signed cannot be read now: that is no try."""


@dataclass(frozen=True, slots=True)
class DocumentSigner:
    """Signs one document at a time, under a claim.

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
        prefer_pss: whether RSA keys sign by PSS (`hsm.signature_scheme`).
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
    prefer_pss: bool = False

    def unlock(self, work: ClaimedActivation) -> UsableKey:
        """Open both locks of a claim's key, by what stands recorded now.

        Once a claim: what comes of it is wrapped by the HSM, and the unlock key is
        let go of here.

        Raises:
            ActivationInvalidError: a lock does not open.
            ApplianceError: `ACTIVATION_EXPIRED`, `CERTIFICATE_NOT_USABLE`.
        """
        _, credential = _checked(work, self.clock)
        data = activation_data(work.claim, credential.key_version)
        aad = credential.aad(self.installation)
        unlock = self.keys.unlock(work.claim.seal, data)
        return signing_key(credential, open_outer(unlock, credential.outer, aad))

    async def sign(
        self,
        work: ClaimedActivation,
        document: ActivationDocument,
        key: UsableKey | None,
    ) -> ErrorCode | None:
        """Take one document to its end, from wherever an earlier attempt left it.

        Args:
            work: the claim.
            document: of it.
            key: as `unlock` gave it; None for one whose signature is stored.

        Returns:
            None where it is published. Where the end is for the role that has a
            network, its signature is made and stored: what it lacks, which is the
            reason should nobody complete it.

        Raises:
            FencedOffError: another worker has claimed since.
            CertificateChangedError: do it again, with the claim read again.
            OriginalUnreadableError: nothing was done.
            ApplianceError: it cannot be signed, by the code of why.
        """
        view = work.requests.get(document.seq)
        if view is None or work.person is None or work.credential is None:
            raise ApplianceError(ErrorCode.SIGNING_FAILED)
        lacks = self.completion.lacks(work, view)
        if lacks is not None and document.state is not ItemState.WAITING:
            return lacks
        stages = StageTimings()
        # 1. Read the original again, and hash it.
        try:
            pdf = await self.documents.get(view.integrator, document.document_sha256)
        except ApplianceError as exc:
            raise OriginalUnreadableError(exc.code) from exc
        original = FileDigests(pdf)
        stages.done("read")
        # 2. Use the key, unless an earlier attempt did.
        if document.state is ItemState.WAITING:
            if key is None:
                raise ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
            document = await self._use_key(work, document, view, original, key, stages)
        # 3. Timestamp, check, store and publish it, or leave that to who can.
        if lacks is None:
            await self.completion.complete(work, document, view, original, stages)
        return lacks

    async def _use_key(
        self,
        work: ClaimedActivation,
        document: ActivationDocument,
        view: RequestView,
        original: FileDigests,
        key: UsableKey,
        stages: StageTimings,
    ) -> ActivationDocument:
        """Key phase: nothing is signed that is not on the record."""
        person, credential = _checked(work, self.clock)
        # 1. What was consented to is what is stored, and what is stored is this.
        _check_consent(document, view)
        # 2. The revision, which lacks nothing but the value, and room for the file: a
        # key is not used for nothing.
        method, prepared = await self._prepare(
            work, document, view, person, credential, original
        )
        stages.done("prepare")
        await self.documents.make_room(len(original.content) + len(prepared.increment))
        # 3. The intent is committed before the key is used: no signature is ever
        # made that the record does not know of.
        document = replace(document, digest=prepared.digest.hex())
        certificate = credential.certificate
        if not await self.claims.intend(work.claim, [document], certificate):
            raise FencedOffError
        stages.done("intend")
        crash_point(BEFORE_SIGN, document.request)
        # 4. The key is used.
        value = await self._sign_digest(key, method, prepared.digest)
        stages.done("sign")
        crash_point(AFTER_SIGN, document.request)
        # 5. Its signature is committed, with all that publishing it needs.
        signature = SignatureValue(
            increment=prepared.increment,
            contents_at=prepared.contents_at,
            contents_length=prepared.contents_length,
            signed_attributes=prepared.signed_attributes,
            value=value,
        )
        document = replace(document, signature=signature)
        if not await self.claims.record_signatures(work.claim, [document]):
            raise FencedOffError
        stages.done("keyed")
        crash_point(KEYED, document.request)
        return document

    async def _prepare(
        self,
        work: ClaimedActivation,
        document: ActivationDocument,
        view: RequestView,
        person: Person,
        credential: Credential,
        original: FileDigests,
    ) -> tuple[SignatureMethod, PreparedSignature]:
        """Lay the stamp out and make the revision, with room for its timestamp."""
        profile = self.completion.profile_of(view)
        method = method_for(
            credential.certificate, prefer_pss=self.prefer_pss, digest=profile.digest
        )
        room = await self.levels.token_bytes(profile, method.digest)

        def prepare_apart() -> PreparedSignature:
            plan = signature_plan(
                work, document, view, person, credential, method, self.clock.now()
            )
            plan = replace(plan, token_bytes=room)
            return prepare(original.content, plan, self.fonts, original)

        return method, await read_apart(prepare_apart)

    async def _sign_digest(
        self, key: UsableKey, method: SignatureMethod, digest: bytes
    ) -> bytes:
        """Have the HSM sign.

        Raises:
            ActivationInvalidError: it does not take the wrapped key.
            HsmUnavailableError: it took the key, and does not sign so.
            ApplianceError: as the HSM says.
        """
        # Reading and preparing may have taken long since the worker last looked.
        await self.served.demand()
        try:
            return await self.session.sign(key, digest, method.scheme, method.digest)
        except DoesNotUnwrapError as exc:
            raise ActivationInvalidError("hsm") from exc
        except HsmRefusedError as exc:
            # What it lacks, as a mechanism, is an operator's to mend. No new password
            # does, and the request is not lost for it.
            raise HsmUnavailableError(exc.reason) from exc


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
        reason=params.reason,
        place=params.place,
    )


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


def _checked(work: ClaimedActivation, clock: Clock) -> tuple[Person, Credential]:
    """The person and the key, if they may sign now.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE`.
    """
    person, credential = work.person, work.credential
    if (
        person is None
        or credential is None
        or person.state is not PersonState.ACTIVE
        or not credential.usable_at(clock.now())
    ):
        raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
    return person, credential
