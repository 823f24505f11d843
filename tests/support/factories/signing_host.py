"""A signing host that fronts can seal to, without an HSM.

host = SigningHost(folder)
await host.beat(store, clock.now())
hosts = host.hosts(store, clock)
"""

import hashlib
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from appliance.appearance.content import Stamping
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.clock import Clock
from appliance.domain.keys.host_statements import HostStatement
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.ports import PdfInspector
from appliance.domain.signing.activation import (
    ActivationFormat,
    ActivationKey,
    format_of,
    key_statement,
)
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.keys.activation_format import PinnedFormat
from appliance.keys.count_clearings import CountClearings
from appliance.keys.host_belief import KeyBelief
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.signing_hosts import SigningHosts
from appliance.keys.signing_password import SigningPasswords
from appliance.keys.worker_identities import PinnedIdentities
from appliance.keys.worker_store import ActivationKeyStore, WorkerStore
from appliance.pki.issuance import Issuance
from appliance.record.unit_of_work import Database
from appliance.requests.inspection import Inspections
from appliance.secrets.admitted_hosts import AdmittedHosts, admit
from appliance.secrets.host_key import HostKey, make_host_key
from appliance.secrets.sealed_box import LookupKey
from appliance.settings import SigningSettings
from appliance.signing.reexamination import Reexamination
from appliance.signing.sign import Signing
from appliance.system.background import Shielded
from tests.support.factories.fake_sandbox import PlayedSandbox
from tests.support.factories.fakes import FixedDocumentKeys
from tests.support.installation.record import CoreFixture

INSTALLATION: Final = "rubrica"
CLEARINGS: Final = CountClearings(LookupKey(KeyRing.of(b"l" * 32)))
"""Proofs of cleared counts, as every face and the console here make them."""


class SigningHost:
    """One host's activation keys, signed by its own key and by a pinned identity.

    Args:
        folder: of the data, where the files of pins go.
        name: of the host.
        identity: of the HSM; another host's, where two share one.
        is_admitted: the fronts that read the folder's files admit it.
    """

    def __init__(
        self,
        folder: Path,
        name: str = "h",
        *,
        identity: ec.EllipticCurvePrivateKey | None = None,
        is_admitted: bool = True,
    ) -> None:
        self.name = name
        self.identity = identity or ec.generate_private_key(ec.SECP256R1())
        self.private = X25519PrivateKey.generate()
        self.key_file = folder / f"host-{name}" / "host-key.pem"
        self.own, _ = make_host_key(self.key_file)
        self.pins = folder / "pki" / "worker-identity.pem"
        self.pins.parent.mkdir(exist_ok=True)
        self.pins.write_bytes(
            self.identity.public_key().public_bytes(
                Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
            )
        )
        self.admitted = folder / "pki" / "signing-hosts"
        if is_admitted:
            admit(self.admitted, name, self.own.public)

    def key(
        self,
        now: datetime,
        *,
        epoch: int | None = None,
        identity: ec.EllipticCurvePrivateKey | None = None,
        name: str | None = None,
        own: HostKey | None = None,
    ) -> ActivationKey:
        """Return what the host publishes for an epoch, the present one by default.

        Args:
            now: the time.
            epoch: of whichever format.
            identity: in the place of the HSM's.
            name: in whose name; the host's own by default.
            own: in the place of the host's own key.
        """
        signer = identity or self.identity
        host = name or self.name
        number = ActivationFormat.WHOLE.epoch_at(now) if epoch is None else epoch
        public = self.private.public_key().public_bytes_raw()
        spki = signer.public_key().public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )
        known = hashlib.sha256(spki).hexdigest()
        by_host, own = None, own or self.own
        statement = key_statement(INSTALLATION, host, number, public)
        if format_of(number) is ActivationFormat.WHOLE:
            whole = HostStatement(INSTALLATION, host, own.public, number, public, known)
            statement, by_host = whole.by_identity(), own.sign(whole.by_host())
        return ActivationKey(
            host=host,
            epoch=number,
            public=public,
            identity=known,
            signature=signer.sign(statement, ec.ECDSA(SHA256())),
            made=now,
            host_signature=by_host,
        )

    async def beat(self, store: Database, now: datetime, hsm: str = "ready") -> None:
        """Say that a worker of it is alive, its key published."""
        status = WorkerStatus(f"signing/{self.name}/1", "p", now, hsm, "")
        async with store.write() as transaction:
            await WorkerStore(transaction).beat(status)
            await ActivationKeyStore(transaction).publish(self.key(now))

    def hosts(self, store: Database, clock: Clock) -> SigningHosts:
        """What a front asks for hosts, pinning this one's identity."""
        return SigningHosts(store, self.belief(), clock)

    def belief(self) -> KeyBelief:
        """What a front believes that reads the folder's files."""
        return KeyBelief(
            PinnedIdentities(self.pins),
            AdmittedHosts(self.admitted),
            PinnedFormat(self.pins.with_name("activation-format")),
            INSTALLATION,
        )

    @property
    def private_bytes(self) -> bytes:
        """The private half of its key."""
        return self.private.private_bytes_raw()


def password_attempts(
    store: Database,
    passwords: SigningPasswords,
    clock: Clock,
    limits: SigningSettings,
) -> PasswordAttempts:
    """What checks signing passwords in one process."""
    return PasswordAttempts(store, passwords, clock, limits, INSTALLATION, CLEARINGS)


def signing_front(
    core: CoreFixture,
    host: SigningHost,
    passwords: SigningPasswords,
    limits: SigningSettings,
    shielded: Shielded,
    again: Reexamination | None = None,
) -> Signing:
    """What asks for signatures, sealing to one host.

    Args:
        core: the record.
        host: that is sealed to.
        passwords: how they are checked.
        limits: of signing.
        shielded: what goes on when a caller leaves.
        again: examines documents again; None: by a sandbox that is asked nothing.
    """
    return Signing(
        core.store,
        password_attempts(core.store, passwords, core.clock, limits),
        host.hosts(core.store, core.clock),
        Stamping(core.settings.stamp, core.settings.verify_url),
        core.work_notifier,
        core.completion_notifier,
        core.clock,
        limits,
        shielded,
        again or reexamination(core, PlayedSandbox()),
        core.settings.signature_profile,
    )


def reexamination(core: CoreFixture, sandbox: PdfInspector) -> Reexamination:
    """What looks again at documents that an earlier version has examined.

    Args:
        core: where they are recorded and kept.
        sandbox: that looks.
    """
    documents = LocalBlobStore(core.settings.documents_dir, FixedDocumentKeys())
    inspections = Inspections(core.store, documents, sandbox, core.clock)
    return Reexamination(core.store, inspections)


def issuing(
    store: Database,
    clock: Clock,
    hosts: SigningHosts,
    passwords: SigningPasswords,
) -> Issuance:
    """What asks for keys and certificates, sealing to those hosts."""
    attempts = password_attempts(store, passwords, clock, SigningSettings())
    return Issuance(
        store,
        attempts,
        hosts,
        clock,
        KeyAlgorithm.RSA_2048,
        Shielded(),
    )
