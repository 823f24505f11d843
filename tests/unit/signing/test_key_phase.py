"""Signers who may no longer sign when their documents are to be signed.

Between consent and signature a person may be disabled, and a certificate may end.
"""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.people.identity import Person
from appliance.domain.signing.activation import ActivationDocument
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import PersonState, VouchedBy
from tests.support.documents.software_signer import software_signer
from tests.support.factories.fakes import NOON, PDF, FixedDocumentKeys, MovingClock
from tests.support.factories.statements import AS_RECORDED
from tests.support.installation.record import new_credential
from worker.pades.byte_range_digest import FileDigests
from worker.signing.completion import DocumentInWork, Ended
from worker.signing.document_signer import DocumentSigner
from worker.signing.stage_timings import StageTimings

PERSON = PersonId("p")
none = cast("Any", None)


def in_work(seq: int) -> DocumentInWork:
    """A document that waits for the key."""
    document = ActivationDocument(seq, RequestId(seq), "ab", SignParameters(), "cd")
    view = cast("Any", SimpleNamespace(sha256="ef"))
    return DocumentInWork(document, view, FileDigests(PDF))


def signer_of(*, documents: object = None, completion: object = None) -> DocumentSigner:
    """Neither record nor HSM is there: nothing may be asked of them."""
    return DocumentSigner(
        claims=none,
        documents=cast("Any", documents),
        completion=cast("Any", completion),
        levels=none,
        session=none,
        keys=none,
        fonts=none,
        clock=MovingClock(NOON),
        installation="x",
        served=none,
        inspections=none,
        statements=AS_RECORDED,
        journal=cast("Any", SimpleNamespace(attempted=lambda _claim: {})),
        refuses_tests=True,
    )


async def key_phase(
    signer: DocumentSigner,
    *,
    state: PersonState = PersonState.ACTIVE,
    has_key: bool = True,
    **changes: Any,
) -> tuple[Ended, list[DocumentInWork]]:
    """What ends of two documents, the first having failed before, and what is signed.

    Args:
        signer: of the worker.
        state: of the person.
        has_key: False once the claim's time is over.
        **changes: to the credential.
    """
    work = SimpleNamespace(
        claim=none,
        person=Person(PERSON, "20055361682", "Ana", state, "es"),
        credential=new_credential(PERSON, **changes),
    )
    ended: Ended = {0: ApplianceError(ErrorCode.PDF_MALFORMED)}
    made = await signer._use_key(
        cast("Any", work),
        [in_work(0), in_work(1)],
        cast("Any", work.credential) if has_key else None,
        ended,
        StageTimings(),
    )
    return ended, made


@pytest.mark.parametrize(
    "changes",
    [
        {"state": PersonState.DISABLED},
        {"not_after": NOON - timedelta(seconds=1)},
        {"not_before": NOON + timedelta(seconds=1)},
        {"vouched_by": VouchedBy.TEST},
    ],
    ids=["disabled", "ended", "not begun", "made up for tests"],
)
async def test_who_may_not_sign_now_uses_no_key(changes: dict[str, Any]) -> None:
    """Each document has its reason; one that failed before keeps its own."""
    ended, made = await key_phase(signer_of(), **changes)

    assert made == []
    assert {seq: exc.code for seq, exc in ended.items()} == {
        0: ErrorCode.PDF_MALFORMED,
        1: ErrorCode.CERTIFICATE_NOT_USABLE,
    }


async def test_key_that_is_gone_ends_all_documents() -> None:
    """The claim's time was over before the key was used."""
    ended, made = await key_phase(signer_of(), has_key=False)

    assert made == []
    assert ended[1].code is ErrorCode.ACTIVATION_EXPIRED


async def test_documents_that_are_not_what_was_consented_to_use_no_key(
    tmp_path: Path,
) -> None:
    """None is left, so there is nothing to put on the record either."""
    profile = SimpleNamespace(digest=DigestAlgorithm.SHA256)
    signer = signer_of(
        documents=LocalBlobStore(tmp_path, FixedDocumentKeys()),
        completion=SimpleNamespace(profile_of=lambda _: profile),
    )

    ended, made = await key_phase(signer, certificate=software_signer().certificate)

    assert made == []
    assert {exc.code for exc in ended.values()} == {ErrorCode.SIGNING_FAILED}
