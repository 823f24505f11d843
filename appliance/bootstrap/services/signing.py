"""Services of signing: documents in, requests, signatures, documents out."""

from dataclasses import dataclass

from appliance.admission.signer_quotas import SignerQuotas
from appliance.admission.signing_calls import SigningCalls
from appliance.admission.single_calls_here import SingleCallsHere
from appliance.bootstrap.certificates import open_signer_roots
from appliance.bootstrap.services.foundation import Foundation
from appliance.bootstrap.services.pki import PkiServices
from appliance.documents.download_links import DownloadLinks
from appliance.requests.inspection import Inspections
from appliance.requests.intake import Intake
from appliance.requests.uploads import UploadedDocuments
from appliance.requests.waiting_documents import WaitingDocuments
from appliance.signing.reexamination import Reexamination
from appliance.signing.requests import Requests
from appliance.signing.sign import Signing
from appliance.signing.sign_batch import BatchSigning
from appliance.signing.signature_lookup import Verification
from appliance.signing.signature_proof import SignatureProofs


@dataclass(frozen=True)
class SigningServices:
    """What a face asks of requests, documents and signatures."""

    requests: Requests
    intake: Intake
    uploads: UploadedDocuments
    waiting_documents: WaitingDocuments
    signing: Signing
    batch_signing: BatchSigning
    signing_calls: SigningCalls
    signer_quotas: SignerQuotas
    links: DownloadLinks
    verification: Verification


def signing_services(on: Foundation, pki: PkiServices) -> SigningServices:
    """Make them."""
    store, clock, settings, core = on.store, on.clock, on.settings, on.core
    intake = Intake(store, core.documents, core.inspector, clock, settings.documents)
    inspections = Inspections(store, core.documents, core.inspector, clock)
    signing = Signing(
        store,
        on.attempts,
        on.hosts,
        on.stamping,
        core.work_notifier,
        core.completion_notifier,
        clock,
        settings.signing,
        on.shielded,
        Reexamination(store, inspections),
        settings.signature_profile,
    )
    proofs = SignatureProofs(
        store,
        core.documents,
        core.inspector,
        open_signer_roots(core),
        pki.trust,
        clock,
    )
    return SigningServices(
        requests=Requests(store, core.documents, core.inspector, clock, on.stamping),
        intake=intake,
        uploads=UploadedDocuments(
            store, core.documents, intake, clock, settings.documents
        ),
        waiting_documents=WaitingDocuments(store, clock),
        signing=signing,
        batch_signing=BatchSigning(store, signing, clock, settings.signing),
        signing_calls=SigningCalls(here=SingleCallsHere(settings.run_dir)),
        signer_quotas=SignerQuotas(on.rates, settings.signing),
        links=DownloadLinks(store, on.lookup, clock, settings.signing.link_ttl_s),
        verification=Verification(store, proofs),
    )
