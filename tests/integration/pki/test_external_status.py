"""What outside CAs say of certificates, good and bad, over real HTTP.

Source: reliability F24; RFC 6960; RFC 5280, 6.3.
"""

import asyncio
import datetime as dt
import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from cryptography import x509
from structlog.testing import capture_logs

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.pki.certificates import CertificateRecord, StatusKind, serial_text
from appliance.domain.requests.levels import ValidationData
from appliance.domain.requests.request import SignCommand, Signer
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    CredentialState,
    EventKind,
    RevocationReason,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.validation.external_status_store import (
    ExternalStatusStore,
    status_subject,
)
from appliance.settings import RevocationSettings, SigningSettings
from appliance.system.background import Shielded
from tests.support.factories.signing_host import SigningHost, signing_front
from tests.support.installation.record import CoreFixture
from tests.support.pki.outside_ca import OutsideCa, der, ec_key, spki_of
from tests.support.processes.played_time import in_played_time
from tests.support.services.fake_ca import FakeCa, Says
from worker.circuit_breaker import CircuitBreaker
from worker.network.address_guard import AddressGuard, RefusedAddressError
from worker.network.guarded_http import GuardedHttp
from worker.network.revocation_status import ExternalStatus

CUIL = "20267565393"
LOOPBACK = ("127.0.0.0/8",)
BAD_ANSWERS = [
    one
    for one in Says
    if one not in {Says.GOOD, Says.NO_NONCE, Says.NO_NEXT_UPDATE, Says.SLOW}
]
BAD_LISTS = [
    Says.OFF, Says.GARBAGE, Says.HTTP_ERROR, Says.REDIRECT, Says.HUGE,
    Says.TRY_LATER, Says.STALE, Says.FUTURE, Says.STRANGER,
]  # fmt: skip


@dataclass
class ExternalCertificate:
    """A CA outside, a certificate of it, and who asks."""

    core: CoreFixture
    site: FakeCa
    leaf: x509.Certificate
    signer: Signer | None = None

    async def of(
        self, since: dt.datetime | None = None, **options: Any
    ) -> ValidationData:
        """Ask about the certificate, as a worker that has just started."""
        told = {"allowed_networks": LOOPBACK, "timeout_s": 2, **options}
        settings = RevocationSettings.model_validate(told)
        async with GuardedHttp(settings) as http:
            asks = ExternalStatus(settings, http, self.core.store, self.core.clock)
            return await asks.of(der(self.leaf), der(self.site.ca.issuing), since)

    async def refused(self, **options: Any) -> ErrorCode:
        """Why nothing came of it."""
        with pytest.raises(ApplianceError) as caught:
            await self.of(**options)
        return caught.value.code

    async def is_known_revoked(self) -> bool:
        """Whether the record tells workers not to use its key."""
        subject = status_subject(der(self.leaf))
        async with self.core.store.read() as transaction:
            kept = await ExternalStatusStore(transaction).get(
                StatusKind.REVOKED, subject
            )
            assert await CredentialStore(transaction).found_revoked(
                [der(self.leaf)]
            ) is (kept is not None)
        return kept is not None

    async def certified(self) -> CredentialId:
        """A person's credential signs with it from now on."""
        self.signer = await self.core.add_signer(credential=False)
        return await self.core.add_credential(
            self.signer.person,
            certificate=der(self.leaf),
            not_after=self.leaf.not_valid_after_utc,
        )

    async def state(self, credential: CredentialId) -> CredentialState:
        """How that stands."""
        async with self.core.store.read() as transaction:
            held = await CredentialStore(transaction).get(credential)
        assert held is not None
        return held.state

    async def can_sign(self) -> bool:
        """Whether that person may, as is looked at before any password."""
        signer, limits = self.signer, SigningSettings()
        assert signer is not None
        passwords = SigningPasswords(KeyRing.of(b"p" * 32), HashSlots(1))
        host = SigningHost(self.core.settings.data_dir)
        signing = signing_front(self.core, host, passwords, limits, Shielded())
        request = await self.core.add_request(signer.person)
        with pytest.raises(ApplianceError) as caught:
            await signing.sign(
                SignCommand(request, GivenParameters(), b"-" * 8), signer
            )
        # No host is alive, which is told of whoever may sign.
        assert caught.value.code in {
            ErrorCode.CERTIFICATE_NOT_USABLE,
            ErrorCode.HSM_UNAVAILABLE,
        }
        return caught.value.code is ErrorCode.HSM_UNAVAILABLE

    def counts(self) -> tuple[int, int]:
        """Questions and lists so far."""
        return self.site.asked["/ocsp"], self.site.asked["/ca.crl"]


