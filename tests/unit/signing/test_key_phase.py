"""Signers who may no longer sign when their documents are to be signed.

Between consent and signature a person may be disabled, and a certificate may end.
"""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from appliance.domain.activation import ActivationDocument
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.identity import Person
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import PersonState, VouchedBy
from tests.support.factories.core import new_credential
from tests.support.factories.fakes import NOON, PDF, MovingClock
from worker.pades.byte_range import FileDigests
from worker.signing.completion import DocumentInWork, Ended
from worker.signing.document_signer import DocumentSigner
from worker.signing.stage_timings import StageTimings

PERSON = PersonId("p")
none = cast("Any", None)


def in_work(seq: int) -> DocumentInWork:
    """A document that waits for the key."""
    document = ActivationDocument(seq, RequestId(seq), "ab", SignParameters(), "cd")
    return DocumentInWork(document, none, FileDigests(PDF))


async def key_phase(
    *, state: PersonState = PersonState.ACTIVE, key: object = PERSON, **changes: Any
) -> tuple[Ended, list[Any]]:
    """What ends of two documents, the first having failed before, and what is signed.

    Neither record nor HSM is there: nothing may be asked of them.
    """
    work = SimpleNamespace(
        person=Person(PERSON, "20055361682", "Ana", state, "es"),
        credential=new_credential(PERSON, **changes),
    )
    signer = DocumentSigner(
        none,
        none,
        none,
        none,
        none,
        none,
        none,
        MovingClock(NOON),
        "x",
        none,
        refuses_tests=True,
    )
    ended: Ended = {0: ApplianceError(ErrorCode.PDF_MALFORMED)}
    made = await signer._use_key(
        cast("Any", work),
        [in_work(0), in_work(1)],
        cast("Any", key),
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
    ended, made = await key_phase(**changes)

    assert made == []
    assert {seq: exc.code for seq, exc in ended.items()} == {
        0: ErrorCode.PDF_MALFORMED,
        1: ErrorCode.CERTIFICATE_NOT_USABLE,
    }


async def test_key_that_is_gone_ends_all_documents() -> None:
    """The claim's time was over before the key was used."""
    ended, made = await key_phase(key=None)

    assert made == []
    assert ended[1].code is ErrorCode.ACTIVATION_EXPIRED
