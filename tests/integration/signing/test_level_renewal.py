"""Documents kept readable for years: archive timestamps renewed in time."""

import datetime as dt
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from appliance.domain.requests.levels import ValidationData
from appliance.pki.validation.validation_material import ValidationSource
from tests.integration.signing.level_scene import (
    DAY,
    YEAR,
    L,
    P,
    a_moment_ago,
    make_scene,
    profile,
)
from tests.support.documents.long_term_validators import openssl_accepts
from tests.support.documents.pdf_samples import make_pdf, make_plan
from tests.support.documents.software_signer import make_signer
from tests.support.documents.validators import pyhanko_verdicts
from tests.support.installation.record import CoreFixture
from worker.pades import prepare
from worker.pades.appearance.fonts import StampFonts


async def test_renewal_outlives_the_signers_revocation(
    sqlite_core: CoreFixture, fonts: StampFonts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was revoked since leaves an archived document as good as it was."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago() - 2 * DAY)
    pdf, reached = await scene.sign(profile(L.B_LTA, P.PREFERRED))
    request = await scene.publish(pdf, reached)
    scene.clock.forward(int(DAY.total_seconds()))
    await scene.publish_crls()
    look = ValidationSource.of

    async def of(
        source: ValidationSource,
        certificate: bytes,
        others: Sequence[bytes] = (),
        since: dt.datetime | None = None,
    ) -> ValidationData:
        if certificate == scene.signer.certificate:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        return await look(source, certificate, others, since)

    monkeypatch.setattr(ValidationSource, "of", of)

    assert await scene.upkeep().run() == 1

    view, _ = await scene.newest(request)
    assert (view.version, view.level) == (2, L.B_LTA)


async def test_renewal_that_gains_nothing_is_put_off(
    sqlite_core: CoreFixture, fonts: StampFonts
) -> None:
    """As towards a CA's end: not a revision a day by the same certificate."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago() - 400 * DAY, 200)
    scene.tsa.renews = False
    pdf, reached = await scene.sign(profile(L.B_LTA, P.PREFERRED))
    request = await scene.publish(pdf, reached)
    scene.clock.forward(int(DAY.total_seconds()))
    await scene.publish_crls()
    assert await scene.upkeep().run() == 1
    scene.clock.forward(30 * int(DAY.total_seconds()))
    await scene.publish_crls()

    assert await scene.upkeep().run() == 0

    assert (await scene.newest(request))[0].version == 2
    scene.tsa.renews = True
    scene.clock.forward(60)
    assert await scene.upkeep().run() == 1


def signed_by_a_stranger(fonts: StampFonts) -> bytes:
    """A file with a signature under a CA that nobody here knows."""
    stranger = make_signer(KeyAlgorithm.EC_P256)
    plan = make_plan(stranger)
    original = make_pdf()
    prepared = prepare(original, plan, fonts)
    return original + stranger.complete(prepared, plan)


def with_an_impossible_certificate(pdf: bytes) -> bytes:
    """X.509 of version 8, as pyca takes no certificate."""
    return pdf.replace(b"a003020102", b"a003020107")


def without_a_signature_value(pdf: bytes) -> bytes:
    """Zeros alone in Contents."""
    return re.sub(
        rb"<[0-9a-f]{2000,}>", lambda m: b"<" + b"0" * (len(m[0]) - 2) + b">", pdf
    )


@pytest.mark.parametrize(
    "harm", [bytes, with_an_impossible_certificate, without_a_signature_value]
)
async def test_stranger_in_the_file_keeps_nobody_from_renewing_it(
    sqlite_core: CoreFixture, fonts: StampFonts, harm: Callable[[bytes], bytes]
) -> None:
    """A signature that came along, be it of an unknown CA or no signature at all."""
    brought = harm(signed_by_a_stranger(fonts))
    scene = await make_scene(sqlite_core, fonts, a_moment_ago() - 2 * DAY)
    pdf, reached = await scene.sign(profile(L.B_LTA, P.PREFERRED), brought)
    assert reached.level is L.B_LTA
    request = await scene.publish(pdf, reached)

    scene.clock.at = a_moment_ago()
    await scene.publish_crls()
    assert await scene.upkeep().run() == 1

    view, kept = await scene.newest(request)
    assert (view.version, view.level) == (2, L.B_LTA)
    assert kept.startswith(pdf)


async def test_document_is_kept_through_ten_certificates_of_the_tsa(
    sqlite_core: CoreFixture, fonts: StampFonts, tmp_path: Path
) -> None:
    """Thirty years of looks: stamped anew in time, every version the next's start."""
    start = SystemClock().now() - 30 * YEAR
    scene = await make_scene(sqlite_core, fonts, start, tsa_days=3 * 365)
    pdf, reached = await scene.sign(profile(L.B_LTA, P.PREFERRED))
    assert reached.level is L.B_LTA
    request = await scene.publish(pdf, reached)

    versions = [pdf]
    while (due := await scene.due(request)) is not None:
        if due.due >= SystemClock().now():
            break
        scene.clock.at = due.due
        await scene.publish_crls()
        assert await scene.upkeep().run() == 1
        versions.append((await scene.newest(request))[1])

    assert len(scene.tsa.certificates) >= 10
    view, newest = await scene.newest(request)
    assert (view.version, view.level) == (len(versions), L.B_LTA)
    assert all(b.startswith(a) for a, b in pairwise(versions))
    said = openssl_accepts(newest, tmp_path, scene.pki.chain, scene.clock.now())
    assert len(said) == len(versions)
    assert said[-1] == "Verification: OK"
    (verdict,) = pyhanko_verdicts(newest, [scene.pki.chain[-1]])
    assert (verdict.intact, verdict.valid) == (True, True)
    assert verdict.changes == "LTA_UPDATES"
