"""What *Salud* tells of queues and publications, and what to do about them."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest

from appliance.domain.certificates import Crl
from appliance.domain.hsm_tasks import WorkerStatus
from appliance.domain.ids import TaskId, new_id
from appliance.domain.vocab import TaskKind
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.worker_store import WorkerStore
from appliance.pki.ca_certificates import read_authority
from appliance.pki.publication_store import PublicationStore
from tests.support.faces.console import Site, open_site, write_pki


@pytest.fixture
async def site(tmp_path: Path, each_url: str) -> AsyncIterator[Site]:
    """A console on either database, somebody signed in."""
    async with open_site(tmp_path, each_url) as made:
        await made.sign_in()
        yield made


async def told(site: Site, section: str) -> dict[str, str]:
    """The rows of a section, by their heading."""
    text = (await site.get("/admin/health")).text
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


async def test_queue_that_is_late_says_what_to_do(site: Site) -> None:
    """An HSM task that nobody takes up; the other queues are on time."""
    async with site.desk.store.write() as transaction:
        await HsmTaskStore(transaction).add(
            TaskId(new_id()), TaskKind.PUBLISH, {}, site.clock.now()
        )
    queue = "Claves, certificados y sellos de tiempo"
    assert (await told(site, "waiting"))[queue].startswith("Bien 1 ")
    site.clock.forward(61)
    found = await told(site, "waiting")
    assert found[queue].startswith("Mal Fijate abajo si los procesos de firma")
    assert found["Documentos por firmar"] == "Bien 0"


async def test_list_that_was_not_renewed_is_told(site: Site) -> None:
    """In its last quarter, for it is made anew at half."""
    write_pki(site)
    issuer = read_authority(site.front.settings).ca_id
    now = site.clock.now()
    async with site.desk.store.write() as transaction:
        await PublicationStore(transaction).put_crl(
            Crl(issuer, 1, b"crl", now, now + timedelta(seconds=1000))
        )
    name = "Lista de revocación de la CA emisora"
    assert (await told(site, "published"))[name].startswith("Bien ")
    site.clock.forward(800)
    assert "La renueva un proceso de firma" in (await told(site, "published"))[name]


async def test_process_that_is_not_well_says_what_to_do(site: Site) -> None:
    """By its host: it is silent, or its HSM is away, or refused the PIN."""
    for slot, hsm in (("a", "unavailable"), ("b", "pin"), ("c", "ready")):
        async with site.desk.store.write() as transaction:
            at = site.clock.now()
            status = WorkerStatus(f"signing/{slot}/1", "p", at, hsm, "")
            await WorkerStore(transaction).beat(status)
    text = unescape((await site.get("/admin/health")).text)
    rows = {
        slot: next(row for row in text.split("<tr>") if f"signing/{slot}/1" in row)
        for slot in "abc"
    }
    assert "Restablecé el HSM" in rows["a"]
    assert "Corregí su PIN" in rows["b"]
    assert "PIN" not in rows["c"]
    site.clock.forward(20)
    text = unescape((await site.get("/admin/health")).text)
    row = next(row for row in text.split("<tr>") if "signing/b/1" in row)
    assert "Mirá su registro en ese equipo" in row
    assert "Corregí" not in row
