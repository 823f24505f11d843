"""A timestamping authority on a port of this machine, good or bad as it is told.

    with FakeTsa(OutsideTsa(now), clock) as tsa:
        tsa.mode = Mode.WRONG_NONCE
        …  # ask tsa.url

Its tokens are pyHanko's, over real HTTP: no code of ours makes them.
"""

import base64
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from asn1crypto import core, keys, tsp
from asn1crypto import x509 as asn1
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID
from pyhanko.sign.timestamps import DummyTimeStamper
from pyhanko_certvalidator.registry import SimpleCertificateStore

from appliance.domain.clock import Clock
from tests.support.pki.outside_ca import OutsideCa, der, named, rsa_key, spki_of, usage
from tests.support.services.http_service import HttpService

REPLY: Final = "application/timestamp-reply"
POLICY: Final = "1.3.6.1.4.1.4146.2.2"
"""Under which pyHanko's stamps."""
_MEGABYTE: Final = b"\0" * 1_000_000
_HUGE_MB: Final = 50


class Mode(Enum):
    """How it answers."""

    GOOD = auto()
    OFF = auto()
    """It hangs up without a word."""
    SLOW = auto()
    """It sends one byte and then nothing until it is stopped."""
    GARBAGE = auto()
    HTTP_ERROR = auto()
    REDIRECT = auto()
    """To itself, where it would answer well."""
    WRONG_TYPE = auto()
    """A good answer that is called text/html, as proxies do."""
    HUGE = auto()
    """50 MB."""
    CUT = auto()
    """Half of a good answer, all of which is announced."""
    REFUSAL = auto()
    WRONG_NONCE = auto()
    NO_NONCE = auto()
    WRONG_IMPRINT = auto()
    WRONG_TIME = auto()
    """An hour ago."""
    WRONG_SIGNATURE = auto()
    """The answer to an earlier question, what it says exchanged."""
    EXPIRED = auto()
    WRONG_PURPOSE = auto()
    """A certificate for signing documents."""
    PURPOSE_NOT_CRITICAL = auto()
    SEVERAL_PURPOSES = auto()
    UNKNOWN_CHAIN = auto()
    WITHOUT_CERTIFICATES = auto()


@dataclass(frozen=True, slots=True)
class ExternalTsa:
    """A CA outside that certified a TSA.

    Args:
        now: aware; when all is sound.
        ca: that certifies; another one is a stranger.
    """

    now: datetime
    ca: OutsideCa

    @property
    def root(self) -> bytes:
        """What verifiers trust, DER."""
        return der(self.ca.root)

    def stamper(self, at: datetime, **changes: Any) -> DummyTimeStamper:
        """One that stamps at a time, its certificate sound but for `changes`."""
        form: dict[str, Any] = {
            "subject": named("TSA de afuera"),
            "usage": usage("digital_signature"),
            "purposes": [ExtendedKeyUsageOID.TIME_STAMPING],
            "purposes_critical": True,
            **changes,
        }
        key = rsa_key("tsa")
        certificate = self.ca.certify(spki_of(key), "20267565393", **form)
        private = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        others = SimpleCertificateStore.from_certs(  # type: ignore[no-untyped-call]  # it is not typed
            [_asn1(self.ca.issuing)]
        )
        return DummyTimeStamper(
            _asn1(certificate), keys.PrivateKeyInfo.load(private), others, at
        )


def _asn1(certificate: x509.Certificate) -> asn1.Certificate:
    return asn1.Certificate.load(der(certificate))


