"""What *Salud* tells of queues and publications, and what to do about them."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest

from appliance.domain.ids import TaskId, new_id
from appliance.domain.pki.certificates import Crl
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.domain.vocab import TaskKind
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.worker_store import WorkerStore
from appliance.pki.ca_certificates import read_authority
from appliance.pki.publication_store import PublicationStore
from tests.support.installation.console import Console, write_pki
from tests.support.installation.installation import Installation


@pytest.fixture
async def console(tmp_path: Path, each_url: str) -> AsyncIterator[Console]:
    """A console on either database, somebody signed in."""
    async with Installation(tmp_path, each_url).console() as made:
        await made.sign_in()
        yield made


async def told(console: Console, section: str) -> dict[str, str]:
    """The rows of a section, by their heading."""
    text = (await console.get("/admin/health")).text
    found = re.search(
        rf'<section class="stack" aria-labelledby="{section}">.*?</section>',
        text,
        re.DOTALL,
    )
    rows = re.findall(
        r'<th scope="row">(.*?)</th>(.*?)</tr>', found[0] if found else "", re.DOTALL
    )
    return {
        unescape(head).strip(): " ".join(unescape(re.sub(r"<[^>]+>", " ", row)).split())
        for head, row in rows
    }


async def test_queue_that_is_late_says_what_to_do(console: Console) -> None:
    """An HSM task that nobody takes up; the other queues are on time."""
    async with console.services.store.write() as transaction:
        await HsmTaskStore(transaction).add(
            TaskId(new_id()), TaskKind.PUBLISH, {}, console.clock.now()
        )
    queue = "Claves, certificados y sellos de tiempo"
    assert (await told(console, "waiting"))[queue].startswith("Bien 1 ")
    console.clock.forward(61)
    found = await told(console, "waiting")
    assert found[queue].startswith("Mal Fijate abajo si los procesos de firma")
    assert found["Documentos por firmar"] == "Bien 0"


async def test_list_that_was_not_renewed_is_told(console: Console) -> None:
    """In its last quarter, for it is made anew at half."""
    write_pki(console)
    issuer = read_authority(console.front.settings).ca_id
    now = console.clock.now()
    async with console.services.store.write() as transaction:
        await PublicationStore(transaction).put_crl(
            Crl(issuer, 1, b"crl", now, now + timedelta(seconds=1000))
        )
    name = "Lista de revocación de la CA emisora"
    assert (await told(console, "published"))[name].startswith("Bien ")
    console.clock.forward(800)
    assert "La renueva un proceso de firma" in (await told(console, "published"))[name]


async def test_process_that_is_not_well_says_what_to_do(console: Console) -> None:
    """By its host: it is silent, or its HSM is away, or refused the PIN."""
    for slot, hsm in (("a", "unavailable"), ("b", "pin"), ("c", "ready")):
        async with console.services.store.write() as transaction:
            at = console.clock.now()
            status = WorkerStatus(f"signing/{slot}/1", "p", at, hsm, "")
            await WorkerStore(transaction).beat(status)
    text = unescape((await console.get("/admin/health")).text)
    rows = {
        slot: next(row for row in text.split("<tr>") if f"signing/{slot}/1" in row)
        for slot in "abc"
    }
    assert "Restablecé el HSM" in rows["a"]
    assert "Corregí su PIN" in rows["b"]
    assert "PIN" not in rows["c"]
    console.clock.forward(20)
    text = unescape((await console.get("/admin/health")).text)
    row = next(row for row in text.split("<tr>") if "signing/b/1" in row)
    assert "Mirá su registro en ese equipo" in row
    assert "Corregí" not in row
