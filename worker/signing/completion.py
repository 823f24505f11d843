"""The finish phase of a group of documents: from signatures to publication.

Needs no user's key; any worker may do it, any number of times. The result is
checked before anybody can have it, and the file is durable before the record names
it. What an earlier try stored and did not publish is nobody's.

Source: design §3, 5.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import structlog

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.people.identity import Credential
from appliance.domain.pki.outside_material import MissingMaterialError
from appliance.domain.ports import BlobStore
from appliance.domain.requests.levels import SignatureProfile, reaches
from appliance.domain.requests.request import RequestView, SignedDocumentView
from appliance.domain.signing.activation import ActivationDocument, SignatureValue
from appliance.domain.vocab import SignatureLevel, TimestampPolicy
from appliance.metrics import metrics
from appliance.pki.validation.validation_material import SharedValidationSource
from appliance.signing.claims import ClaimedActivation, Claims, Publication
from appliance.signing.signing_order import SigningOrder
from worker.failpoints import FILE_WRITTEN, PUBLISHED, STAMPED, crash_point
from worker.leased_worker import FencedOffError
from worker.pades.algorithms import SignatureMethod
from worker.pades.byte_range_digest import FileDigests
from worker.pades.cms import complete
from worker.pades.self_check import CheckedSignature, check, method_of
from worker.signing.level_extension import ExtensionResult, Levels
from worker.signing.outside_material import MaterialReader, Materials
from worker.signing.stage_timings import StageTimings
from worker.signing.turns import TOGETHER

_log = structlog.get_logger(__name__)
# Told from the start: an increase from nothing is none to Prometheus.
metrics.SIGNATURES.labels("signed")


@dataclass(frozen=True, slots=True)
class DocumentInWork:
    """A document of a claim, read again."""

    document: ActivationDocument
    view: RequestView
    original: FileDigests
    """The document that is signed."""


Ended = dict[int, ApplianceError]
"""Why documents of a group are not signed, by their place in the activation."""


def ended_by(exc: ApplianceError, group: Iterable[DocumentInWork]) -> Ended:
    """The same end for all of them.

    Args:
        exc: why.
        group: of a claim.
    """
    return {part.document.seq: exc for part in group}


@dataclass(frozen=True, slots=True)
class _Stamped:
    """A document in work, and the timestamp of its signature."""

    of: DocumentInWork
    made: SignatureValue = field(repr=False)
    profile: SignatureProfile
    method: SignatureMethod
    token: bytes | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True)
class Completion:
    """Completes documents, a group at a time, under a claim.

    Args:
        claims: this worker's transactions.
        documents: where PDFs are.
        turns: of those who sign after.
        levels: adds timestamps and validation data.
        profile: of the installation.
        is_internal: whether the internal CA answers for a certificate, DER.
        materials: what was fetched of servers outside.
    """

    claims: Claims
    documents: BlobStore
    turns: SigningOrder
    levels: Levels
    profile: SignatureProfile
    is_internal: Callable[[bytes], bool]
    materials: MaterialReader

    def profile_of(self, view: RequestView) -> SignatureProfile:
        """How a request is to be signed.

        Args:
            view: the request.
        """
        return self.profile.narrowed(view.wishes)

    def is_outside(self, certificate: bytes, view: RequestView) -> bool:
        """Return whether servers outside are needed to complete a document.

        Args:
            certificate: the signer's, DER.
            view: the document's request.
        """
        profile = self.profile_of(view)
        if profile.has_outside_tsa:
            return True
        is_proven = reaches(profile.level, SignatureLevel.B_LT)
        return is_proven and not self.is_internal(certificate)

    async def complete(
        self,
        work: ClaimedActivation,
        group: Sequence[DocumentInWork],
        stages: StageTimings,
    ) -> Ended:
        """Take documents from their stored signatures to their publication.

        Args:
            work: the claim.
            group: of it, each with its signature.
            stages: of these documents.

        Returns:
            What is not published: `MissingMaterialError`, once that is fetched;
            `TSA_UNAVAILABLE` or `REVOCATION_UNAVAILABLE`, to be tried again; or why
            it cannot be.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `STORE_UNAVAILABLE`: the record is away.
        """
        if work.credential is None:
            return ended_by(ApplianceError(ErrorCode.SIGNING_FAILED), group)
        certificate, chain = work.credential.certificate, work.credential.chain
        ended: Ended = {}
        outside = {
            part.document.seq
            for part in group
            if self.is_outside(certificate, part.view)
        }
        source, sources = self.levels.shared_source(), None
        if outside:
            materials = await self.materials.of(work.claim.id)
            sources = _Sources(self.levels, materials)
        # 1. A timestamp over each value.
        async with stages.turn.waiting():
            stamped = await self._stamp(work.credential, group, sources, ended)
        await stages.over("stamp")
        for part in stamped:
            crash_point(STAMPED, part.of.document.request)
        # 2. The CMS in its place, checked before anybody can have it.
        checked = []
        for first in range(0, len(stamped), TOGETHER):
            some = stamped[first : first + TOGETHER]
            checked += await asyncio.to_thread(
                _checked, some, certificate, chain, ended
            )
            await stages.turn.make_way()
        stages.done("check")
        # 3. What its level asks for, appended.
        raised = []
        for part, increment, signature in checked:
            original, profile = part.of.original.content, part.profile
            try:
                reached = await self.levels.complete(
                    (original, increment),
                    signature,
                    certificate,
                    chain,
                    profile,
                    *(
                        (source, None)
                        if sources is None or part.of.document.seq not in outside
                        else (sources.of(profile), sources.materials)
                    ),
                )
            except ApplianceError as exc:
                ended[part.of.document.seq] = exc
            else:
                raised.append((part.of, increment, reached))
            await stages.turn.make_way()
        stages.done("level")
        # 4. The files durable, then named by the record.
        await self._publish(work, raised, ended, stages)
        return ended

    async def _stamp(
        self,
        credential: Credential,
        group: Sequence[DocumentInWork],
        sources: "_Sources | None",
        ended: Ended,
    ) -> list[_Stamped]:
        """Have values stamped, together those that are stamped alike."""
        certificate = credential.certificate
        materials = None if sources is None else sources.materials
        alike: dict[
            tuple[SignatureProfile, SignatureMethod, int | None], list[_Stamped]
        ] = {}
        for part in group:
            profile, made = self.profile_of(part.view), part.document.signature
            if made is None:
                ended[part.document.seq] = ApplianceError(ErrorCode.SIGNING_FAILED)
                continue
            try:
                method = method_of(certificate, made.signed_attributes, made.value)
            except ApplianceError as exc:
                ended[part.document.seq] = exc
                continue
            one = _Stamped(part, made, profile, method)
            # Of those outside each has a token of its own, or none yet.
            alone = None if materials is None else part.document.seq
            alike.setdefault((profile, method, alone), []).append(one)
        stamped = []
        for (profile, method, _), parts in alike.items():
            values = [part.made.value for part in parts]
            try:
                tokens = await self.levels.tokens(
                    values, method.digest, profile, materials
                )
            except MissingMaterialError as exc:
                wanted = [*exc.wanted]
                if sources is not None:
                    path = certificate, credential.chain
                    source = sources.of(profile)
                    wanted += await self.levels.missing(*path, profile, source)
                missing = MissingMaterialError(wanted)
                ended |= ended_by(missing, [part.of for part in parts])
                continue
            except ApplianceError as exc:
                ended |= ended_by(exc, [part.of for part in parts])
                continue
            stamped += [
                replace(part, token=token)
                for part, token in zip(parts, tokens, strict=True)
            ]
        return stamped

    async def _publish(
        self,
        work: ClaimedActivation,
        raised: Sequence[tuple[DocumentInWork, bytes, ExtensionResult]],
        ended: Ended,
        stages: StageTimings,
    ) -> None:
        """Store the files and name them; in parts, for joined they are there twice.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `STORE_UNAVAILABLE`: the record is away.
        """
        files = [
            (part.view.integrator, (part.original.content, increment, reached.appended))
            for part, increment, reached in raised
        ]
        try:
            async with stages.turn.waiting():
                kept = await self.documents.put_signed(files)
        except ApplianceError as exc:
            kept = [exc] * len(files)
        publications: list[Publication] = []
        answers = True
        for (part, _, reached), (_, signed), sha256 in zip(
            raised, files, kept, strict=True
        ):
            if isinstance(sha256, ApplianceError):
                ended[part.document.seq] = sha256
                continue
            inspection = None
            # A sandbox that does not answer is not waited for by each of a group.
            if part.view.followed and answers:
                async with stages.turn.waiting():
                    inspection = await self.turns.inspect_for_next(part.view, *signed)
                answers = inspection is not None
            file = _signed_view(part, signed, reached, sha256)
            publications.append(
                Publication(part.document, file, inspection, reached.upkeep)
            )
        stages.done("store")
        for each in publications:
            crash_point(FILE_WRITTEN, each.document.request)
        if not publications:
            return
        await self._name(work, publications, ended)
        stages.done("publish")
        for each in publications:
            crash_point(PUBLISHED, each.document.request)
        await self.claims.announce(work.claim)
        for each in publications:
            if each.document.seq not in ended:
                _tell(work, each, stages)

    async def _name(
        self,
        work: ClaimedActivation,
        publications: Sequence[Publication],
        ended: Ended,
    ) -> None:
        """Publish in one transaction; one by one where something keeps one of them.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        try:
            if not await self.claims.publish(work.claim, publications):
                raise FencedOffError
        except ApplianceError as exc:
            if exc.code is ErrorCode.STORE_UNAVAILABLE:
                raise
            if len(publications) == 1:
                ended[publications[0].document.seq] = exc
                return
            for each in publications:
                await self._name(work, [each], ended)