class FakeTsa(HttpService):
    """The authority at `url`.

    Args:
        outside: whose it is.
        clock: the time that it stamps.
        user: the only user name and password that it takes, `name:password`.
        tls: its side of TLS; without, it speaks plain HTTP.
    """

    def __init__(
        self,
        outside: ExternalTsa,
        clock: Clock,
        user: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(tls)
        self.mode = Mode.GOOD
        self.asked = 0
        """Questions so far."""
        self.heard: dict[str, str] = {}
        """Headers of the last one."""
        self.authority = outside
        self._clock = clock
        self._user = user

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"{self.origin}/tsa?key=not-for-logs"

    def answer(self, asked: bytes) -> bytes:
        """The answer to a TimeStampReq by this mode, as far as it is one."""
        question = tsp.TimeStampReq.load(asked)
        now = self._clock.now()
        changes = self._changes(now)
        if self.mode is Mode.REFUSAL:
            return _refusal()
        if self.mode is Mode.GARBAGE:
            return b"\x30\x82" + asked * 3
        if self.mode is Mode.WRONG_NONCE:
            question["nonce"] = question["nonce"].native ^ 1
        if self.mode is Mode.NO_NONCE:
            del question["nonce"]
        if self.mode is Mode.WRONG_IMPRINT:
            question["message_imprint"]["hashed_message"] = b"\0" * 32
        outside = self.authority
        if self.mode is Mode.UNKNOWN_CHAIN:
            outside = ExternalTsa(outside.now, OutsideCa(outside.now))
        at = now - timedelta(hours=1) if self.mode is Mode.WRONG_TIME else now
        made = outside.stamper(at, **changes).request_tsa_response(question)
        signed = made["time_stamp_token"]["content"]
        if self.mode is Mode.WRONG_SIGNATURE:
            value = bytearray(signed["signer_infos"][0]["signature"].native)
            value[-1] ^= 1
            signed["signer_infos"][0]["signature"] = bytes(value)
        if self.mode is Mode.WITHOUT_CERTIFICATES:
            signed["certificates"] = []
        return bytes(made.dump(force=True))

    def _changes(self, now: datetime) -> dict[str, Any]:
        """What the authority's certificate says differently."""
        stamping = ExtendedKeyUsageOID.TIME_STAMPING
        signing = ExtendedKeyUsageOID.EMAIL_PROTECTION
        by_mode: dict[Mode, dict[str, Any]] = {
            Mode.EXPIRED: {"end": now - timedelta(seconds=1)},
            Mode.WRONG_PURPOSE: {"purposes": [signing]},
            Mode.PURPOSE_NOT_CRITICAL: {"purposes_critical": False},
            Mode.SEVERAL_PURPOSES: {"purposes": [stamping, signing]},
        }
        return by_mode.get(self.mode, {})

    def serve(self, http: BaseHTTPRequestHandler) -> None:
        """Answer one call."""
        self.asked += 1
        self.heard = dict(http.headers.items())
        asked = http.rfile.read(int(http.headers["Content-Length"]))
        given = base64.b64encode(self._user.encode()).decode()
        mode = self.mode
        if mode is Mode.OFF:
            return
        if self._user and http.headers["Authorization"] != f"Basic {given}":
            _head(http, 401, 0)
        elif mode is Mode.HTTP_ERROR:
            _head(http, 500, 0)
        elif mode is Mode.REDIRECT and "again" not in http.path:
            _head(http, 307, 0, location=f"{self.url}&again")
        elif mode is Mode.SLOW:
            _head(http, 200, 4000)
            http.wfile.write(b"\x30")
            http.wfile.flush()
            self._stop.wait(60)
        elif mode is Mode.HUGE:
            _head(http, 200, _HUGE_MB * len(_MEGABYTE))
            for _ in range(_HUGE_MB):
                http.wfile.write(_MEGABYTE)
        else:
            answer = self.answer(asked)
            kind = "text/html" if mode is Mode.WRONG_TYPE else REPLY
            _head(http, 200, len(answer), kind=kind)
            half = len(answer) // 2 if mode is Mode.CUT else len(answer)
            http.wfile.write(answer[:half])


def _refusal() -> bytes:
    status = {"status": "rejection", "fail_info": {"time_not_available"}}
    whole = core.Sequence()
    whole.contents = tsp.PKIStatusInfo(status).dump()
    return bytes(whole.dump())


def _head(
    http: BaseHTTPRequestHandler,
    status: int,
    length: int,
    *,
    kind: str = REPLY,
    location: str = "",
) -> None:
    http.send_response(status)
    http.send_header("Content-Type", kind)
    http.send_header("Content-Length", str(length))
    if location:
        http.send_header("Location", location)
    http.end_headers()
