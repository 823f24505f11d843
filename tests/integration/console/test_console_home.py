"""*Inicio*, *Salud* and the menu say the same of an installation that is not well."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, update
from structlog.testing import capture_logs

from admin_ui import figures, health_report
from admin_ui.session import COOKIE
from appliance.database.tables import (
    credential,
    integrator,
    mail_message,
    security_notice,
    webhook_endpoint,
)
from appliance.domain.audit.verification import AuditCheck
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import TaskId, new_id
from appliance.domain.mail.mails import MailKind, MailState
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.domain.vocab import (
    CredentialState,
    Environment,
    TaskKind,
    WebhookDisabled,
)
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.worker_store import WorkerStore
from appliance.operations.backup.record import note_backup
from appliance.operations.health.report import unassessed
from appliance.record.installation_store import note_audit_check
from tests.integration.console.health_page import hand_over, plain, sample, section
from tests.support.installation.console import Console
from tests.support.installation.installation import Installation
from tests.support.patience import CALL_S

Hurt = Callable[[Console], Awaitable[object]]
_TABLES = 2
"""The first version of the tables that says when the last backup was made."""


async def alive(console: Console, **hsm: str) -> None:
    """Have a process of each role say that it is alive."""
    states = {"signing": "ready"} | dict.fromkeys(("chores", "api", "embed", "admin"))
    async with console.services.store.write() as transaction:
        for role, state in (states | hsm).items():
            status = WorkerStatus(
                f"{role}/h/1", "p", console.clock.now(), state or "none", ""
            )
            await WorkerStore(transaction).beat(status)


@asynccontextmanager
async def opened(folder: Path, url: str = "sqlite") -> AsyncIterator[Console]:
    """A console of an installation that is well and no trial, somebody signed in."""
    changed = {"trial": False}
    async with Installation(folder, url).console(**changed) as made:
        await made.sign_in()
        await alive(made)
        note_backup(made.front.settings, made.clock.now(), _TABLES)
        yield made


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for each report, however busy the machine is."""
    monkeypatch.setattr(health_report, "_WAIT_S", CALL_S)


@pytest.fixture
async def console(tmp_path: Path, each_url: str) -> AsyncIterator[Console]:
    """A console on either database."""
    async with opened(tmp_path, each_url) as made:
        yield made


@pytest.fixture
async def well_console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console on SQLite; PostgreSQL's clock is not the test's, which is a trouble."""
    async with opened(tmp_path) as made:
        yield made


def look_again(console: Console) -> None:
    """Forget what was assessed a moment ago, and the figures of then."""
    fresh = figures.FiguresInReach(console.front.settings.metrics_dir)
    console.app.extensions[figures.KEY] = fresh
    console.app.extensions[health_report.KEY] = health_report.LatestReport()


async def shown(console: Console, path: str = "/admin/") -> str:
    """A page as it is now, without its markup."""
    look_again(console)
    answer = await console.get(path)
    assert answer.status == 200, answer.text
    return plain(unescape(answer.text))


async def mark(console: Console, path: str = "/admin/people") -> tuple[str, str]:
    """Tone and words of the mark on the menu; both empty where there is none."""
    look_again(console)
    text = (await console.get(path)).text
    found = re.search(
        r'<span id="health-mark".*?data-tone="(\w+)" .*?hidden>(.*?)</span>',
        text,
        re.DOTALL,
    )
    return (found[1], plain(found[2])) if found else ("", "")


async def silent(console: Console) -> None:
    """A worker is killed."""
    async with console.services.store.write() as transaction:
        ago = console.clock.now() - timedelta(seconds=60)
        status = WorkerStatus("signing/h/2", "p", ago, "ready", "")
        await WorkerStore(transaction).beat(status)


async def without_hsm(console: Console) -> None:
    """A worker loses its HSM."""
    await alive(console, signing="unavailable")


async def pin_refused(console: Console) -> None:
    """A worker's PIN is wrong."""
    await alive(console, signing="pin")


async def tsa_away(console: Console) -> None:
    """The last answer of a TSA was no good."""
    asked = sample("rubrica_tsa_requests_total", 1, tsa="internal", outcome="failed")
    bad = sample("rubrica_tsa_last_failure_timestamp_seconds", 5, tsa="internal")
    hand_over(console, "signing", asked, bad)


