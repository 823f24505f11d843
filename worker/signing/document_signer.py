"""One document of an activation, from its bytes to its publication.

The dangerous path, read top to bottom: everything is read again and hashed
again; the exact digest is committed as an intent; the key is used; its
signature is committed; the result is checked; the file is durable before the
record names it. Each commit is fenced: when another worker has claimed since,
this one stops and nothing it did counts.

Source: design §3, 4 and 5.
"""

from dataclasses import dataclass, replace

from appliance.domain.activation import (
    ActivationDocument,
    SignatureValue,
    activation_data,
)
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    ErrorCode,
    HsmRefusedError,
)
from appliance.domain.identity import Credential, Person
from appliance.domain.keys import KeyReference, WrappedKey
from appliance.domain.ports import DocumentStore
from appliance.domain.requests.levels import SignatureProfile
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import ItemState, PersonState, RequestState
from appliance.keys.key_encryption import open_outer
from appliance.signing.claims import ClaimedActivation, Claims
from worker.failpoints import (
    AFTER_SIGN,
    BEFORE_SIGN,
    KEYED,
    crash_point,
)
from worker.hsm.generation_check import Served
from worker.hsm.session import HsmSession
from worker.pades.algorithms import SignatureMethod, method_for
from worker.pades.appearance.fonts import StampFonts
from worker.pades.byte_range import FileDigests
from worker.pades.prepare import PreparedSignature, prepare
from worker.pades.reading_limits import read_apart
from worker.signing.activation_keys import ActivationKeys
from worker.signing.completion import Completion, FencedOffError, stored
from worker.signing.signature_plans import signature_plan
from worker.stage_timings import Stages

UsableKey = KeyReference | WrappedKey
"""What the HSM signs with; a wrapped one only within this HSM."""


class OriginalUnreadableError(ApplianceError):
    """The document that was to be signed cannot be read now: that is no try."""


@dataclass(frozen=True, slots=True)
class DocumentSigner:
    """Signs one item at a time, under a claim.

    Args:
        claims: this worker's transactions.
        documents: where PDFs are.
        completion: takes it from its signature on.
        session: the HSM.
        keys: opens what was sealed to this host.
        fonts: of the stamp.
        clock: the time.
        installation: the setting of that name.
        served: whether the HSM serves this record.
        prefer_pss: whether RSA keys sign by PSS (`hsm.signature_scheme`).
    """

    claims: Claims
    documents: DocumentStore
    completion: Completion
    session: HsmSession
    keys: ActivationKeys
    fonts: StampFonts
    clock: Clock
    installation: str
    served: Served
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
        info = activation_data(work.claim, credential.key_version)
        unlock = self.keys.unlock(work.claim.seal, info)
        aad = credential.aad(self.installation)
        return credential.key(open_outer(unlock, credential.outer, aad))

    async def sign(
        self, work: ClaimedActivation, item: ActivationDocument, key: UsableKey | None
    ) -> bool:
        """Take one item to its end, from wherever an earlier attempt left it.

        Args:
            work: the claim.
            item: of it.
            key: as `unlock` gave it; None for one whose signature is stored.

        Returns:
            False where the end is for the role that has a network: its signature is
            made and stored.

        Raises:
            FencedOffError: another worker has claimed since.
            CertificateChangedError: do it again, with the claim read again.
            OriginalUnreadableError: nothing was done.
            ApplianceError: it cannot be signed, by the code of why.
        """
        view = work.requests.get(item.seq)
        if view is None or work.person is None or work.credential is None:
            raise ApplianceError(ErrorCode.SIGNING_FAILED)
        goes_out = self.completion.must_go_out(work, view)
        if goes_out and item.state is not ItemState.WAITING:
            return False
        stages = Stages()
        try:
            original = await self.documents.get(view.integrator, item.document_sha256)
        except ApplianceError as exc:
            raise OriginalUnreadableError(exc.code) from exc
        digests = FileDigests(original)
        stages.done("read")
        if item.state is not ItemState.WAITING:
            made = stored(item)
        elif key is not None:
            made = await self._use_key(work, item, view, digests, key, stages)
        else:
            raise ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
        if goes_out:
            return False
        await self.completion.finish(work, item, view, digests, made, stages)
        return True

    async def _use_key(
        self,
        work: ClaimedActivation,
        item: ActivationDocument,
        view: RequestView,
        original: FileDigests,
        key: UsableKey,
        stages: Stages,
    ) -> SignatureValue:
        """Key phase: nothing is signed that is not on the record."""
        person, credential = _checked(work, self.clock)
        # What was consented to is what is stored, and what is stored is this.
        if (
            view.sha256 != item.document_sha256
            # Its document may have been found after a restore, meanwhile.
            or view.state is not RequestState.IN_PROGRESS
            or item.params.sha256(item.request) != item.params_sha256
        ):
            raise ApplianceError(ErrorCode.SIGNING_FAILED)
        profile = self.completion.profile_of(view)
        method = self._method(credential, profile)
        room = await self.completion.levels.token_bytes(profile, method.digest)
        prepared = await read_apart(
            self._prepare, work, item, view, person, credential, original, method, room
        )
        digest = prepared.digest.hex()
        stages.done("prepare")
        # What is signed must find room: a key is not used for nothing.
        await self.documents.make_room(len(original.content) + len(prepared.increment))

        # The intent is committed before the key is used: no signature is ever
        # made that the record does not know of.
        certificate = credential.certificate
        item = replace(item, digest=digest)
        if not await self.claims.intend(work.claim, [item], certificate):
            raise FencedOffError
        stages.done("intend")
        crash_point(BEFORE_SIGN, item.request)
        signature = await self._sign_digest(key, method, prepared.digest)
        stages.done("sign")
        crash_point(AFTER_SIGN, item.request)
        made = SignatureValue(
            increment=prepared.increment,
            contents_at=prepared.contents_at,
            contents_length=prepared.contents_length,
            signed_attributes=prepared.signed_attributes,
            value=signature,
        )
        keyed = replace(item, signature=made)
        if not await self.claims.record_signatures(work.claim, [keyed]):
            raise FencedOffError
        stages.done("keyed")
        crash_point(KEYED, item.request)
        return made

    async def _sign_digest(
        self, key: UsableKey, method: SignatureMethod, digest: bytes
    ) -> bytes:
        """Have the HSM sign.

        Raises:
            ActivationInvalidError: it does not take the wrapped key.
            ApplianceError: as the HSM says.
        """
        # Reading and preparing may have taken long since the worker last looked.
        await self.served.demand()
        try:
            return await self.session.sign(key, digest, method.scheme, method.digest)
        except HsmRefusedError as exc:
            if isinstance(key, WrappedKey):
                raise ActivationInvalidError("hsm") from exc
            raise

    def _prepare(
        self,
        work: ClaimedActivation,
        item: ActivationDocument,
        view: RequestView,
        person: Person,
        credential: Credential,
        original: FileDigests,
        method: SignatureMethod,
        token_bytes: int,
    ) -> PreparedSignature:
        """Lay the stamp out and make the revision; runs in a thread."""
        plan = signature_plan(
            work, item, view, person, credential, method, self.clock.now()
        )
        plan = replace(plan, token_bytes=token_bytes)
        return prepare(original.content, plan, self.fonts, original)

    def _method(
        self, credential: Credential, profile: SignatureProfile
    ) -> SignatureMethod:
        """How a credential's key signs."""
        return method_for(
            credential.certificate, prefer_pss=self.prefer_pss, digest=profile.digest
        )


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
