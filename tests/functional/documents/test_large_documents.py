"""Large documents go through in bounded memory, and downloads are never held.

Source: decisions "Limits".
"""

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.large_documents import Walk, download, upload, walk_through
from tests.support.documents import pdfs
from tests.support.processes.scratch import short_folder

QUICK, STREAMED, LARGE = 12_000_000, 48_000_000, 100_000_000
MOST = 3.0
"""Sizes of the document that a role may grow by, beside what follows."""
FIRST_BYTES = 8_000_000
"""That one takes for good the first time it does something."""
PIECES_BYTES = 24_000_000
"""That a role may grow by while it passes a document on, of whatever size: some
pieces, which the allocator keeps for each thread, and the server's buffers.
"""
PASSING = {"fetch", "frame: see"}


def faults(walk: Walk) -> list[str]:
    """Steps in which a role took more than it may."""
    held = MOST * walk.size_bytes + FIRST_BYTES
    return [
        f"{step}: {role} grew by {grown}"
        for step, roles in walk.grown.items()
        for role, grown in roles.items()
        if role != "sandbox job" and grown > (PIECES_BYTES if step in PASSING else held)
    ]


def test_document_is_held_less_than_three_times(
    appliance: Appliance, signer: TestPerson
) -> None:
    """By no role and in no step."""
    walk_through(appliance, signer, pdfs.one_page())

    walk = walk_through(appliance, signer, pdfs.heavy(20, QUICK))

    assert faults(walk) == []
    # It was looked at: the worker did hold the document.
    assert walk.most("signing") > 0.5 * QUICK


def test_document_that_a_backend_uploads_is_held_less_than_three_times(
    appliance: Appliance,
) -> None:
    """By no role, and fetched by none; another one takes what it takes for good."""
    upload(appliance, pdfs.one_page())

    walk = upload(appliance, pdfs.heavy(20, QUICK))

    assert faults(walk) == []


def test_document_that_is_fetched_is_held_by_nobody(
    appliance: Appliance, signer: TestPerson
) -> None:
    """Its size does not matter: held whole, it would take twice what may be."""
    walk = download(appliance, signer, pdfs.heavy(20, STREAMED))

    assert faults(walk) == []


@pytest.mark.long
def test_hundred_megabytes_are_held_less_than_three_times() -> None:
    """The largest document that the settings allow, the same way."""
    more = "[documents]\nlimit_bytes = 104857600"
    with short_folder() as folder, Appliance.made(folder, more=more) as appliance:
        person = appliance.new_person()
        walk_through(appliance, person, pdfs.one_page())

        walk = walk_through(appliance, person, pdfs.heavy(100, LARGE))

    assert faults(walk) == []
    assert walk.most("signing") > 0.5 * LARGE
