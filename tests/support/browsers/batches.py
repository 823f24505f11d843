"""A batch in the frame: asked for by a backend, listed and read by its signer.

made = asked(backend, person)
frame = await shown(site, page, token_for(backend, made["loteId"]), person)
await listed(frame, person)
await read_all(frame)
"""

import base64
from collections.abc import Sequence
from typing import Any, Final

from playwright.async_api import Frame, Page

from tests.support.appliance.appliance import TestPerson
from tests.support.appliance.backends import TestBackend, ready_batch
from tests.support.browsers import ceremony
from tests.support.browsers.frame_host import FrameSite
from tests.support.documents import pdfs

NAMES: Final = ("enero.pdf", "febrero.pdf", "marzo.pdf")


def asked(
    backend: TestBackend,
    person: TestPerson,
    names: tuple[str, ...] = NAMES,
    stamps: Sequence[dict[str, Any]] = (),
    contents: Sequence[bytes] = (),
) -> dict[str, Any]:
    """A batch of one document for each name; the first ones with these stamps.

    Args:
        backend: that asks.
        person: who is to sign.
        names: of the documents.
        stamps: of the first ones.
        contents: of the first ones; of the others a page with the name.
    """
    own = [*contents, *(pdfs.one_page(f"Recibo {each}") for each in names)]
    del own[len(contents) : 2 * len(contents)]
    documents: list[dict[str, Any]] = [
        {"contenido": base64.b64encode(content).decode(), "nombre": name}
        for content, name in zip(own, names, strict=True)
    ]
    for document, stamp in zip(documents, stamps, strict=False):
        document["sello"] = stamp
    answer = backend.client.post(
        "/api/integration/batches",
        json={
            "firmante": {"cuil": person.cuil},
            "documentos": documents,
            "mensaje": "Tus recibos",
        },
    )
    return ready_batch(backend.client, answer)


def token_for(backend: TestBackend, lote: str) -> str:
    """A token that the backend got for a batch."""
    answer = backend.client.post("/api/integration/sessions", json={"loteId": lote})
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["loteId"], told["solicitudId"]) == (lote, None)
    return str(told["tokenSession"])


async def shown(site: FrameSite, page: Page, token: str, person: TestPerson) -> Frame:
    """The frame with a token, ready for its signer; the same init each time."""
    await site.visit(page)
    await site.mount(page, token)
    await site.wait(page, "ready")
    await site.send(page, "init", site.init(token, person, idemKey="recibos"))
    await site.wait(page, "handshake.ack")
    return site.frame(page)


async def listed(frame: Frame, person: TestPerson) -> None:
    """Prove who signs, and come to the list."""
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "documents")


async def read_all(frame: Frame, count: int = len(NAMES)) -> None:
    """Read each of them, from the list to the password."""
    await ceremony.go(frame)
    for _ in range(count):
        await ceremony.read(frame)
    await ceremony.at(frame, "password")