async def redis_away(console: Console) -> None:
    """A living worker does not hear Redis."""
    hand_over(console, "signing", sample("rubrica_redis_connected", 0))


async def disk_full(console: Console) -> None:
    """The documents' disk has little room left."""
    free = sample("rubrica_documents_disk_free_bytes", 1_000_000)
    hand_over(console, "chores", sample("rubrica_record_up", 1), free)


async def clock_off(console: Console) -> None:
    """The clock of a host is wrong."""
    off = sample("rubrica_clock_offset_seconds", 3)
    hand_over(console, "chores", sample("rubrica_record_up", 1), off)


async def document_damaged(console: Console) -> None:
    """A process found a stored file altered."""
    at = console.clock.now().timestamp()
    found = sample("rubrica_document_damaged_timestamp_seconds", at)
    hand_over(console, "api", found)


async def backup_old(console: Console) -> None:
    """The last backup is of two days ago."""
    made = console.clock.now() - timedelta(hours=37)
    note_backup(console.front.settings, made, _TABLES)


async def audit_wrong(console: Console) -> None:
    """A chain of the audit is broken."""
    outcome = AuditCheck(console.clock.now(), 9, 1, 99, 0)
    await note_audit_check(console.front.settings, outcome)


async def queue_late(console: Console) -> None:
    """Nobody takes an HSM task up."""
    async with console.services.store.write() as transaction:
        await HsmTaskStore(transaction).add(
            TaskId(new_id()), TaskKind.PUBLISH, {}, console.clock.now()
        )
    console.clock.forward(61)
    await alive(console)


async def add_integrator(console: Console) -> str:
    """An integrator; its id."""
    await console.post("/admin/integrators", code="acme", name="ACME")
    async with console.services.store.read() as transaction:
        found = await transaction.connection.scalar(select(integrator.c.id))
    return str(found)


async def add_endpoint(console: Console, **values: Any) -> None:
    """A webhook of an integrator."""
    whose = await add_integrator(console)
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            insert(webhook_endpoint).values(
                id=new_id(),
                integrator=whose,
                url="https://a.example/",
                label="",
                events=[],
                secret_sealed=b"s",
                created=console.clock.now(),
                **values,
            )
        )


async def webhook_failing(console: Console) -> None:
    """The last try at an endpoint failed."""
    await add_endpoint(console, failing_since=console.clock.now())


async def webhook_stopped(console: Console) -> None:
    """An endpoint was turned off since every try failed."""
    failing = WebhookDisabled.FAILING.value
    at = console.clock.now()
    await add_endpoint(console, disabled=at, disabled_reason=failing)


async def add_mail(console: Console, **values: Any) -> None:
    """A mail to a person."""
    person = await console.person()
    await alive(console)
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            insert(mail_message).values(
                id=new_id(),
                person=person,
                detail={},
                answer="550",
                kind=MailKind.INVITATION.value,
                fence=0,
                due=console.clock.now(),
                created=console.clock.now(),
                **values,
            )
        )


async def mail_refused(console: Console) -> None:
    """The server refused a mail."""
    refused = MailState.REFUSED.value
    await add_mail(console, state=refused, tries=1, ended=console.clock.now())


async def mail_retried(console: Console) -> None:
    """The server does not take a mail, which is tried again."""
    await add_mail(console, state=MailState.PENDING.value, tries=2)


async def signer_revoked(console: Console) -> None:
    """A request waits for a signer whose certificate is revoked."""
    await add_integrator(console)
    cuil = "20055361682"
    person = await console.person(cuil)
    await console.request(cuil)
    await alive(console)
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            update(credential)
            .where(credential.c.person == person)
            .values(state=CredentialState.REVOKED.value)
        )