@dataclass(frozen=True, slots=True)
class _Sources:
    """Validation data of documents that need servers outside, completed together.

    Args:
        levels: gathers it.
        materials: what was fetched for their activation.
    """

    levels: Levels
    materials: Materials
    _shared: dict[bool, SharedValidationSource] = field(default_factory=dict)

    def of(self, profile: SignatureProfile) -> SharedValidationSource:
        """Validation data for a signature by a profile."""
        is_required = profile.timestamp_policy is TimestampPolicy.REQUIRED
        if is_required not in self._shared:
            self._shared[is_required] = self.levels.shared_source(
                self.materials, is_required=is_required
            )
        return self._shared[is_required]


def _signed_view(
    part: DocumentInWork,
    signed: tuple[bytes, ...],
    reached: ExtensionResult,
    sha256: str,
) -> SignedDocumentView:
    """What is published of a file that is durable."""
    return SignedDocumentView(
        request=part.document.request,
        integrator=part.view.integrator,
        file_name=part.view.document_name,
        sha256=sha256,
        size_bytes=sum(len(piece) for piece in signed),
        level=reached.level.value,
    )


def _checked(
    stamped: Sequence[_Stamped],
    certificate: bytes,
    chain: tuple[bytes, ...],
    ended: Ended,
) -> list[tuple[_Stamped, bytes, CheckedSignature]]:
    """Put each CMS in its place, and check what came of it."""
    checked = []
    for part in stamped:
        made, original = part.made, part.of.original
        try:
            increment = complete(made, part.method, certificate, chain, part.token)
            signature = check(original.content, increment, certificate, original)
        except ApplianceError as exc:
            ended[part.of.document.seq] = exc
        else:
            checked.append((part, increment, signature))
    return checked


def _tell(
    work: ClaimedActivation, publication: Publication, stages: StageTimings
) -> None:
    """Count a signed document, and log it."""
    metrics.SIGNATURES.labels("signed").inc()
    _log.info(
        "document.signed",
        activation=work.claim.id,
        request=publication.document.request,
        attempt=work.claim.fence,
        sha256=publication.file.sha256,
        reached=publication.file.level,
        ms=stages.ms,
    )
