"""CRLs and OCSP answers, signed with the CA's keys in the HSM.

Source: RFC 5280, 5; RFC 6960 and its profile for many readers, RFC 5019: answers
are made ahead, one for each certificate, without nonce, times in whole seconds.
"""

import asyncio
import hashlib
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from asn1crypto import algos, core, ocsp
from asn1crypto import x509 as asn1
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.domain.clock import Clock
from appliance.domain.keys.hsm_keys import KeyReference
from appliance.domain.pki.certificates import (
    AnswerDraft,
    CertificateRecord,
    Crl,
    CrlDraft,
    OcspAnswer,
    RevokedEntry,
)
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    RevocationReason,
)
from appliance.pki.publication import Publishing
from hsm_config.pkcs11.objects import CA_KEY, OCSP_KEY, ROOT_KEY
from hsm_config.provisioning.ca_certificates import HsmRsaPrivateKey, key_identifier
from worker.hsm.session import HsmSession
from worker.pki.certificate_authority import RESPONDER_VALIDITY, Authority

_log = structlog.get_logger(__name__)
_EXPIRED_CERTS_ON_CRL: Final = x509.ObjectIdentifier("2.5.29.60")
_REASONS: Final = {
    RevocationReason.KEY_COMPROMISE: x509.ReasonFlags.key_compromise,
    RevocationReason.AFFILIATION_CHANGED: x509.ReasonFlags.affiliation_changed,
    RevocationReason.SUPERSEDED: x509.ReasonFlags.superseded,
    RevocationReason.CESSATION_OF_OPERATION: x509.ReasonFlags.cessation_of_operation,
    RevocationReason.PRIVILEGE_WITHDRAWN: x509.ReasonFlags.privilege_withdrawn,
}
"""`unspecified` is told by saying nothing (RFC 5280, 5.3.1)."""
_OCSP_REASONS: Final = {
    RevocationReason.KEY_COMPROMISE: "key_compromise",
    RevocationReason.AFFILIATION_CHANGED: "affiliation_changed",
    RevocationReason.SUPERSEDED: "superseded",
    RevocationReason.CESSATION_OF_OPERATION: "cessation_of_operation",
    RevocationReason.PRIVILEGE_WITHDRAWN: "privilege_withdrawn",
}


