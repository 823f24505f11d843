"""The verifier finds every known attack on signed PDFs out, and never fails.

Source: reliability §4.6; docs/documents.md.
"""

from collections.abc import Iterator

import pytest
from pyhanko.sign.fields import MDPPerm

from appliance.domain.appearance.geometry import size_as_seen
from tests.support.documents import hostile_pdfs, pdfs
from tests.support.documents.altered_pdfs import ATTACKS, update
from tests.support.documents.software_signer import signed, software_signer
from tests.support.services.sandbox_server import SandboxServer, running_sandbox

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all tests here."""
    with running_sandbox() as server:
        yield server


@pytest.mark.parametrize("attack", ATTACKS)
async def test_attacked_document_is_not_valid(
    sandbox: SandboxServer, attack: str
) -> None:
    """A report comes back that says no, of each bad signature with its reason."""
    content = ATTACKS[attack](signed)

    report = await sandbox.client.verify(content, [software_signer().root])

    assert not report.valid
    assert all(each.valid or each.reason for each in report.signatures)


@pytest.mark.parametrize("certify", [None, MDPPerm.FILL_FORMS, MDPPerm.ANNOTATE])
async def test_what_is_allowed_stays_valid(
    sandbox: SandboxServer, certify: MDPPerm | None
) -> None:
    """The attacks' own signatures are good ones, and a second one is no attack."""
    content = signed(hostile_pdfs.plain(), certify=certify)
    twice = signed(content, field="Firma2")

    for each in (content, twice):
        report = await sandbox.client.verify(each, [software_signer().root])
        assert report.valid


async def test_revision_of_the_attacks_is_one_that_readers_follow(
    sandbox: SandboxServer,
) -> None:
    """An unsigned document is another after it: the attacks do change something."""
    before = pdfs.one_page()
    changed = update(
        hostile_pdfs.plain(), {3: hostile_pdfs.PAGE.replace(b"200 300", b"100 100")}
    )

    assert size_as_seen((await sandbox.client.inspect(before)).pages[0])[0] == 595
    assert size_as_seen((await sandbox.client.inspect(changed)).pages[0])[0] == 100
