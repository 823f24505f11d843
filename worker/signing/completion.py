"""The finish phase of one document: from its signature to its publication.

Needs no user's key; any worker may do it, any number of times. The result is
checked before anybody can have it, and the file is durable before the record names
it. What an earlier try stored and did not publish is nobody's.

Source: design §3, 5.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from appliance.core import metrics
from appliance.domain.activation import ActivationDocument
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ports import BlobStore
from appliance.domain.requests.levels import SignatureProfile
from appliance.domain.requests.request import RequestView, SignedDocumentView
from appliance.domain.vocab import TimestampPolicy
from appliance.signing.claims import ClaimedActivation, Claims, Publication
from appliance.signing.signing_order import SigningOrder
from worker.failpoints import FILE_WRITTEN, PUBLISHED, STAMPED, crash_point
from worker.leased_worker import FencedOffError
from worker.pades.byte_range import FileDigests
from worker.pades.cms import complete
from worker.pades.self_check import check, method_of
from worker.signing.level_extension import ExtensionResult, Levels
from worker.stage_timings import StageTimings

_log = structlog.get_logger(__name__)
# Told from the start: an increase from nothing is none to Prometheus.
metrics.SIGNATURES.labels("signed")


@dataclass(frozen=True, slots=True)
class Completion:
    """Completes one document at a time, under a claim.

    Args:
        claims: this worker's transactions.
        documents: where PDFs are.
        turns: of those who sign after.
        levels: adds timestamps and validation data.
        profile: of the installation.
        is_internal: whether the internal CA answers for a certificate, DER.
    """

    claims: Claims
    documents: BlobStore
    turns: SigningOrder
    levels: Levels
    profile: SignatureProfile
    is_internal: Callable[[bytes], bool]

    def profile_of(self, view: RequestView) -> SignatureProfile:
        """How a request is to be signed.

        Args:
            view: the request.
        """
        return self.profile.narrowed(view.wishes)

    def lacks(self, work: ClaimedActivation, view: RequestView) -> ErrorCode | None:
        """What only the role that has a network can have of a document, if anything.

        Where that role neglects what it was handed, what a profile merely prefers is
        done without.

        Args:
            work: the claim.
            view: the document's request.

        Returns:
            The reason, should nobody complete it.
        """
        profile = self.profile_of(view)
        if work.credential is None or (
            work.claim.outside and profile.timestamp_policy is TimestampPolicy.PREFERRED
        ):
            return None
        if self.levels.has_network:
            return None
        if profile.has_outside_tsa:
            return ErrorCode.TSA_UNAVAILABLE
        if profile.has_validation_data and not self.is_internal(
            work.credential.certificate
        ):
            return ErrorCode.REVOCATION_UNAVAILABLE
        return None

    async def resume(
        self, work: ClaimedActivation, document: ActivationDocument
    ) -> None:
        """Complete what an earlier claim signed.

        Args:
            work: the claim.
            document: of it, its signature stored.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: as `complete`; `STORE_UNAVAILABLE`.
        """
        view = work.requests.get(document.seq)
        if view is None:
            raise ApplianceError(ErrorCode.SIGNING_FAILED)
        stages = StageTimings()
        pdf = await self.documents.get(view.integrator, document.document_sha256)
        stages.done("read")
        await self.complete(work, document, view, FileDigests(pdf), stages)

    async def complete(
        self,
        work: ClaimedActivation,
        document: ActivationDocument,
        view: RequestView,
        original: FileDigests,
        stages: StageTimings,
    ) -> None:
        """Take a document from its stored signature to its publication.

        Args:
            work: the claim.
            document: of it, with its signature.
            view: its request.
            original: the document that was signed.
            stages: of this document.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `TSA_UNAVAILABLE`, `REVOCATION_UNAVAILABLE`: to be
                tried again; or as it cannot be published, by the code of why.
        """
        credential, made = work.credential, document.signature
        if credential is None or made is None:
            raise ApplianceError(ErrorCode.SIGNING_FAILED)
        profile = self.profile_of(view)
        # 1. A timestamp over the value.
        method = method_of(credential.certificate, made.signed_attributes, made.value)
        token = await self.levels.token(made.value, method.digest, profile)
        stages.done("stamp")
        crash_point(STAMPED, document.request)
        # 2. The CMS in its place, checked before anybody can have it.
        certificate, chain = credential.certificate, credential.chain
        increment = await asyncio.to_thread(
            complete, made, method, certificate, chain, token
        )
        checked = await asyncio.to_thread(
            check, original.content, increment, certificate, original
        )
        stages.done("check")
        # 3. What its level asks for, appended.
        reached = await self.levels.complete(
            (original.content, increment),
            checked,
            certificate,
            chain,
            profile,
        )
        stages.done("level")
        # 4. The file durable, then named by the record.
        signed = (original.content, increment, reached.appended)
        await self._publish(work, document, view, signed, reached, stages)

    async def _publish(
        self,
        work: ClaimedActivation,
        document: ActivationDocument,
        view: RequestView,
        signed: tuple[bytes, ...],
        reached: ExtensionResult,
        stages: StageTimings,
    ) -> None:
        """Store the file and name it; in parts, for joined they are there twice."""
        sha256 = await self.documents.put(view.integrator, *signed, signed=True)
        stages.done("store")
        crash_point(FILE_WRITTEN, document.request)
        file = SignedDocumentView(
            request=document.request,
            integrator=view.integrator,
            file_name=view.document_name,
            sha256=sha256,
            size_bytes=sum(len(part) for part in signed),
            level=reached.level.value,
        )
        # Before the transaction: what publishes it gives the turn on as well.
        inspection = None
        if view.followed:
            inspection = await self.turns.inspect_for_next(view, *signed)
        publication = Publication(document, file, inspection, reached.upkeep)
        if not await self.claims.publish(work.claim, [publication]):
            raise FencedOffError
        stages.done("publish")
        crash_point(PUBLISHED, document.request)
        await self.claims.announce(work.claim)
        metrics.SIGNATURES.labels("signed").inc()
        _log.info(
            "document.signed",
            activation=work.claim.id,
            request=document.request,
            attempt=work.claim.fence,
            sha256=sha256,
            reached=reached.level.value,
            ms=stages.ms,
        )
