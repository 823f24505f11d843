"""One document of an activation, from its bytes to its publication.

The dangerous path, read top to bottom: everything is read again and hashed
again; the exact digest is committed as an intent; the key is used; its
signature is committed; the result is checked; the file is durable before the
record names it. Each commit is fenced: when another worker has claimed since,
this one stops and nothing it did counts.

Source: design §3, 4 and 5.
"""

import asyncio
from dataclasses import dataclass

import structlog

from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    ErrorCode,
    HsmRefusedError,
)
from appliance.domain.hsm import KeyReference, WrappedKey
from appliance.domain.person import Credential, Person
from appliance.domain.ports import DocumentStore
from appliance.domain.records.activations import Claim, Item, KeyedItem
from appliance.domain.request import RequestView, SignedDocumentView
from appliance.domain.vocab import ItemState, PersonState
from appliance.services.claiming import Claiming, Work
from appliance.services.envelope import open_outer
from appliance.services.turns import Turns
from worker.activation_keys import ActivationKeys
from worker.crash_points import (
    AFTER_SIGN,
    BEFORE_SIGN,
    FILE_WRITTEN,
    KEYED,
    PUBLISHED,
    crash_point,
)
from worker.hsm_session import HsmSession
from worker.pdf.assemble import assemble
from worker.pdf.check import check, method_of
from worker.pdf.method import SignatureMethod, method_for
from worker.pdf.prepare import PreparedSignature, prepare
from worker.pdf.reserved import FileDigests
from worker.plans import signature_plan
from worker.stages import Stages
from worker.stamp import StampFonts

_log = structlog.get_logger(__name__)
LEVEL = "B-B"
"""PAdES baseline of what this version makes."""


class FencedOffError(Exception):
    """Another worker has claimed since; what this one does counts no more."""


UsableKey = KeyReference | WrappedKey
"""What the HSM signs with; a wrapped one only within this HSM."""


