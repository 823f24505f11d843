"""Services of certificates: issued, renewed, revoked, published, trusted."""

from dataclasses import dataclass

from appliance.bootstrap.certificates import open_expiry, open_trust
from appliance.bootstrap.services.foundation import Foundation
from appliance.bootstrap.services.keys import KeyServices
from appliance.console.expiry_notices import Expiry
from appliance.pki.certificates import Certificates
from appliance.pki.credentials import Credentials
from appliance.pki.csr import SigningRequests
from appliance.pki.issuance import Issuance
from appliance.pki.kept_pins import KeptPins
from appliance.pki.ocsp_responder import OcspResponder
from appliance.pki.publication import Publishing
from appliance.pki.revocation import Revocations
from appliance.pki.revocation_pins import RevocationPins
from appliance.pki.self_revocation import SelfRevocation
from appliance.pki.tsa.authority import Timestamps
from appliance.pki.validation.trust_anchors import Trust


@dataclass(frozen=True)
class PkiServices:
    """What a face asks of the PKI."""

    certificates: Certificates
    revocations: Revocations
    trust: Trust
    expiry: Expiry
    credentials: Credentials
    revocation_pins: RevocationPins
    kept_pins: KeptPins
    self_revocation: SelfRevocation
    signing_requests: SigningRequests
    status_answers: OcspResponder
    timestamps: Timestamps
    issuing: Issuance


def pki_services(on: Foundation, keys: KeyServices) -> PkiServices:
    """Make them."""
    store, clock, settings, core = on.store, on.clock, on.settings, on.core
    revocations = Revocations(store, clock)
    pins = RevocationPins(store, clock, on.login_passwords)
    trust = open_trust(core)
    publishing = Publishing(store, clock, settings.pki, on.role, core.work_notifier)
    return PkiServices(
        certificates=Certificates(store, clock),
        revocations=revocations,
        trust=trust,
        expiry=open_expiry(core),
        credentials=Credentials(store, clock, trust, revocations, core.inspector),
        revocation_pins=pins,
        kept_pins=KeptPins(store, on.sealer, clock),
        self_revocation=SelfRevocation(
            store, on.lookup, on.throttle, pins, revocations
        ),
        signing_requests=SigningRequests(
            store, on.attempts, on.hosts, clock, on.shielded
        ),
        status_answers=OcspResponder(store, clock, settings, publishing),
        timestamps=Timestamps(store, clock, keys.tasks),
        issuing=Issuance(
            store,
            on.attempts,
            on.hosts,
            clock,
            settings.hsm.key_algorithm,
            on.shielded,
        ),
    )