@pytest.fixture
def fake_ca(sqlite_core: CoreFixture) -> Iterator[FakeCa]:
    """Of a CA that tells of revocations by both."""
    with FakeCa(sqlite_core.clock) as opened:
        opened.ca = OutsideCa(sqlite_core.now, site=opened.url)
        yield opened


@pytest.fixture
def external_certificate(
    sqlite_core: CoreFixture, fake_ca: FakeCa
) -> ExternalCertificate:
    """Everything good."""
    return ExternalCertificate(
        sqlite_core, fake_ca, fake_ca.ca.certify(spki_of(ec_key()), CUIL)
    )


async def test_answer_is_kept_for_every_worker_up_to_its_next_update(
    external_certificate: ExternalCertificate,
) -> None:
    """Asked once, then by what is kept, also with the CA away; then anew."""
    first = await external_certificate.of()
    assert (len(first.ocsps), len(first.crls), len(first.certificates)) == (1, 0, 1)
    external_certificate.site.ocsp = external_certificate.site.crl = Says.OFF
    assert await external_certificate.of() == first
    assert external_certificate.counts() == (1, 0)

    external_certificate.core.clock.forward(3601)
    assert await external_certificate.refused() is ErrorCode.REVOCATION_UNAVAILABLE
    external_certificate.site.ocsp = Says.GOOD
    assert (await external_certificate.of()).ocsps != first.ocsps


async def test_younger_data_is_asked_for_and_older_does(
    external_certificate: ExternalCertificate,
) -> None:
    """What is kept serves where nothing younger can be had."""
    first = await external_certificate.of()
    external_certificate.core.clock.forward(60)
    now = external_certificate.core.now
    external_certificate.site.ocsp = external_certificate.site.crl = Says.HTTP_ERROR
    assert await external_certificate.of(since=now) == first
    external_certificate.site.ocsp = Says.GOOD
    assert await external_certificate.of(since=now) != first


async def test_kept_list_that_does_not_hold_is_none(
    external_certificate: ExternalCertificate,
) -> None:
    """As when the clock was put back: another is fetched."""
    external_certificate.site.ocsp = Says.OFF
    first = await external_certificate.of()
    external_certificate.core.clock.forward(-600)

    assert (await external_certificate.of()).crls != first.crls


async def test_address_that_is_none_is_passed_over(
    external_certificate: ExternalCertificate,
) -> None:
    """It cannot even be named in the log."""
    leaf = external_certificate.site.ca.certify(
        spki_of(ec_key()), CUIL, crl="http://[ca/a.crl"
    )
    external_certificate.site.ocsp = Says.OFF

    assert (
        await replace(external_certificate, leaf=leaf).refused()
        is ErrorCode.REVOCATION_UNAVAILABLE
    )


@pytest.mark.parametrize("says", BAD_ANSWERS)
async def test_bad_answer_is_none_and_the_list_tells(
    external_certificate: ExternalCertificate, says: Says
) -> None:
    """Whatever is not right with OCSP, the CRL is asked; both bad: a wait."""
    external_certificate.site.ocsp = says
    found = await external_certificate.of()
    assert (len(found.ocsps), len(found.crls)) == (0, 1)
    assert external_certificate.counts() == (1, 1)


@pytest.mark.parametrize("says", BAD_LISTS)
async def test_bad_list_is_none(
    external_certificate: ExternalCertificate, says: Says
) -> None:
    """Nothing of it is believed or kept."""
    external_certificate.site.ocsp, external_certificate.site.crl = Says.OFF, says
    assert await external_certificate.refused() is ErrorCode.REVOCATION_UNAVAILABLE
    external_certificate.site.crl = Says.GOOD
    assert len((await external_certificate.of()).crls) == 1


async def test_slow_one_is_given_up(external_certificate: ExternalCertificate) -> None:
    """Each after its time, and what failed is asked last the next time."""
    external_certificate.site.ocsp = Says.SLOW
    with capture_logs() as logs:
        found = await external_certificate.of(timeout_s=0.3)
    assert len(found.crls) == 1
    (line,) = [each for each in logs if each["event"] == "revocation.failed"]
    assert line["host"] == external_certificate.site.url.removeprefix("http://")