class Publisher:
    """Signs what the CA and its root publish.

    Args:
        session: the HSM.
        authority: the CA that issues, which certifies the responder.
        root: the root's certificate.
        publishing: this worker's transactions.
        clock: the time.
    """

    def __init__(
        self,
        session: HsmSession,
        authority: Authority,
        root: x509.Certificate,
        publishing: Publishing,
        clock: Clock,
    ) -> None:
        self._session = session
        self._authority = authority
        self._publishing = publishing
        self._clock = clock
        ca = authority.certificate
        self._ca_id = key_identifier(ca)
        self._issuers: dict[str, tuple[KeyReference, x509.Certificate]] = {
            self._ca_id: (CA_KEY, ca),
            key_identifier(root): (ROOT_KEY, root),
        }
        self._names = hashlib.sha1(ca.subject.public_bytes()).digest()  # noqa: S324 (RFC 5019, 2.1.1)

    @property
    def issuers(self) -> tuple[str, ...]:
        """Key identifiers of the CA that certifies signers, and of the root."""
        return tuple(self._issuers)

    async def crl(self, draft: CrlDraft) -> Crl:
        """Sign a CRL; the root's has no entries, whatever the record says.

        The appliance revokes nothing that the root certified. A row that says so is
        nobody's decision, and would take all certificates along with their CA.

        Args:
            draft: of one of `issuers`.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: it has no such key.

        Source: RFC 5280, 5.1 and 5.2.
        """
        reference, issuer = self._issuers[draft.issuer]
        if reference == ROOT_KEY and draft.entries:
            serials = [entry.serial for entry in draft.entries]
            _log.error(
                "crl.root_entries_ignored", count=len(serials), serial=serials[0]
            )
            draft = replace(draft, entries=())
        # Many entries take a while: neither in the loop nor in the HSM's thread.
        builder = await asyncio.to_thread(_crl_builder, draft, issuer)
        signed = await self._session.with_private_key(
            reference, lambda key: builder.sign(key, hashes.SHA256())
        )
        return Crl(
            draft.issuer,
            draft.number,
            signed.public_bytes(Encoding.DER),
            draft.this_update,
            draft.next_update,
        )

    async def answers(self, drafts: list[AnswerDraft]) -> list[OcspAnswer]:
        """Sign OCSP answers, one by one, so that signers wait for none of them.

        Args:
            drafts: of certificates that the CA issued.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: it has no such key.
        """
        if not drafts:
            return []
        responder = asn1.Certificate.load((await self._responder()).der)
        return [await self._answer(draft, responder) for draft in drafts]

    async def _answer(
        self, draft: AnswerDraft, responder: asn1.Certificate
    ) -> OcspAnswer:
        data = self._response_data(draft, responder)
        encoded = data.dump()

        def sign(key: HsmRsaPrivateKey) -> bytes:
            return key.sign(encoded, padding.PKCS1v15(), hashes.SHA256())

        signature = await self._session.with_private_key(OCSP_KEY, sign)
        basic = ocsp.BasicOCSPResponse(
            {
                "tbs_response_data": data,
                "signature_algorithm": {"algorithm": "sha256_rsa"},
                "signature": signature,
                "certs": [responder],
            }
        )
        whole = ocsp.OCSPResponse(
            {
                "response_status": "successful",
                "response_bytes": {
                    "response_type": "basic_ocsp_response",
                    "response": basic,
                },
            }
        )
        return draft.signed(whole.dump())

    def _response_data(
        self, draft: AnswerDraft, responder: asn1.Certificate
    ) -> ocsp.ResponseData:
        """What is signed. Source: RFC 6960, 4.2.1; RFC 5019, 2.2."""
        cert_id = {
            "hash_algorithm": algos.DigestAlgorithm({"algorithm": "sha1"}),
            "issuer_name_hash": self._names,
            "issuer_key_hash": bytes.fromhex(self._ca_id),
            "serial_number": int(draft.serial, 16),
        }
        return ocsp.ResponseData(
            {
                "responder_id": ocsp.ResponderId("by_key", responder.public_key.sha1),
                "produced_at": _whole(self._clock.now()),
                "responses": [
                    {
                        "cert_id": cert_id,
                        "cert_status": _status(draft),
                        "this_update": draft.this_update,
                        "next_update": draft.next_update,
                    }
                ],
            }
        )

    async def _responder(self) -> CertificateRecord:
        """The responder's certificate; a new one when a third of its time is left."""
        now = self._clock.now()
        held = self._authority.newest(
            await self._publishing.own(CertificateKind.OCSP, self._ca_id)
        )
        if held is not None and held.not_after - now > RESPONDER_VALIDITY / 3:
            return held
        issued = await self._authority.certify_responder(now)
        record = self._authority.record(issued, CertificateKind.OCSP)
        await self._publishing.own_issued(record)
        return record


def _crl_builder(
    draft: CrlDraft, issuer: x509.Certificate
) -> x509.CertificateRevocationListBuilder:
    """A CRL but for its signature.

    Entries stay past their certificates' end, which it says: who checks an old
    signature is to learn that its key was revoked.

    Source: RFC 5280, 5.2.1, 5.2.3 and 5.3.1; X.509 (2019), 9.5.2.8.
    """
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
        identifier.value
    )
    since = core.GeneralizedTime(issuer.not_valid_before_utc).dump()
    # All at once: adding one copies those before it.
    entries = [_entry(each) for each in draft.entries]
    return (
        x509.CertificateRevocationListBuilder(revoked_certificates=entries)
        .issuer_name(issuer.subject)
        .last_update(draft.this_update)
        .next_update(draft.next_update)
        .add_extension(authority, critical=False)
        .add_extension(x509.CRLNumber(draft.number), critical=False)
        .add_extension(
            x509.UnrecognizedExtension(_EXPIRED_CERTS_ON_CRL, since), critical=False
        )
    )


def _entry(entry: RevokedEntry) -> x509.RevokedCertificate:
    """A line of a CRL. Source: RFC 5280, 5.3."""
    builder = (
        x509.RevokedCertificateBuilder()
        .serial_number(int(entry.serial, 16))
        .revocation_date(entry.at)
    )
    if entry.reason in _REASONS:
        reason = x509.CRLReason(_REASONS[entry.reason])
        builder = builder.add_extension(reason, critical=False)
    return builder.build()


def _status(draft: AnswerDraft) -> ocsp.CertStatus:
    """What an answer tells of its certificate."""
    if draft.state is CertificateState.VALID:
        return ocsp.CertStatus("good", core.Null())
    info: dict[str, object] = {"revocation_time": draft.revoked_at}
    if draft.reason in _OCSP_REASONS:
        info["revocation_reason"] = _OCSP_REASONS[draft.reason]
    return ocsp.CertStatus("revoked", ocsp.RevokedInfo(info))


def _whole(at: datetime) -> datetime:
    """A time in whole seconds. Source: RFC 5019, 2.2.4."""
    return at - timedelta(microseconds=at.microsecond)