@dataclass(frozen=True, slots=True)
class ItemSigner:
    """Signs one item at a time, under a claim.

    Args:
        claiming: this worker's transactions.
        documents: where PDFs are.
        session: the HSM.
        keys: opens what was sealed to this host.
        fonts: of the stamp.
        clock: the time.
        installation: the setting of that name.
        turns: of those who sign after.
        prefer_pss: whether RSA keys sign by PSS (`hsm.signature_scheme`).
    """

    claiming: Claiming
    documents: DocumentStore
    session: HsmSession
    keys: ActivationKeys
    fonts: StampFonts
    clock: Clock
    installation: str
    turns: Turns
    prefer_pss: bool = False

    def unlock(self, work: Work) -> UsableKey:
        """Open both locks of a claim's key, by what stands recorded now.

        Once a claim: what comes of it is wrapped by the HSM, and the unlock key is
        let go of here.

        Raises:
            ActivationInvalidError: a lock does not open.
            ApplianceError: `ACTIVATION_EXPIRED`, `CERTIFICATE_NOT_USABLE`.
        """
        _, credential = _checked(work, self.clock)
        info = work.claim.binding(credential.key_version).info()
        unlock = self.keys.unlock(work.claim.seal, info)
        aad = credential.aad(self.installation)
        return credential.key(open_outer(unlock, credential.outer, aad))

    async def sign(self, work: Work, item: Item, key: UsableKey | None) -> None:
        """Take one item to its end, from wherever an earlier attempt left it.

        Args:
            work: the claim.
            item: of it.
            key: as `unlock` gave it; None for one whose signature is stored.

        Raises:
            FencedOffError: another worker has claimed since.
            CertificateChangedError: do it again, with the claim read again.
            ApplianceError: it cannot be signed, by the code of why.
        """
        view = work.requests.get(item.seq)
        if view is None or work.person is None or work.credential is None:
            raise ApplianceError(ErrorCode.SIGNING_FAILED)
        stages = Stages()
        original = await self.documents.get(view.integrator, item.document_sha256)
        digests = FileDigests(original)
        stages.done("read")
        if item.state is not ItemState.WAITING:
            made = _stored(item)
        elif key is not None:
            made = await self._use_key(work, item, view, digests, key, stages)
        else:
            raise ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
        increment = await asyncio.to_thread(_complete, digests, work.credential, made)
        stages.done("check")
        await self._publish(work.claim, item, view, (original, increment), stages)

    async def _use_key(
        self,
        work: Work,
        item: Item,
        view: RequestView,
        original: FileDigests,
        key: UsableKey,
        stages: Stages,
    ) -> KeyedItem:
        """Key phase: nothing is signed that is not on the record."""
        person, credential = _checked(work, self.clock)
        # What was consented to is what is stored, and what is stored is this.
        if (
            view.sha256 != item.document_sha256
            or item.params.sha256(item.request) != item.params_sha256
        ):
            raise ApplianceError(ErrorCode.SIGNING_FAILED)
        prepared = await asyncio.to_thread(
            self._prepare, work, item, view, person, credential, original
        )
        digest = prepared.digest.hex()
        stages.done("prepare")
        # What is signed must find room: a key is not used for nothing.
        await self.documents.make_room(len(original.content) + len(prepared.increment))

        # The intent is committed before the key is used: no signature is ever
        # made that the record does not know of.
        certificate = credential.certificate
        if not await self.claiming.intend(work.claim, item, digest, certificate):
            raise FencedOffError
        stages.done("intend")
        crash_point(BEFORE_SIGN, item.request)
        method = self._method(credential)
        signature = await self._sign_digest(key, method, prepared.digest)
        stages.done("sign")
        crash_point(AFTER_SIGN, item.request)
        made = KeyedItem(
            increment=prepared.increment,
            contents_at=prepared.contents_at,
            contents_length=prepared.contents_length,
            signed_attributes=prepared.signed_attributes,
            signature=signature,
        )
        if not await self.claiming.keyed(work.claim, item, made, digest):
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
        try:
            return await self.session.sign(key, digest, method.scheme, method.digest)
        except HsmRefusedError as exc:
            if isinstance(key, WrappedKey):
                raise ActivationInvalidError("hsm") from exc
            raise

    def _prepare(
        self,
        work: Work,
        item: Item,
        view: RequestView,
        person: Person,
        credential: Credential,
        original: FileDigests,
    ) -> PreparedSignature:
        """Lay the stamp out and make the revision; runs in a thread."""
        plan = signature_plan(
            work, item, view, person, credential, self._method(credential),
            self.clock.now(),
        )  # fmt: skip
        return prepare(original.content, plan, self.fonts, original)

    def _method(self, credential: Credential) -> SignatureMethod:
        """How a credential's key signs."""
        return method_for(credential.certificate, prefer_pss=self.prefer_pss)

    async def _publish(
        self,
        claim: Claim,
        item: Item,
        view: RequestView,
        signed: tuple[bytes, bytes],
        stages: Stages,
    ) -> None:
        """Finish phase: needs no key; any worker may do it, any number of times.

        The signed document comes in two parts: joined, they would be there twice.
        """
        sha256 = await self.documents.put(view.integrator, *signed, signed=True)
        stages.done("store")
        crash_point(FILE_WRITTEN, item.request)
        document = SignedDocumentView(
            request=item.request,
            integrator=view.integrator,
            file_name=view.document_name,
            sha256=sha256,
            size_bytes=sum(len(part) for part in signed),
            level=LEVEL,
        )
        # Before the transaction: what publishes it gives the turn on as well.
        inspection = await self.turns.inspect_for_next(view, *signed)
        if not await self.claiming.finished(claim, item, document, inspection):
            raise FencedOffError
        stages.done("publish")
        crash_point(PUBLISHED, item.request)
        await self.claiming.announce(claim)
        _log.info(
            "document.signed",
            activation=claim.id,
            request=item.request,
            attempt=claim.fence,
            sha256=sha256,
            ms=stages.ms,
        )


def _checked(work: Work, clock: Clock) -> tuple[Person, Credential]:
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


def _complete(original: FileDigests, credential: Credential, made: KeyedItem) -> bytes:
    """The increment with the CMS in it, checked before anybody can have it.

    Raises:
        ApplianceError: `SIGNING_FAILED`: what was made must not be released.
    """
    method = method_of(credential.certificate, made.signed_attributes, made.signature)
    increment = assemble(
        made.increment,
        contents_at=made.contents_at,
        contents_length=made.contents_length,
        signed_attributes=made.signed_attributes,
        signature=made.signature,
        method=method,
        certificate=credential.certificate,
        chain=credential.chain,
    )
    check(original.content, increment, credential.certificate, original)
    return increment


def _stored(item: Item) -> KeyedItem:
    """What an earlier attempt stored of its use of the key.

    Raises:
        ApplianceError: `SIGNING_FAILED`: it is not there.
    """
    if (
        item.increment is None
        or item.signed_attributes is None
        or item.signature is None
    ):
        raise ApplianceError(ErrorCode.SIGNING_FAILED)
    return KeyedItem(
        increment=item.increment,
        contents_at=item.contents_at,
        contents_length=item.contents_length,
        signed_attributes=item.signed_attributes,
        signature=item.signature,
    )