@in_played_time
async def test_one_that_hangs_is_left_alone_for_as_long_as_it_took() -> None:
    """What can do without is not held up each time; a quick no is asked again."""
    quiet = CircuitBreaker()

    async def ask() -> None:
        with quiet.asking("slow"):
            await asyncio.sleep(0.5)
            raise TimeoutError

    with pytest.raises(TimeoutError):
        await ask()
    assert not quiet.is_over("slow")
    assert quiet.is_over("other")
    await asyncio.sleep(0.4)
    assert not quiet.is_over("slow")
    await asyncio.sleep(0.1)
    assert quiet.is_over("slow")
    with quiet.asking("slow"):
        pass
    assert quiet.is_over("slow")


@pytest.mark.parametrize("says", [Says.NO_NONCE, Says.NO_NEXT_UPDATE])
async def test_answer_may_leave_these_out(
    external_certificate: ExternalCertificate, says: Says
) -> None:
    """Without nextUpdate it serves once and is not kept."""
    external_certificate.site.ocsp = says
    await external_certificate.of()
    await external_certificate.of()
    assert external_certificate.counts() == (
        (2, 0) if says is Says.NO_NEXT_UPDATE else (1, 0)
    )


async def test_responder_that_needs_proof_is_proven(
    external_certificate: ExternalCertificate,
) -> None:
    """A responder without id-pkix-ocsp-nocheck stands in its CA's list, or not."""
    external_certificate.site.no_check = False
    found = await external_certificate.of()
    assert (len(found.ocsps), len(found.crls)) == (1, 1)
    external_certificate.core.clock.forward(3601)
    external_certificate.site.crl = Says.OFF
    assert await external_certificate.refused() is ErrorCode.REVOCATION_UNAVAILABLE


@pytest.mark.parametrize("by", ["ocsp", "crl"])
async def test_revoked_stops_and_is_remembered(
    external_certificate: ExternalCertificate, by: str
) -> None:
    """Whoever tells it; and a hold that ends is forgotten."""
    if by == "crl":
        external_certificate.site.ocsp = Says.OFF
    external_certificate.site.revoked.add(external_certificate.leaf.serial_number)
    assert await external_certificate.refused() is ErrorCode.CERTIFICATE_NOT_USABLE
    assert await external_certificate.is_known_revoked()
    # By what is kept, with nobody there.
    external_certificate.site.ocsp = external_certificate.site.crl = Says.OFF
    assert await external_certificate.refused() is ErrorCode.CERTIFICATE_NOT_USABLE

    external_certificate.core.clock.forward(3601)
    external_certificate.site.revoked.clear()
    external_certificate.site.ocsp = external_certificate.site.crl = Says.GOOD
    await external_certificate.of()
    assert not await external_certificate.is_known_revoked()


@pytest.mark.parametrize("by", ["ocsp", "crl"])
async def test_credential_ends_with_its_certificate(
    external_certificate: ExternalCertificate, by: str
) -> None:
    """Once, in the record and the audit; the next call needs no password to fail."""
    credential = await external_certificate.certified()
    assert await external_certificate.can_sign()
    if by == "crl":
        external_certificate.site.ocsp = Says.OFF
    external_certificate.site.revoked.add(external_certificate.leaf.serial_number)
    external_certificate.site.reason = x509.ReasonFlags.affiliation_changed

    for _ in range(2):
        assert await external_certificate.refused() is ErrorCode.CERTIFICATE_NOT_USABLE

    assert await external_certificate.state(credential) is CredentialState.REVOKED
    assert not await external_certificate.can_sign()
    (event,) = [
        row.event
        for row in await external_certificate.core.audit()
        if row.event.event is EventKind.REVOCATION_FOUND
    ]
    assert event.detail["credential"] == credential
    assert event.detail["serial"] == serial_text(
        external_certificate.leaf.serial_number
    )
    assert event.detail["reason"] == "affiliationChanged"
    assert event.detail["before"] == {"state": "active"}
    assert event.detail["after"] == {"state": "revoked"}
    async with external_certificate.core.store.read() as transaction:
        (kept,) = await ExternalStatusStore(transaction).revoked(9)
    assert (kept.revoked_at, kept.reason) == (
        external_certificate.core.now.replace(microsecond=0),
        "affiliationChanged",
    )


