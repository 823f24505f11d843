"""Outside timestamping authorities, good and bad, over real HTTP.

Source: research "faults" F23: 10 s, the next one, and never a bad token.
"""

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID
from pydantic import ValidationError
from structlog.testing import capture_logs

from appliance.bootstrap import Core, open_trust
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ErrorCode, TsaUnavailableError
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.timestamps import TimestampQuestion
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.settings import SettingsError, TimestampSettings
from tests.support.factories.fakes import NOON, MovingClock
from tests.support.installation.record import CoreFixture
from tests.support.pki.outside_ca import (
    OutsideCa,
    PrivateKey,
    der,
    ec_key,
    named,
    spki_of,
    usage,
)
from tests.support.pki.timestamps import (
    Trusted,
    check_authority,
    imprint,
    info,
    openssl,
)
from tests.support.services.fake_tsa import POLICY, ExternalTsa, FakeTsa, Mode
from worker.network.tsa_client import ANSWER_BYTES, TsaClient, _encoded, open_tsa_client
from worker.network.tsa_failover import OutsideAuthorities
from worker.network.tsa_response import (
    BadTimestampError,
    check_token,
    checked_token,
)

IMPRINT = imprint()
SHA256 = DigestAlgorithm.SHA256
OUTSIDE = ExternalTsa(NOON, OutsideCa(NOON, "AC de sellos"))

BAD = {
    Mode.OFF: "disconnected",
    Mode.SLOW: "TimeoutError",
    Mode.GARBAGE: "malformed",
    Mode.HTTP_ERROR: "HTTP 500",
    Mode.REDIRECT: "HTTP 307",
    Mode.WRONG_TYPE: "text/html",
    Mode.HUGE: f"longer than {ANSWER_BYTES}",
    Mode.CUT: "Response payload is not completed",
    Mode.REFUSAL: r"rejection \(time_not_available\)",
    Mode.WRONG_NONCE: "another nonce",
    Mode.NO_NONCE: "another nonce",
    Mode.WRONG_IMPRINT: "another imprint",
    Mode.WRONG_TIME: "3600 s off",
    Mode.WRONG_SIGNATURE: "signature is not right",
    Mode.EXPIRED: "CERTIFICATE_EXPIRED",
    Mode.WRONG_PURPOSE: "not for timestamps alone",
    Mode.PURPOSE_NOT_CRITICAL: "not for timestamps alone",
    Mode.SEVERAL_PURPOSES: "not for timestamps alone",
    Mode.UNKNOWN_CHAIN: "no root that is trusted",
    Mode.WITHOUT_CERTIFICATES: "signer's certificate",
}


@dataclass
class TwoAuthorities:
    """Two authorities, and a client of both."""

    first: FakeTsa
    second: FakeTsa
    clock: MovingClock
    roots: list[bytes] = field(default_factory=lambda: [OUTSIDE.root])

    async def read_roots(self) -> Sequence[bytes]:
        """What is trusted now."""
        return self.roots

    def client(self, *outside: dict[str, Any], **options: Any) -> TsaClient:
        """A client of these, or of both."""
        every = outside or ({"url": self.first.url}, {"url": self.second.url})
        settings = TimestampSettings.model_validate({"outside": every, **options})
        return TsaClient(settings, self.read_roots, self.clock)

    def counts(self) -> tuple[int, int]:
        """Questions to each so far."""
        return self.first.asked, self.second.asked


@pytest.fixture
def two_authorities() -> Iterator[TwoAuthorities]:
    """Both good."""
    clock = MovingClock()
    with FakeTsa(OUTSIDE, clock) as first, FakeTsa(OUTSIDE, clock) as second:
        yield TwoAuthorities(first, second, clock)


@pytest.fixture
async def client(two_authorities: TwoAuthorities) -> AsyncIterator[TsaClient]:
    """A client of both, patient: the machine may have much to do."""
    async with two_authorities.client(timeout_s=60) as opened:
        yield opened


def patience(mode: Mode) -> float:
    """How long to wait for an authority: no test waits in vain for longer."""
    return 6 if mode is Mode.SLOW else 60


def imprint_of(token: bytes) -> bytes:
    """What a token is over."""
    return bytes(info(token)["message_imprint"]["hashed_message"])


async def test_it_is_a_timestamp_authority(
    two_authorities: TwoAuthorities, client: TsaClient, tmp_path: Path
) -> None:
    """As the port has it, and openssl; the first one alone is asked."""
    trusted = Trusted(OUTSIDE.ca.root, OUTSIDE.ca.issuing, NOON)

    await check_authority(client, trusted, tmp_path)

    assert two_authorities.counts() == (3, 0)