_HURTS: list[tuple[Hurt, str, str, str]] = [
    (silent, "bad", "Un proceso no está funcionando", "workers"),
    (without_hsm, "bad", "Un proceso de firma no puede usar el HSM", "workers"),
    (pin_refused, "bad", "El HSM rechazó su PIN", "workers"),
    (tsa_away, "wait", "Una autoridad de sellado de tiempo no responde", "tsas"),
    (redis_away, "wait", "Redis no responde", "ground"),
    (disk_full, "bad", "El disco de los documentos está casi lleno", "ground"),
    (clock_off, "bad", "El reloj está desfasado", "ground"),
    (document_damaged, "bad", "Falta un documento guardado o está dañado", "ground"),
    (backup_old, "wait", "No hay una copia de seguridad reciente", "ground"),
    (audit_wrong, "bad", "La auditoría no cierra", "ground"),
    (queue_late, "bad", "Hay trabajo que espera hace demasiado", "waiting"),
    (webhook_failing, "wait", "Hay webhooks que no se entregan", "delivery"),
    (webhook_stopped, "wait", "Hay webhooks que no se entregan", "delivery"),
    (mail_refused, "wait", "Hay correos que no se entregan", "delivery"),
    (mail_retried, "wait", "Hay correos que no se entregan", "delivery"),
    (signer_revoked, "wait", "Hay firmantes que no pueden firmar", "delivery"),
]


async def test_well_installation_is_well_everywhere(well_console: Console) -> None:
    """No mark on the menu, and nothing to look at."""
    assert "Todo lo que se ve desde acá funciona." in await shown(well_console)
    assert await mark(well_console) == ("", "")
    assert "nada pide atención" in await shown(well_console, "/admin/health")


@pytest.mark.parametrize(
    ("hurt", "tone", "title", "where"), _HURTS, ids=[one[0].__name__ for one in _HURTS]
)
async def test_trouble_is_told_everywhere(
    console: Console, hurt: Hurt, tone: str, title: str, where: str
) -> None:
    """Its words and the way to it on *Inicio*, the mark on any page, and *Salud*."""
    await hurt(console)

    assert title in await shown(console)
    look_again(console)
    assert f'href="/admin/health#{where}"' in (await console.get("/admin/")).text
    worst, said = await mark(console)
    # What is broken may keep another part from working, which is worse.
    assert worst in {tone, "bad"}
    assert re.match(r"[1-9]\d*: ", said)
    words = {"bad": "Hay algo que no funciona.", "wait": "Hay algo que pide atención."}
    assert words[worst] in said
    section = re.search(
        rf'<h2 id="look">.*?<a href="#{where}">',
        (await console.get("/admin/health")).text,
        re.DOTALL,
    )
    assert section


async def test_worst_comes_first(console: Console) -> None:
    """What is bad stands before what wants attention, and gives the mark its tone."""
    await webhook_failing(console)
    await disk_full(console)
    text = await shown(console)
    assert text.index("casi lleno") < text.index("webhooks que no se entregan")
    assert (await mark(console))[0] == "bad"


async def test_mark_is_looked_at_again_by_itself(well_console: Console) -> None:
    """By a page that stays open; after the session it gets nothing, and no sign-in."""
    await webhook_failing(well_console)
    look_again(well_console)
    part = {"HX-Request": "true"}
    told = await well_console.get("/admin/health/mark", **part)
    assert told.status == 200
    assert "Hay algo que pide atención." in told.text
    assert 'hx-get="/admin/health/mark"' in told.text

    del well_console.cookies[COOKIE]
    over = await well_console.get("/admin/health/mark", **part)
    assert (over.status, over.text) == (204, "")
    assert "HX-Redirect" not in over.headers


