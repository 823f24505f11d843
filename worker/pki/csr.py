"""Certificate signing requests, signed by a user's key in the HSM.

Source: RFC 2986; RFC 2985, 5.4.2 (extensionRequest); facts "Argentina".
"""

import hashlib
from dataclasses import dataclass
from functools import partial

import structlog
from asn1crypto import algos, csr, keys, pem, x509
from cryptography.x509 import load_der_x509_csr

from appliance.domain.errors import HsmRefusedError
from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    SignatureScheme,
)
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.keys.key_encryption import open_outer, signing_key
from appliance.keys.key_facts import key_facts
from appliance.pki.csr import CsrWork
from appliance.pki.validation.credential_statement import Statement
from worker.hsm.session import HsmSession
from worker.signing.activation_keys import ActivationKeys
from worker.signing.consent_journal import ConsentJournal
from worker.signing.credential_statement import CredentialStatements

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CsrTasks:
    """Does `csr` tasks in a signing worker.

    Args:
        work: this worker's transactions.
        session: the HSM.
        keys: opens what was sealed to this host.
        journal: of this host, by which a task that ended opens nothing again.
        installation: the setting of that name.
        statements: whose key a credential is, by its certificate.
    """

    work: CsrWork
    session: HsmSession
    keys: ActivationKeys
    journal: ConsentJournal
    installation: str
    statements: CredentialStatements

    async def run(self, claim: TaskClaim) -> None:
        """Open the key, record what it is to sign, sign, check, commit.

        Args:
            claim: of the task.

        Raises:
            HsmUnavailableError: leave it for later.
            HsmRefusedError: what was made is no request of this key.
            CredentialRefusedError: the key is not the person's, by its certificate.
            ApplianceError: why it failed.
        """
        order = await self.work.order(claim)
        credential = order.credential
        statement = await self.statements.demand(order.person, credential)
        begin = partial(self.journal.demand_not_ended, claim.id)
        unlock = self.keys.unlock(claim.seal, order.binding.info(), begin)
        inner = open_outer(unlock, credential.outer, credential.aad(self.installation))
        digest_algorithm, scheme = _method(credential.algorithm)
        body = _body(statement, credential.spki)
        digest = hashlib.new(digest_algorithm.value, body.dump()).digest()
        key = key_facts(credential.spki, credential.certificate)
        await self.work.intended(claim, digest.hex(), key)
        signature = await self.session.sign(
            signing_key(credential, inner), digest, scheme, digest_algorithm
        )
        made = csr.CertificationRequest(
            {
                "certification_request_info": body,
                "signature_algorithm": algos.SignedDigestAlgorithm(
                    {"algorithm": _oid(digest_algorithm, scheme)}
                ),
                "signature": signature,
            }
        ).dump()
        if not load_der_x509_csr(made).is_signature_valid:
            msg = "the request is not signed by the credential's key"
            raise HsmRefusedError(msg)
        text = pem.armor("CERTIFICATE REQUEST", made).decode("ascii")
        if await self.work.made(claim, text):
            self.journal.end(claim.id)
            _log.info("task.csr", task=claim.id, credential=credential.id)


def _method(algorithm: KeyAlgorithm) -> tuple[DigestAlgorithm, SignatureScheme]:
    """How a key signs a request: PKCS#1 v1.5, which every CA reads, or ECDSA."""
    if algorithm is KeyAlgorithm.EC_P384:
        return DigestAlgorithm.SHA384, SignatureScheme.ECDSA
    if algorithm is KeyAlgorithm.EC_P256:
        return DigestAlgorithm.SHA256, SignatureScheme.ECDSA
    return DigestAlgorithm.SHA256, SignatureScheme.RSA_PKCS1


def _oid(digest: DigestAlgorithm, scheme: SignatureScheme) -> str:
    kind = "ecdsa" if scheme is SignatureScheme.ECDSA else "rsa"
    return f"{digest.value}_{kind}"


def _body(statement: Statement, spki: bytes) -> csr.CertificationRequestInfo:
    """C=AR, CN, serialNumber=`CUIL …`, the key, and what it is to be used for."""
    subject = x509.Name.build(
        {
            "country_name": "AR",
            "common_name": statement.name,
            "serial_number": f"CUIL {statement.cuil}",
        }
    )
    usage = x509.Extension(
        {
            "extn_id": "key_usage",
            "critical": True,
            "extn_value": x509.KeyUsage({"digital_signature", "non_repudiation"}),
        }
    )
    return csr.CertificationRequestInfo(
        {
            "version": "v1",
            "subject": subject,
            "subject_pk_info": keys.PublicKeyInfo.load(spki),
            "attributes": [
                {"type": "extension_request", "values": [x509.Extensions([usage])]}
            ],
        }
    )