@pytest.mark.parametrize("mode", BAD, ids=lambda mode: mode.name.lower())
async def test_bad_authority_is_passed_over(
    two_authorities: TwoAuthorities, mode: Mode
) -> None:
    """The next one stamps, and the log says why; its address' query stays secret."""
    two_authorities.first.mode = mode

    async with two_authorities.client(timeout_s=patience(mode)) as client:
        with capture_logs() as logs:
            token = await client.stamp(IMPRINT, SHA256)

    assert imprint_of(token) == IMPRINT
    assert two_authorities.counts() == (1, 1)
    (told,) = [line for line in logs if line["event"] == "tsa.failed"]
    assert "not-for-logs" not in str(told)


@pytest.mark.parametrize("mode", BAD, ids=lambda mode: mode.name.lower())
async def test_bad_token_is_never_given_out(
    two_authorities: TwoAuthorities, mode: Mode
) -> None:
    """With nobody else to ask there is none, and the reason is told."""
    two_authorities.first.mode = mode
    limit_s = patience(mode)
    async with two_authorities.client(
        {"url": two_authorities.first.url}, timeout_s=limit_s
    ) as client:
        with pytest.raises(TsaUnavailableError) as refused:
            await client.stamp(IMPRINT, SHA256)

    assert refused.value.code is ErrorCode.TSA_UNAVAILABLE
    assert re.search(BAD[mode], refused.value.reason), refused.value.reason


async def test_authority_that_failed_is_asked_last_for_a_while(
    two_authorities: TwoAuthorities,
) -> None:
    """Then it is first again; while it rests it is still better than none."""
    two_authorities.first.mode = Mode.REFUSAL
    async with two_authorities.client(rest_s=300) as client:
        await client.stamp(IMPRINT, SHA256)
        two_authorities.first.mode = Mode.GOOD
        await client.stamp(IMPRINT, SHA256)
        assert two_authorities.counts() == (1, 2)

        two_authorities.second.mode = Mode.OFF
        await client.stamp(IMPRINT, SHA256)
        assert two_authorities.counts() == (2, 3)

        two_authorities.second.mode = Mode.GOOD
        two_authorities.clock.forward(301)
        await client.stamp(IMPRINT, SHA256)
        assert two_authorities.counts() == (3, 3)


async def test_slow_authority_costs_its_time_and_no_more(
    two_authorities: TwoAuthorities,
) -> None:
    """What trickles in ends at the limit, however many ask at once."""
    two_authorities.first.mode = Mode.SLOW
    async with two_authorities.client(timeout_s=6) as client:
        tokens = await asyncio.gather(
            *(client.stamp(IMPRINT, SHA256) for _ in range(5))
        )

    assert {imprint_of(token) for token in tokens} == {IMPRINT}


