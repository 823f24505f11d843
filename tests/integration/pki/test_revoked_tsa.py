"""What becomes of timestamps when their TSA's certificate is revoked.

Source: RFC 3161, 4; docs/timestamps.md.
"""

import datetime as dt
import hashlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.domain.documents.verification import Answer, SignatureReport
from appliance.domain.ids import TaskId
from appliance.domain.pki.certificates import (
    CertificateRecord,
    KeptStatus,
    StatusKind,
    serial_text,
)
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.domain.vocab import CertificateKind, RevocationReason
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.revocation_store import RevocationStore
from appliance.pki.tsa.tsa_certificates import TsaCertificates
from appliance.pki.validation.external_status_store import ExternalStatusStore
from tests.integration.engine.test_long_term_engine import b_lt, b_t, now, stamped
from tests.support.documents.pdf_samples import make_pdf
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.factories.fakes import MovingClock
from tests.support.installation.record import CoreFixture
from tests.support.pki.long_term_pki import LongTermPki, SoftwareTsa
from tests.support.services.sandbox_server import running_sandbox
from worker.pades.appearance.fonts import StampFonts, load_fonts
from worker.pades.dss import Validated
from worker.sandbox.verify.verify import verify

DAY = dt.timedelta(days=1)
SPARING = ("superseded", "cessationOfOperation", "affiliationChanged")
VOIDING = ("keyCompromise", "certificateHold", "unspecified", "")


@pytest.fixture(scope="module")
def fonts() -> StampFonts:
    """Every font, prepared."""
    return load_fonts(Path("/usr/share/fonts/truetype/liberation2"))


@dataclass
class Scene:
    """A signature with a timestamp of a month ago, and who made them."""

    pki: LongTermPki
    signer: SoftwareSigner
    tsa: SoftwareTsa
    pdf: bytes
    contents: bytes
    at: dt.datetime

    def report(self, pdf: bytes, *revoked: RevokedTsa) -> SignatureReport:
        """What is said of its signature."""
        root = self.pki.chain[-1]
        (told,) = verify(pdf, [root], [root], revoked).signatures
        return told

    def revoked(self, after: dt.timedelta, reason: str) -> RevokedTsa:
        """Its TSA's certificate is, so long after it stamped."""
        sha256 = hashlib.sha256(self.tsa.certificate).hexdigest()
        return RevokedTsa(sha256, self.at + after, reason)

    def complete(self, pdf: bytes, *tsas: SoftwareTsa) -> bytes:
        """With data of the signer's certificate and of TSAs', as of now."""
        data = self.pki.evidence(self.signer.certificate)
        for each in tsas:
            data = data.with_more(self.pki.evidence(each.certificate))
        return b_lt(pdf, Validated(self.contents, data))


@pytest.fixture
def scene(fonts: StampFonts) -> Scene:
    """B-T, its certificates all good."""
    clock = MovingClock((now() - 30 * DAY).replace(microsecond=0))
    pki = LongTermPki(clock)
    signer, tsa = pki.signer(), pki.tsa()
    pdf, contents = b_t(make_pdf(), signer, tsa, fonts)
    return Scene(pki, signer, tsa, pdf, contents, clock.now())


@pytest.mark.parametrize("reason", SPARING)
def test_closed_tsa_leaves_what_it_stamped_before(scene: Scene, reason: str) -> None:
    """And nothing that says a time from then on."""
    later = scene.report(scene.pdf, scene.revoked(DAY, reason))
    earlier = scene.report(scene.pdf, scene.revoked(-DAY, reason))

    assert (later.level, later.void) == ("B-T", "")
    assert later.timestamp == scene.at.isoformat()
    assert (earlier.level, earlier.timestamp) == ("B-B", None)
    assert earlier.void.endswith(f"({reason})")


@pytest.mark.parametrize("reason", VOIDING)
def test_lost_key_voids_what_nothing_else_proves(scene: Scene, reason: str) -> None:
    """Whoever has the key can date what they like: the time before is no help."""
    told = scene.report(scene.pdf, scene.revoked(DAY, reason))

    assert (told.level, told.timestamp, told.tsa) == ("B-B", None, "")
    assert "its certificate was revoked at" in told.void
    assert (reason or "no reason told") in told.void
    # The signer's certificate is good still: the signature is, without the proof.
    assert told.valid


