"""Documents of a group that cannot be completed, and those beside them.

Source: reliability F22.
"""

from types import SimpleNamespace
from typing import Any, cast

from appliance.domain.errors import ErrorCode
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.signing.activation import ActivationDocument, SignatureValue
from appliance.domain.signing_command import SignParameters
from tests.integration.signing.level_scene import (
    L,
    P,
    Scene,
    a_moment_ago,
    make_scene,
    profile,
)
from tests.support.documents.software_signer import SoftwareSigner, software_signer
from tests.support.factories.fakes import PDF
from tests.support.installation.record import CoreFixture
from worker.pades.algorithms import method_for
from worker.pades.appearance.fonts import StampFonts
from worker.pades.byte_range_digest import FileDigests
from worker.signing.completion import Completion, DocumentInWork
from worker.signing.stage_timings import StageTimings


def signed_by(signer: SoftwareSigner) -> SignatureValue:
    """A value of a signer's key."""
    attributes = b"signed attributes"
    digest = method_for(signer.certificate).hash(attributes)
    return SignatureValue(b"", 0, 0, attributes, signer.value(digest))


def in_work(seq: int, signature: SignatureValue | None) -> DocumentInWork:
    """One document of a group."""
    document = ActivationDocument(
        seq, cast("Any", seq), "", SignParameters(), "", signature=signature
    )
    view = SimpleNamespace(wishes=ProfileWishes())
    return DocumentInWork(document, cast("Any", view), FileDigests(PDF))


def completion_of(scene: Scene) -> Completion:
    """It has nothing to publish: the record is not asked."""
    return Completion(
        claims=cast("Any", None),
        documents=scene.documents,
        turns=cast("Any", None),
        levels=scene.levels,
        profile=profile(L.B_T, P.REQUIRED),
        is_internal=lambda _: True,
        materials=cast("Any", None),
    )


async def test_each_document_has_its_own_reason(
    sqlite_core: CoreFixture, fonts: StampFonts
) -> None:
    """Values that are missing or of another key are final; a TSA comes back."""
    scene = await make_scene(sqlite_core, fonts, a_moment_ago())
    scene.tsa.is_away = True
    group = [
        in_work(0, None),
        in_work(1, signed_by(software_signer("Another"))),
        in_work(2, signed_by(scene.signer)),
        in_work(3, signed_by(scene.signer)),
    ]

    ended = await completion_of(scene).complete(
        cast("Any", SimpleNamespace(credential=scene.signer)), group, StageTimings()
    )

    assert {seq: exc.code for seq, exc in ended.items()} == {
        0: ErrorCode.SIGNING_FAILED,
        1: ErrorCode.SIGNING_FAILED,
        2: ErrorCode.TSA_UNAVAILABLE,
        3: ErrorCode.TSA_UNAVAILABLE,
    }