async def test_authority_that_is_not_there(two_authorities: TwoAuthorities) -> None:
    """A closed port is a failure as any other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = {"url": f"http://127.0.0.1:{free.getsockname()[1]}/"}
        async with two_authorities.client(
            gone, {"url": two_authorities.second.url}
        ) as client:
            assert imprint_of(await client.stamp(IMPRINT, SHA256)) == IMPRINT


async def test_root_is_read_for_each_stamp(
    two_authorities: TwoAuthorities, client: TsaClient
) -> None:
    """A root that is removed from the trust store counts from then on."""
    await client.stamp(IMPRINT, SHA256)
    two_authorities.roots.clear()

    with pytest.raises(TsaUnavailableError) as refused:
        await client.stamp(IMPRINT, SHA256)
    assert refused.value.reason.count("no root that is trusted") == 2


async def test_each_authority_is_tried(
    two_authorities: TwoAuthorities, client: TsaClient
) -> None:
    """What `rubrica timestamps try` shows: good, or why not."""
    two_authorities.second.mode = Mode.EXPIRED

    told = await client.try_each()

    assert [name[0] for name in told] == ["1", "2"]
    good, bad = told.values()
    assert (good, "CERTIFICATE_EXPIRED" in bad) == ("", True)


async def test_trust_store_says_who_is_believed(
    two_authorities: TwoAuthorities, sqlite_core: CoreFixture
) -> None:
    """A root for signers is none for timestamps."""
    core = cast("Core", sqlite_core)
    outside = TimestampSettings.model_validate(
        {"outside": [{"url": two_authorities.first.url}]}
    )
    sqlite_core.settings = core.settings.model_copy(update={"timestamps": outside})
    trust = open_trust(core)
    fingerprint = OUTSIDE.ca.root.fingerprint(hashes.SHA256()).hex()
    told: list[str] = []
    async with open_tsa_client(core) as client:
        for purpose in (AnchorPurpose.SIGNERS, AnchorPurpose.TIMESTAMPS):
            await trust.add("operator", OUTSIDE.root, purpose, fingerprint)
            told += (await client.try_each()).values()

    assert ["trusted" in told[0], told[1]] == [True, ""]


@pytest.mark.parametrize(("policy", "good"), [(POLICY, True), ("1.2.3.4", False)])
async def test_policy_that_was_asked_for(
    two_authorities: TwoAuthorities, policy: str, good: bool
) -> None:
    """A token under another one is none."""
    first = {"url": two_authorities.first.url, "policy": policy}
    async with two_authorities.client(
        first, {"url": two_authorities.second.url}
    ) as client:
        await client.stamp(IMPRINT, SHA256)

    assert two_authorities.counts() == (1, 0 if good else 1)


async def test_proxy_is_asked_for_all_of_it(two_authorities: TwoAuthorities) -> None:
    """No name is looked up here: the proxy gets the whole address."""
    proxy = two_authorities.first.url.partition("/tsa")[0]
    async with two_authorities.client(
        {"url": "http://tsa.invalid/"}, proxy=proxy
    ) as client:
        assert imprint_of(await client.stamp(IMPRINT, SHA256)) == IMPRINT


async def test_password_goes_over_tls_that_was_checked(
    two_authorities: TwoAuthorities, tmp_path: Path
) -> None:
    """By the certificates of the settings; a wrong password is a failure."""
    (tmp_path / "right").write_text("secreto\n")
    (tmp_path / "wrong").write_text("otro")
    tls = tls_of(tmp_path)
    with FakeTsa(OUTSIDE, two_authorities.clock, user="ana:secreto", tls=tls) as tsa:
        ours = {"url": tsa.url, "ca_file": tmp_path / "tls.pem", "username": "ana"}
        right = {**ours, "password_file": tmp_path / "right"}
        wrong = {**ours, "password_file": tmp_path / "wrong"}
        async with two_authorities.client(right) as client:
            assert imprint_of(await client.stamp(IMPRINT, SHA256)) == IMPRINT
        for outside, why in (
            (wrong, "HTTP 401"),
            ({**right, "ca_file": None}, "certificate verify failed"),
        ):
            async with two_authorities.client(outside) as client:
                with pytest.raises(TsaUnavailableError) as refused:
                    await client.stamp(IMPRINT, SHA256)
            assert why in refused.value.reason
            assert "secreto" not in repr(client._outside) + refused.value.reason


async def test_client_certificate_and_header_are_shown(
    two_authorities: TwoAuthorities, tmp_path: Path
) -> None:
    """Both from files; without the certificate nobody answers."""
    (tmp_path / "header").write_text("clave-de-acceso\n")
    tls = tls_of(tmp_path)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(tmp_path / "tls.pem")
    with FakeTsa(OUTSIDE, two_authorities.clock, tls=tls) as tsa:
        bare = {"url": tsa.url, "ca_file": tmp_path / "tls.pem"}
        shown = {
            **bare,
            "certificate_file": tmp_path / "tls.pem",
            "key_file": tmp_path / "tls.key",
            "header": "X-Api-Key",
            "header_file": tmp_path / "header",
        }
        async with two_authorities.client(shown) as client:
            assert imprint_of(await client.stamp(IMPRINT, SHA256)) == IMPRINT
            assert tsa.heard["X-Api-Key"] == "clave-de-acceso"
            assert "clave-de-acceso" not in repr(client._outside)
        async with two_authorities.client(bare) as client:
            with pytest.raises(TsaUnavailableError):
                await client.stamp(IMPRINT, SHA256)


async def test_profile_names_who_is_asked_and_in_which_order(
    two_authorities: TwoAuthorities,
) -> None:
    """Those it names, in its order; and no other one."""
    outside = (
        {"url": two_authorities.first.url, "name": "first"},
        {"url": two_authorities.second.url, "name": "second"},
    )

    async with two_authorities.client(*outside) as client:
        authorities = OutsideAuthorities(client)
        await authorities.stamp(("second", "first"), IMPRINT, SHA256, None)
        assert two_authorities.counts() == (0, 1)
        two_authorities.second.mode = Mode.HTTP_ERROR
        token = await authorities.stamp(("second", "first"), IMPRINT, SHA256, 7)
        assert two_authorities.counts() == (1, 2)
        roots = two_authorities.roots
        for nonce, is_asked in ((7, True), (8, False), (None, False)):
            question = TimestampQuestion(IMPRINT, SHA256, nonce=nonce)
            with nullcontext() if is_asked else pytest.raises(BadTimestampError):
                check_token(token, question, {None}, roots, (NOON, NOON))
        with pytest.raises(TsaUnavailableError) as refused:
            await authorities.stamp(("third",), IMPRINT, SHA256, None)
        assert refused.value.reason == "no authority is set"


def tls_of(folder: Path) -> ssl.SSLContext:
    """A server's side of TLS on 127.0.0.1, certified by itself (tls.pem)."""
    key = ec_key()
    name = named("127.0.0.1")
    here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    at = SystemClock().now()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - timedelta(days=1))
        .not_valid_after(at + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([here]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "tls.key").write_bytes(private_pem(key))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.pem", folder / "tls.key")
    return context


def private_pem(key: PrivateKey) -> bytes:
    """A private key, PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    "outside",
    [
        {"url": "http://ana:secreto@tsa.example/"},
        {"url": "ftp://tsa.example/"},
        {"url": "http://tsa.example/", "username": "ana", "password_file": "p"},
        {"url": "https://tsa.example/", "username": "ana"},
        {"url": "https://tsa.example/", "policy": "anything"},
        {"url": "https://tsa.example/", "name": "internal"},
        {"url": "https://tsa.example/", "header": "X-Api-Key"},
        {"url": "http://tsa.example/", "header": "X-Api-Key", "header_file": "p"},
        {"url": "http://tsa.example/", "certificate_file": "p", "key_file": "k"},
    ],
)
def test_settings_that_would_leak_or_mean_nothing(outside: dict[str, Any]) -> None:
    """Refused before anything starts."""
    with pytest.raises(ValidationError):
        TimestampSettings.model_validate({"outside": [outside]})


async def test_password_file_that_is_missing(
    two_authorities: TwoAuthorities, tmp_path: Path
) -> None:
    """Told at the start, by the authority's name."""
    password = {"username": "ana", "password_file": tmp_path / "none"}
    with pytest.raises(SettingsError, match=r"tsa\.example"):
        two_authorities.client({"url": "https://tsa.example/", **password})


def test_authority_of_openssl_is_taken(tmp_path: Path) -> None:
    """ECDSA and ESSCertIDv2, by tokens that neither we nor pyHanko made."""
    now = SystemClock().now()
    ca, key = OutsideCa(now), ec_key()
    certificate = ca.certify(
        spki_of(key),
        "20267565393",
        subject=named("TSA de OpenSSL"),
        usage=usage("digital_signature"),
        purposes=[ExtendedKeyUsageOID.TIME_STAMPING],
        purposes_critical=True,
    )
    question = TimestampQuestion(IMPRINT, SHA256, nonce=7)
    files = {
        "tsa.pem": certificate.public_bytes(Encoding.PEM),
        "tsa.key": private_pem(key),
        "ca.pem": ca.issuing.public_bytes(Encoding.PEM),
        "serial": b"01",
        "asked.tsq": _encoded(question, None),
        "tsa.cnf": _OPENSSL.format(folder=tmp_path).encode(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    openssl(
        *("-reply", "-config", tmp_path / "tsa.cnf"),
        *("-queryfile", tmp_path / "asked.tsq", "-out", tmp_path / "answer.tsr"),
    )
    answer = (tmp_path / "answer.tsr").read_bytes()

    token = checked_token(answer, question, None, [der(ca.root)], now)

    assert imprint_of(token) == IMPRINT
    with pytest.raises(BadTimestampError, match="trusted"):
        checked_token(answer, question, None, [OUTSIDE.root], now)


_OPENSSL = """\
[tsa]
default_tsa = one
[one]
serial = {folder}/serial
signer_cert = {folder}/tsa.pem
signer_key = {folder}/tsa.key
certs = {folder}/ca.pem
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
ess_cert_id_alg = sha256
"""


def test_no_answer_whatever_fails_otherwise(two_authorities: TwoAuthorities) -> None:
    """Octets of a good one changed or cut: it is good, or refused in words."""
    question = TimestampQuestion(IMPRINT, SHA256, nonce=7)
    good = two_authorities.first.answer(_encoded(question, None))
    assert checked_token(good, question, None, two_authorities.roots, NOON) in good

    refused = 0
    for at in range(0, len(good), 5):
        flipped = good[:at] + bytes([good[at] ^ 0x21]) + good[at + 1 :]
        for answer in (flipped, good[:at]):
            try:
                checked_token(answer, question, None, two_authorities.roots, NOON)
            except BadTimestampError:
                refused += 1

    assert refused > len(good) / 4
