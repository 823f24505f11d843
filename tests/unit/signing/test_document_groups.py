"""Which documents of an activation are signed together.

Source: docs/signing.md "Several documents at once".
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from appliance.domain.ids import RequestId
from appliance.domain.signing.activation import (
    MOST_DOCUMENTS,
    ActivationDocument,
    activation_count,
)
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import ItemState
from appliance.signing.claims import ClaimedActivation
from worker.signing.document_signer import GROUP_MOST, DocumentSigner, Pace

MIB = 1_048_576


def documents(count: int) -> list[ActivationDocument]:
    """So many that wait."""
    return [
        ActivationDocument(seq, RequestId(seq), "ab", SignParameters(), "cd")
        for seq in range(count)
    ]


def claimed(sizes: list[int], tries: int = 1) -> ClaimedActivation:
    """A claim of documents of these sizes, in bytes."""
    views = {
        seq: SimpleNamespace(inspection=SimpleNamespace(size_bytes=size))
        for seq, size in enumerate(sizes)
    }
    claim = SimpleNamespace(tries=tries)
    return cast("ClaimedActivation", SimpleNamespace(claim=claim, requests=views))


def group_of(work: ClaimedActivation, count: int, group_size: int) -> int:
    """How many of so many are signed together by an HSM of that pace."""
    none = cast("Any", None)
    session = cast("Any", SimpleNamespace(group_size=group_size))
    signer = DocumentSigner(
        *(none, none, none, none, session, none, none, none, "x"),
        *(none, none, none, none),
    )
    left = documents(count)
    group = signer.next_group(work, left)
    assert [*group] == left[: len(group)]
    return len(group)


@pytest.mark.parametrize(
    ("pace", "together"), [(1, 1), (7, 7), (20, 20), (1000, GROUP_MOST)]
)
def test_group_is_what_the_hsm_signs_in_its_time(pace: int, together: int) -> None:
    """As many as that, and no more than a commit is to hold."""
    work = claimed([1000] * 100)
    assert group_of(work, 100, pace) == together
    assert group_of(work, 1, pace) == 1


def test_group_has_so_many_bytes() -> None:
    """What is read together fits into 8 MiB; a larger one is alone."""
    assert group_of(claimed([3 * MIB] * 5), 5, 20) == 2
    assert group_of(claimed([100 * MIB, 1, 1]), 3, 20) == 1
    assert group_of(claimed([1, 1, 100 * MIB]), 3, 20) == 2


def test_what_may_have_ended_a_worker_is_signed_alone() -> None:
    """It takes no other along, a second time."""
    assert group_of(claimed([1000] * 5, tries=2), 5, 20) == 1


def test_what_is_signed_and_unpublished_is_done_alone() -> None:
    """Its worker died, or what it waits for is away: neither is another's matter."""
    none = cast("Any", None)
    session = cast("Any", SimpleNamespace(group_size=20))
    signer = DocumentSigner(
        *(none, none, none, none, session, none, none, none, "x"),
        *(none, none, none, none),
    )
    first, *others = documents(3)
    left = [replace(first, state=ItemState.KEYED), *others]
    assert signer.next_group(claimed([1000] * 3), left) == left[:1]
    assert signer.next_group(claimed([1000] * 3), others) == others


def test_slow_documents_make_small_groups() -> None:
    """Others wait for a turn meanwhile; groups grow again by and by."""
    pace = Pace()
    assert pace.group_size == GROUP_MOST
    pace.took(4, 8.0)
    assert pace.group_size == 2
    sizes = []
    for _ in range(8):
        pace.took(2, 0.02)
        sizes.append(pace.group_size)
    assert sizes == sorted(sizes)
    assert sizes[-1] > GROUP_MOST


@pytest.mark.parametrize(
    ("documents", "activations"),
    [(0, 0), (1, 1), (15, 1), (16, 2), (128, 2), (129, 4), (200, 4), (1000, 16)],
)
def test_two_workers_have_as_many(documents: int, activations: int) -> None:
    """No activation of a command has more than one may have."""
    assert activation_count(documents) == activations
    assert documents <= activations * MOST_DOCUMENTS
