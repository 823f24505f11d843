"""The frame, from a host on another site to a signed document."""

import base64
import hashlib

from tests import pdfs
from tests.parts import ceremony
from tests.parts.appliance import Appliance, TestPerson
from tests.parts.browsers import Opener
from tests.parts.frame_host import FrameSite, file_of
from tests.validators import pdfsig, pyhanko_valid


async def test_host_of_another_site_gets_the_signed_document(
    appliance: Appliance, site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """Ready, init, ack, document, signature, completed: the contract's order."""
    page = await open_page("desktop")
    init = await site.open(page, person, autoLoadFile=file_of(pdfs.one_page()))
    await ceremony.whole(site.frame(page), person)
    completed = await site.wait(page, "signature.completed")

    signed = base64.b64decode(completed["delivery"]["fileBase64"], validate=True)
    assert completed["document"] == {
        "fileName": "contrato.pdf",
        "sha256": hashlib.sha256(signed).hexdigest(),
        "size": len(signed),
        "mime": "application/pdf",
    }
    assert completed["idemKey"] == init["idemKey"]
    (verdict,) = pdfsig(signed)
    assert verdict.valid
    assert pyhanko_valid(signed, appliance.roots)