async def test_own_certificate_of_the_key_is_revoked_with_it(
    external_certificate: ExternalCertificate,
) -> None:
    """A worker is to publish that, with the reason that the other CA told."""
    credential = await external_certificate.certified()
    now = external_certificate.core.now
    own = external_certificate.site.ca.certify(spki_of(ec_key()), CUIL)
    async with external_certificate.core.store.write() as transaction:
        await CertificateStore(transaction).add(
            CertificateRecord(
                serial_text(own.serial_number),
                CertificateKind.SIGNER,
                "",
                credential,
                der(own),
                now,
                now + dt.timedelta(days=9),
            )
        )
    external_certificate.site.revoked.add(external_certificate.leaf.serial_number)
    external_certificate.site.reason = x509.ReasonFlags.key_compromise

    await external_certificate.refused()

    assert await external_certificate.state(credential) is CredentialState.REVOKING
    async with external_certificate.core.store.read() as transaction:
        (held,) = await CertificateStore(transaction).of_credential(credential)
    assert held.state is CertificateState.REVOKING
    assert held.reason is RevocationReason.KEY_COMPROMISE
    names = await external_certificate.core.audited()
    assert names[-2:] == ["revocation.found", "revocation.asked"]


async def test_hold_ends_no_credential(
    external_certificate: ExternalCertificate,
) -> None:
    """Nothing is signed while it lasts; when it ends, all is as before."""
    credential = await external_certificate.certified()
    external_certificate.site.revoked.add(external_certificate.leaf.serial_number)
    external_certificate.site.reason = x509.ReasonFlags.certificate_hold
    assert await external_certificate.refused() is ErrorCode.CERTIFICATE_NOT_USABLE

    assert await external_certificate.state(credential) is CredentialState.ACTIVE
    assert not await external_certificate.can_sign()
    external_certificate.core.clock.forward(3601)
    external_certificate.site.revoked.clear()
    await external_certificate.of()
    assert await external_certificate.can_sign()
    assert "revocation.found" not in await external_certificate.core.audited()


async def test_certificate_cannot_send_workers_to_private_addresses(
    external_certificate: ExternalCertificate,
) -> None:
    """Loopback is refused unless the settings allow it: nothing is asked there."""
    with capture_logs() as logs:
        code = await external_certificate.refused(allowed_networks=())
    assert code is ErrorCode.REVOCATION_UNAVAILABLE
    assert external_certificate.counts() == (0, 0)
    assert {each["reason"] for each in logs} == {"127.0.0.1 is not public"}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254",
        "100.64.0.1", "0.1.2.3", "224.0.0.1", "255.255.255.255", "::1", "fe80::1",
        "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
        "2002:7f00:1::1", "ff02::1", "::",
    ],
)  # fmt: skip
async def test_addresses_that_are_not_public(host: str) -> None:
    """Each is refused; a network that is allowed is let through."""
    with pytest.raises(RefusedAddressError):
        AddressGuard([]).check(host)
    AddressGuard([ipaddress.ip_network("127.0.0.0/8")]).check("127.0.0.1")
    AddressGuard([]).check("1.1.1.1")
    AddressGuard([]).check("2606:4700:4700::1111")


@pytest.mark.parametrize("name", ["localhost", "127.1", "2130706433", "0x7f000001"])
async def test_names_are_resolved_before_they_are_believed(
    external_certificate: ExternalCertificate, name: str
) -> None:
    """A name of a private address is one, however it is written."""
    port = external_certificate.site.url.rpartition(":")[2]
    external_certificate.leaf = external_certificate.site.ca.certify(
        spki_of(ec_key()),
        CUIL,
        ocsp=f"http://{name}:{port}/ocsp",
        crl=f"http://u@{name}:{port}/ca.crl",
    )
    code = await external_certificate.refused(allowed_networks=())
    assert code is ErrorCode.REVOCATION_UNAVAILABLE
    assert external_certificate.counts() == (0, 0)


async def test_what_is_over_is_forgotten(
    external_certificate: ExternalCertificate,
) -> None:
    """Answers go; what was found revoked stays."""
    external_certificate.site.revoked.add(external_certificate.leaf.serial_number)
    await external_certificate.refused()
    async with external_certificate.core.store.write() as transaction:
        assert (
            await ExternalStatusStore(transaction).forget(
                external_certificate.core.now + dt.timedelta(hours=2)
            )
            == 1
        )
    assert await external_certificate.is_known_revoked()