async def test_pages_do_not_wait_for_a_part_that_hangs(
    well_console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They show the last report; a record that is away is a trouble of its own."""
    await webhook_failing(well_console)
    look_again(well_console)
    await well_console.get("/admin/")

    async def away(*_: object) -> None:
        raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)

    monkeypatch.setattr(health_report, "look", away)
    latest = well_console.app.extensions[health_report.KEY]
    latest._at = time.monotonic() - 2 * health_report.FRESH_S
    text = (await well_console.get("/admin/people")).text
    assert "Hay algo que pide atención." in text
    await latest._looking
    assert latest._report.worst.value == "bad"


async def test_mark_says_that_nothing_is_known_yet(
    well_console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first assessment waits for a part that hangs: that is not well."""

    async def hangs(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(health_report, "look", hangs)
    monkeypatch.setattr(health_report, "_WAIT_S", 0)

    assert await mark(well_console) == ("quiet", "No se sabe")
    well_console.app.extensions[health_report.KEY]._looking.cancel()


async def test_assessment_that_fails_is_logged_and_told(
    well_console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that nobody foresaw is not lost, and does not look like all is well."""

    async def fails(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(health_report, "look", fails)

    with capture_logs() as logs:
        told = await mark(well_console)

    assert told == ("quiet", "No se sabe")
    (line,) = [one for one in logs if one["event"] == "health.assessment_failed"]
    assert line["log_level"] == "error"
    latest = well_console.app.extensions[health_report.KEY]
    assert latest._report == unassessed()


async def test_software_token_in_production(tmp_path: Path) -> None:
    """Production on SoftHSM wants attention; a trial or PREPROD on it does not."""
    changed = {"trial": False, "environment": Environment.PROD}
    async with Installation(tmp_path).console(**changed) as console:
        await console.sign_in()
        await alive(console)
        note_backup(console.front.settings, console.clock.now(), _TABLES)
        said = "Las claves de producción están en un token de software"
        assert said in await shown(console)
        assert (await mark(console))[0] == "wait"
        assert "RubricaSoftwareHsm" in await shown(console, "/admin/health")


@pytest.mark.parametrize("is_weak", [True, False])
async def test_kind_of_hsm_is_that_of_the_signing_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_weak: bool
) -> None:
    """By their figures, as the alert is; the console's own profile may be another."""
    if is_weak:
        # A profile of one's own, which is on the signing host alone.
        monkeypatch.setattr(health_report, "hsm_profile", lambda: None)
    changed = {"trial": False, "environment": Environment.PROD}
    async with Installation(tmp_path).console(**changed) as console:
        await console.sign_in()
        await alive(console)
        note_backup(console.front.settings, console.clock.now(), _TABLES)
        measured = sample("rubrica_hsm_software_in_production", int(is_weak))
        hand_over(console, "signing", measured)

        said = await shown(console, "/admin/health")
        item = "Las claves de producción están en un token de software"

        assert ("RubricaSoftwareHsm" in said) is is_weak
        assert (item in await shown(console)) is is_weak


async def test_what_reaches_nobody_is_named_with_the_way_to_it(
    console: Console,
) -> None:
    """The integrator's webhook, the person and kind of a mail, and the signer."""
    await webhook_failing(console)
    await mail_refused(console)
    look_again(console)
    page = unescape((await console.get("/admin/health")).text)
    part = section(page, "delivery")

    (webhook,) = re.findall(
        r'href="/admin/integrators/acme/webhooks/[^"]+">([^<]*)', part
    )
    assert webhook == "ACME: https://a.example/"
    (mail,) = re.findall(r'href="/admin/people/[^"]+#mails">([^<]*)', part)
    assert mail == "Ana María Núñez: Invitación"
    assert "el servidor dijo: 550" in plain(part)
    assert "y 1 más" not in plain(part)

    person = await console.person("20267565393", "Luis Peña")
    await console.request("20267565393")
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            update(credential)
            .where(credential.c.person == person)
            .values(state=CredentialState.REVOKED.value)
        )
    look_again(console)
    part = section(unescape((await console.get("/admin/health")).text), "delivery")
    assert f'<a href="/admin/people/{person}">Luis Peña</a>' in part


async def test_what_is_not_named_is_counted(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many, the newest alone."""
    monkeypatch.setattr("appliance.console.views.UNDELIVERED_SHOWN", 1)
    whose = await console.person()
    await alive(console)
    for minutes in (2, 1):
        at = console.clock.now() - timedelta(minutes=minutes)
        async with console.services.store.write() as transaction:
            await transaction.connection.execute(
                insert(security_notice).values(
                    id=new_id(),
                    person=whose,
                    kind=MailKind.REVOKED.value,
                    state=MailState.GIVEN_UP.value,
                    answer=f"try {minutes}",
                    tries=9,
                    due=at,
                    created=at,
                    ended=at,
                    fence=0,
                )
            )
    look_again(console)
    part = plain(section((await console.get("/admin/health")).text, "delivery"))

    assert "try 1" in part
    assert "try 2" not in part
    assert "y 1 más" in part
