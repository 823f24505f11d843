"""Power: code in chores delivers what no server outside ever said (K7).

The signing worker puts documents together by what chores deliver. Whatever that is, it
becomes part of none that an honest server did not give to this very question.
"""

from collections.abc import AsyncIterator

import pytest
from asn1crypto import tsp
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    StreamObject,
    pdf_name,
)
from structlog.testing import capture_logs

from appliance.database.tables import outside_status
from appliance.domain.errors import ApplianceError
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.timestamps import TimestampQuestion
from appliance.domain.vocab import SignatureLevel
from tests.integration.signing.level_scene import L
from tests.integration.signing.outside_scene import OutsideScene, outside_scene
from tests.support.documents.pdf_samples import make_pdf
from tests.support.installation.record import CoreFixture
from tests.support.pki.outside_ca import OutsideCa
from tests.support.services.fake_tsa import ExternalTsa
from worker.pades.addition_check import check_additions
from worker.pades.appearance.fonts import StampFonts
from worker.pades.pdf.revision import Revision, open_revision
from worker.pades.self_check import SignatureCheckError


@pytest.fixture
async def scene(
    sqlite_core: CoreFixture, fonts: StampFonts
) -> AsyncIterator[OutsideScene]:
    """Its servers are good; code in chores is not."""
    async with outside_scene(sqlite_core, fonts) as made:
        yield made


def token_of(
    authority: ExternalTsa,
    scene: OutsideScene,
    imprint: bytes,
    nonce: int | None,
    late_s: int = 0,
) -> bytes:
    """A token of an authority, over anything."""
    scene.inside.clock.forward(late_s)
    stamper = authority.stamper(scene.inside.clock.now())
    scene.inside.clock.forward(-late_s)
    request = tsp.TimeStampReq(
        {
            "version": "v1",
            "message_imprint": {
                "hash_algorithm": {"algorithm": "sha256"},
                "hashed_message": imprint,
            },
            "cert_req": True,
            **({} if nonce is None else {"nonce": nonce}),
        }
    )
    return bytes(stamper.request_tsa_response(request)["time_stamp_token"].dump())


@pytest.mark.parametrize(
    "forged",
    ["garbage", "other bytes", "old", "no nonce", "stranger", "future", "cut", "ours"],
)
async def test_token_is_of_this_question_and_of_a_trusted_authority(
    scene: OutsideScene, forged: str
) -> None:
    """Nothing is published with another one; it is asked for again."""
    request = await scene.publish(L.B_T)
    assert await scene.upkeep().run() == 0
    (wanted,) = await scene.materials()
    imprint = bytes.fromhex(wanted.subject["imprint"])
    honest = scene.tsa.authority
    stranger = ExternalTsa(honest.now, OutsideCa(honest.now, "AC de nadie"))
    good = token_of(honest, scene, imprint, wanted.nonce)
    token = {
        "garbage": b"0\x03\x02\x01\x01",
        "other bytes": token_of(honest, scene, bytes(32), wanted.nonce),
        "old": token_of(honest, scene, imprint, wanted.nonce ^ 1),
        "no nonce": token_of(honest, scene, imprint, None),
        "stranger": token_of(stranger, scene, imprint, wanted.nonce),
        "future": token_of(honest, scene, imprint, wanted.nonce, late_s=3600),
        "cut": good[:-1],
        "ours": await scene.inside.tsa.stamp(imprint, DigestAlgorithm.SHA256),
    }[forged]
    await scene.deliver(wanted.key, token)
    scene.inside.clock.forward(700)

    with capture_logs() as logs:
        assert await scene.upkeep().run() == 0

    assert "material.refused" in {line["event"] for line in logs}
    view, _ = await scene.inside.newest(request)
    assert (view.version, view.level) == (1, L.B_B)

    scene.inside.clock.forward(60)
    scene.core.clock.at = scene.inside.clock.now()
    assert await scene.kept() == 1
    view, _ = await scene.inside.newest(request)
    assert (view.version, view.level) == (2, L.B_T)


async def test_good_token_is_taken_as_it_was_delivered(scene: OutsideScene) -> None:
    """So that it is the forgery that counts in the test above."""
    request = await scene.publish(L.B_T)
    assert await scene.upkeep().run() == 0
    (wanted,) = await scene.materials()
    imprint = bytes.fromhex(wanted.subject["imprint"])
    question = TimestampQuestion(imprint, DigestAlgorithm.SHA256, nonce=wanted.nonce)
    assert question.nonce is not None
    good = token_of(scene.tsa.authority, scene, imprint, wanted.nonce)
    await scene.deliver(wanted.key, good)
    scene.inside.clock.forward(700)

    assert await scene.upkeep().run() == 1
    view, _ = await scene.inside.newest(request)
    assert (view.version, view.level) == (2, L.B_T)


@pytest.mark.parametrize("level", [L.B_LT, L.B_LTA])
async def test_status_is_of_the_certificate_and_its_ca(
    scene: OutsideScene, level: SignatureLevel
) -> None:
    """Answers and lists that chores keep are checked again before they are used."""
    request = await scene.publish(level)
    # A first round asks for the timestamp; the status is kept with it.
    assert await scene.upkeep().run() == 0
    assert await scene.fetch() == 1
    async with scene.core.store.write() as transaction:
        kept = await transaction.connection.execute(outside_status.select())
        subjects = {row.kind for row in kept}
        changed = outside_status.update().values(der=b"forged")
        await transaction.connection.execute(changed)
    assert subjects

    assert await scene.upkeep().run() == 0
    view, pdf = await scene.inside.newest(request)
    assert (view.version, b"forged" in pdf) == (1, False)
    # It is asked for again, and the document comes as it is to be.
    async with scene.core.store.write() as transaction:
        await transaction.connection.execute(outside_status.delete())
    assert await scene.kept() >= 0
    view, _ = await scene.inside.newest(request)
    assert view.level == level


async def test_nothing_but_proofs_is_added(scene: OutsideScene) -> None:
    """A revision that changes a page is found, whatever stands beside it."""
    request = await scene.publish(L.B_LTA)
    _, before = await scene.inside.newest(request)
    await scene.kept()
    _, after = await scene.inside.newest(request)
    check_additions(after, len(before))

    for base in (before, after):
        for change in (_another_page, _another_title, _another_action):
            with open_revision(base) as revision:
                change(revision)
                forged = base + revision.write_tail(base).getvalue()
            with pytest.raises(SignatureCheckError):
                check_additions(forged, len(base))
            with pytest.raises(SignatureCheckError):
                check_additions(forged, len(before))
    with pytest.raises(SignatureCheckError):
        check_additions(after + b"\n", len(after))
    with pytest.raises(ApplianceError):
        check_additions(make_pdf() + after, len(before))


def _another_page(revision: Revision) -> None:
    page = revision.root["/Pages"]["/Kids"][0]
    page[pdf_name("/MediaBox")] = ArrayObject(map(FloatObject, (0, 0, 10, 10)))
    revision.update_container(page)


def _another_title(revision: Revision) -> None:
    stream = StreamObject(stream_data=b"0 0 m")
    page = revision.root["/Pages"]["/Kids"][0]
    page[pdf_name("/Contents")] = revision.add_object(stream)
    revision.update_container(page)


def _another_action(revision: Revision) -> None:
    root = revision.root
    root[pdf_name("/OpenAction")] = DictionaryObject(
        {pdf_name("/S"): pdf_name("/JavaScript")}
    )
    revision.update_root()
