"""Where a CA outside tells of revocations: OCSP and CRLs, over real HTTP.

    with FakeCa(clock) as site:
        site.ca = OutsideCa(clock.now(), site=site.url)
        site.revoked.add(certificate.serial_number)

Its answers are built by pyca's own builders: no code of ours makes them.
"""

from datetime import datetime, timedelta
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID

from appliance.domain.clock import Clock
from tests.support.pki.outside_ca import OutsideCa, ec_key, named, spki_of, usage
from tests.support.services.http_service import HttpService

_HOUR = timedelta(hours=1)


class Says(Enum):
    """How it answers."""

    GOOD = auto()
    """What is so."""
    OFF = auto()
    """It hangs up without a word."""
    SLOW = auto()
    """It sends a byte, and then nothing until it is stopped."""
    GARBAGE = auto()
    HTTP_ERROR = auto()
    REDIRECT = auto()
    HUGE = auto()
    TRY_LATER = auto()
    """OCSP's own error; an empty body of a CRL."""
    STALE = auto()
    """Its nextUpdate was an hour ago."""
    FUTURE = auto()
    WRONG_NONCE = auto()
    NO_NONCE = auto()
    OTHER_SERIAL = auto()
    """An answer about another certificate."""
    UNKNOWN = auto()
    STRANGER = auto()
    """Signed by a responder that another CA certified, under the same name."""
    NO_PURPOSE = auto()
    """Signed by a certificate of the CA that is for no OCSP."""
    WRONG_SIGNATURE = auto()
    NO_NEXT_UPDATE = auto()


class FakeCa(HttpService):
    """The site at `url`.

    Args:
        clock: the time that it tells.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.ca: OutsideCa
        self.revoked: set[int] = set()
        """Serials."""
        self.reason: x509.ReasonFlags | None = None
        """Why; None: it does not say."""
        self.ocsp = self.crl = Says.GOOD
        self.asked = {"/ocsp": 0, "/ca.crl": 0, "/root.crl": 0}
        self.lasts = _HOUR
        """From thisUpdate to nextUpdate."""
        self.no_check = True
        """Whether its responder's certificate needs no proof itself."""
        self._key = ec_key()

    @property
    def url(self) -> str:
        """Where it is."""
        return self.origin

    def serve(self, http: BaseHTTPRequestHandler) -> None:
        """Answer one call."""
        self.asked[http.path] += 1
        length = int(http.headers.get("Content-Length", 0))
        asked = http.rfile.read(length)
        says = self.ocsp if http.path == "/ocsp" else self.crl
        if says is Says.OFF:
            return
        if says in {Says.HTTP_ERROR, Says.REDIRECT}:
            _send(http, 500 if says is Says.HTTP_ERROR else 302, b"", self.url)
        elif says is Says.SLOW:
            http.send_response(200)
            http.send_header("Content-Length", "4000")
            http.end_headers()
            http.wfile.write(b"\x30")
            http.wfile.flush()
            self._stop.wait(60)
        elif says is Says.HUGE:
            _send(http, 200, b"\0" * 12_000_000)
        elif says is Says.GARBAGE:
            _send(http, 200, b"\x30\x82" + asked * 3)
        elif http.path == "/ocsp":
            _send(http, 200, self._answer(asked))
        else:
            _send(http, 200, self._list(of_root=http.path == "/root.crl"))

    def _answer(self, asked: bytes) -> bytes:
        """An OCSPResponse, DER."""
        says = self.ocsp
        if says is Says.TRY_LATER:
            status = ocsp.OCSPResponseStatus.TRY_LATER
            made = ocsp.OCSPResponseBuilder.build_unsuccessful(status)
            return made.public_bytes(Encoding.DER)
        question = ocsp.load_der_ocsp_request(asked)
        serial = question.serial_number + (says is Says.OTHER_SERIAL)
        responder = self._responder()
        start, end = self._times(says)
        builder = (
            ocsp.OCSPResponseBuilder()
            .add_response_by_hash(
                question.issuer_name_hash,
                question.issuer_key_hash,
                serial,
                question.hash_algorithm,
                self._status(serial),
                start,
                None if says is Says.NO_NEXT_UPDATE else end,
                start if serial in self.revoked else None,
                self.reason if serial in self.revoked else None,
            )
            .responder_id(ocsp.OCSPResponderEncoding.HASH, responder)
            .certificates([responder])
        )
        nonce = self._nonce(question)
        if nonce is not None:
            builder = builder.add_extension(x509.OCSPNonce(nonce), critical=False)
        made = builder.sign(self._key, hashes.SHA256())
        der = bytearray(made.public_bytes(Encoding.DER))
        if says is Says.WRONG_SIGNATURE:
            at = der.index(made.signature)
            der[at + len(made.signature) - 1] ^= 1
        return bytes(der)

    def _nonce(self, question: ocsp.OCSPRequest) -> bytes | None:
        given: bytes = question.extensions.get_extension_for_class(
            x509.OCSPNonce
        ).value.nonce
        if self.ocsp is Says.NO_NONCE:
            return None
        return given[::-1] if self.ocsp is Says.WRONG_NONCE else given

    def _status(self, serial: int) -> ocsp.OCSPCertStatus:
        if self.ocsp is Says.UNKNOWN:
            return ocsp.OCSPCertStatus.UNKNOWN
        is_revoked = serial in self.revoked
        return ocsp.OCSPCertStatus.REVOKED if is_revoked else ocsp.OCSPCertStatus.GOOD

    def _responder(self) -> x509.Certificate:
        now = self.clock.now()
        form: dict[str, Any] = {
            "subject": named("OCSP de afuera"),
            "start": now - _HOUR,
            "end": now + timedelta(days=30),
            "usage": usage("digital_signature"),
            "purposes": [ExtendedKeyUsageOID.OCSP_SIGNING],
            "no_check": self.no_check,
        }
        if self.ocsp is Says.NO_PURPOSE:
            form["purposes"] = [ExtendedKeyUsageOID.EMAIL_PROTECTION]
        by = OutsideCa(self.ca.now) if self.ocsp is Says.STRANGER else self.ca
        return by.certify(spki_of(self._key), "20267565393", **form)

    def _times(self, says: Says) -> tuple[datetime, datetime]:
        now = self.clock.now().replace(microsecond=0)
        if says is Says.STALE:
            now -= self.lasts + _HOUR
        if says is Says.FUTURE:
            now += _HOUR
        return now, now + self.lasts

    def _list(self, *, of_root: bool) -> bytes:
        """A CertificateList, DER."""
        if self.crl is Says.TRY_LATER:
            return b""
        start, end = self._times(self.crl)
        ca = OutsideCa(self.ca.now) if self.crl is Says.STRANGER else self.ca
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(ca.root_name if of_root else ca.name)
            .last_update(start)
            .next_update(end)
        )
        for serial in self.revoked:
            entry = x509.RevokedCertificateBuilder().serial_number(serial)
            if self.reason is not None:
                why = x509.CRLReason(self.reason)
                entry = entry.add_extension(why, critical=False)
            builder = builder.add_revoked_certificate(
                entry.revocation_date(start).build()
            )
        made = builder.sign(ca.root_key if of_root else ca.key, hashes.SHA256())
        return made.public_bytes(Encoding.DER)


def _send(
    http: BaseHTTPRequestHandler, status: int, body: bytes, location: str = ""
) -> None:
    http.send_response(status)
    http.send_header("Content-Length", str(len(body)))
    if location:
        http.send_header("Location", location)
    http.end_headers()
    http.wfile.write(body)