def test_void_timestamp_saves_no_certificate_that_has_ended(fonts: StampFonts) -> None:
    """What rested on the lost key alone is not valid, and the words say why."""
    clock = MovingClock((now() - 100 * DAY).replace(microsecond=0))
    pki = LongTermPki(clock)
    signer, tsa = pki.signer(days=30), pki.tsa()
    pdf, contents = b_t(make_pdf(), signer, tsa, fonts)
    scene = Scene(pki, signer, tsa, pdf, contents, clock.now())
    pdf = scene.complete(pdf, tsa)

    assert scene.report(pdf).valid
    told = scene.report(pdf, scene.revoked(50 * DAY, "keyCompromise"))

    assert not told.valid
    assert told.trust.answer is Answer.UNCHECKED
    assert "(keyCompromise)" in told.void


def test_what_another_tsa_proved_in_time_stays(scene: Scene) -> None:
    """A later timestamp from before the loss stands for it; one from after does not."""
    clock = scene.pki.clock
    clock.forward(86_400)
    other = scene.pki.tsa()
    pdf, contents = stamped(scene.complete(scene.pdf, scene.tsa), other)
    data = scene.pki.evidence(other.certificate)
    pdf = b_lt(pdf, Validated(contents, data))

    in_time = scene.report(pdf, scene.revoked(2 * DAY, "keyCompromise"))
    too_late = scene.report(pdf, scene.revoked(DAY / 2, "keyCompromise"))

    assert (in_time.level, in_time.void) == ("B-LTA", "")
    assert in_time.timestamp == scene.at.isoformat()
    assert too_late.timestamp == clock.now().isoformat()
    assert "(keyCompromise)" in too_late.void
    assert too_late.valid


def test_list_in_the_file_tells_it_as_well(scene: Scene) -> None:
    """Data that came into the file after the revocation is not for nothing."""
    clock = scene.pki.clock
    clock.forward(86_400)
    scene.pki.revoke(scene.tsa.certificate)
    pdf = scene.complete(scene.pdf, scene.tsa)

    told = scene.report(pdf)

    assert (told.level, told.timestamp) == ("B-B", None)
    assert "(no reason told)" in told.void


async def test_record_knows_of_own_and_outside_ones(core: CoreFixture) -> None:
    """What was asked for here counts at once; what was found outside, as told."""
    pki = LongTermPki(core.clock)
    tsa, good = pki.tsa(), pki.tsa()
    certificates = TsaCertificates(core.store, core.clock)
    serials = []
    async with core.store.write() as transaction:
        for each in (tsa, good):
            number = pki.serial(each.certificate)
            serials.append(serial_text(number))
            await CertificateStore(transaction).add(
                CertificateRecord(
                    serials[-1], CertificateKind.TSA, "", None, each.certificate,
                    core.now, core.now + DAY,
                )
            )  # fmt: skip
        await RevocationStore(transaction).begin_own(
            serials[:1], core.now, RevocationReason.KEY_COMPROMISE, TaskId("t")
        )
        for subject, at, reason in (
            ("a" * 64, core.now - DAY, ""),
            ("b" * 64, None, ""),
        ):
            await ExternalStatusStore(transaction).put(
                KeptStatus(
                    StatusKind.REVOKED, subject, b"", core.now, core.now, at, reason
                )
            )

    known = await certificates.revoked()

    sha256 = hashlib.sha256(tsa.certificate).hexdigest()
    assert known == [
        RevokedTsa(sha256, core.now, "keyCompromise"),
        RevokedTsa("a" * 64, core.now - DAY, ""),
        RevokedTsa("b" * 64, core.now, ""),
    ]


async def test_sandbox_is_told(scene: Scene) -> None:
    """Through the socket, as `rubrica verify` has it."""
    root, revoked = scene.pki.chain[-1], scene.revoked(DAY, "keyCompromise")
    with running_sandbox() as server:
        report = await server.client.verify(scene.pdf, [root], [root], [revoked])

    assert report.signatures[0].valid
    assert report.signatures[0].void.endswith("(keyCompromise)")
