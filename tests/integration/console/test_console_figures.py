"""What *Salud* shows of figures: each fact well and not well, and figures gone wrong.

That real faults move these figures, and come to these facts, is of
`test_figures_of_roles` and `test_figures_of_the_record`.
"""

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from admin_ui.figures import FiguresInReach
from appliance.domain.audit.verification import AuditCheck
from appliance.domain.pki.certificates import CertificateRecord, serial_text
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.domain.vocab import CertificateKind
from appliance.keys.worker_store import WorkerStore
from appliance.metrics.metrics_file import FORMAT
from appliance.operations.backup.record import note_backup
from appliance.operations.metrics.facts import POOLS
from appliance.operations.metrics.reading import LATEST_S, MOST_SAMPLES
from appliance.pki.certificate_store import CertificateStore
from appliance.record.installation_store import note_audit_check
from hsm_config.provisioning.ca_certificates import key_identifier
from tests.integration.console.health_page import (
    HOST,
    Sample,
    hand_over,
    page,
    plain,
    sample,
    section,
    told,
)
from tests.support.factories.fakes import NOON
from tests.support.installation.console import Console, write_pki
from tests.support.installation.installation import Installation
from tests.support.pki.outside_ca import der, ec_key, spki_of

TABLES = 2
"""The first version of the tables that says when the last backup was made."""
TSA = "rubrica_tsa_{}"
STATUS = "rubrica_outside_status_{}"


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console, somebody signed in."""
    async with Installation(tmp_path).console() as made:
        await made.sign_in()
        yield made


def asked(
    console: Console,
    form: str,
    label: str,
    name: str,
    good: str,
    ago_s: dict[str, float],
) -> list[Sample]:
    """Figures of somebody who is asked: ends of three and two questions, and when."""
    now = console.clock.now().timestamp()
    labels = {label: name}
    return [
        sample(form.format("requests_total"), 3, outcome=good, **labels),
        sample(form.format("requests_total"), 2, outcome="failed", **labels),
        *(
            sample(form.format(f"last_{end}_timestamp_seconds"), now - ago, **labels)
            for end, ago in ago_s.items()
        ),
    ]


@pytest.mark.parametrize(
    ("ago_s", "state"),
    [
        ({"success": 60, "failure": 120}, "Bien"),
        ({"success": 120, "failure": 60}, "Atención Su última respuesta no sirvió"),
        ({"failure": 60}, "Atención Su última respuesta no sirvió"),
        ({}, "No se sabe"),
    ],
)
async def test_tsa(console: Console, ago_s: dict[str, float], state: str) -> None:
    """The last answer, its time, and how many there were, by host."""
    hand_over(
        console, "signing", *asked(console, TSA, "tsa", "internal", "granted", ago_s)
    )
    found = await told(console, "tsas")
    row = found[f"La propia de la instalación {HOST}"]
    assert row.startswith(state)
    assert ("RubricaTsaFails en docs/alerts.md" in row) is state.startswith("A")
    assert row.endswith("3 buenas, 2 fallidas")
    assert ("hace 1 minuto" in row) is bool(ago_s)


async def test_tsa_that_nobody_asked_stands_there(console: Console) -> None:
    """Not as well, and not as away."""
    row = (await told(console, "tsas"))["La propia de la instalación"]
    assert row.startswith("No se sabe todavía ninguna")


@pytest.mark.parametrize("kind", [("ocsp", "Respondedores OCSP"), ("crl", "Listas de")])
@pytest.mark.parametrize(
    ("ago_s", "state"),
    [
        ({"success": 120, "failure": 60}, "Bien"),
        ({"success": 3600, "failure": 60}, "Atención No responde ninguna CA externa"),
        ({"success": 3600, "failure": 7200}, "Bien"),
        ({"success": 10800, "failure": 7200}, "Bien"),
        ({"failure": 60}, "Atención No responde ninguna CA externa"),
        ({"failure": 7200}, "No se sabe"),
    ],
)
async def test_outside_ca(
    console: Console, kind: tuple[str, str], ago_s: dict[str, float], state: str
) -> None:
    """One that fails is not all of them; half an hour without any answer is."""
    hand_over(
        console, "chores", *asked(console, STATUS, "kind", kind[0], "good", ago_s)
    )
    found = await told(console, "status")
    (row,) = [text for head, text in found.items() if head.startswith(kind[1])]
    assert row.startswith(state)
    assert ("RubricaOutsideStatusFails" in row) is state.startswith("A")


@pytest.mark.parametrize(
    ("ready", "fault", "ago_s", "state"),
    [
        (1, "session", 3600, "Bien 2 4 hace 1 hora"),
        (1, "session", 60, "Atención Hace poco fallaron llamadas"),
        (0, "device", 60, "Mal Restablecé el HSM"),
        (0, "pin", 60, "Mal Corregí su PIN"),
    ],
)
async def test_token(
    console: Console, ready: int, fault: str, ago_s: float, state: str
) -> None:
    """Sessions and faults of each worker; a refused PIN is another thing."""
    at = console.clock.now().timestamp() - ago_s
    hand_over(
        console,
        "signing",
        sample("rubrica_hsm_ready", ready, token="firma"),
        sample("rubrica_hsm_sessions", 2, token="firma"),
        sample("rubrica_hsm_faults_total", 4, token="firma", fault=fault),
        sample("rubrica_hsm_last_fault_timestamp_seconds", at, token="firma"),
    )
    (row,) = (await told(console, "tokens")).items()
    assert row[0] == f"Claves de los firmantes signing/{HOST}/1"
    assert row[1].startswith(state)


@pytest.mark.parametrize(
    ("name", "good", "bad", "head", "words", "alert"),
    [
        ("record_up", 1, 0, "Base de datos", "Mal", "RubricaDatabaseAway"),
        ("clock_offset_seconds", 2, 2.1, "Reloj", "Mal", "RubricaClockOff"),
        (
            "documents_disk_free_bytes",
            2**31,
            2**31 - 1,
            "Espacio para documentos",
            "Mal",
            "RubricaDiskFull",
        ),
    ],
)
async def test_ground(
    console: Console,
    name: str,
    good: float,
    bad: float,
    head: str,
    words: str,
    alert: str,
) -> None:
    """What the chores measured of it, by their host."""
    for value, is_bad in ((good, False), (bad, True), (good, False)):
        figures = {"record_up": 1.0, name: value}
        samples = [sample(f"rubrica_{each}", n) for each, n in figures.items()]
        hand_over(console, "chores", *samples)
        row = (await told(console, "ground"))[f"{head} {HOST}"]
        assert row.startswith(words if is_bad else "Bien")
        assert (alert in row) is is_bad


async def test_redis(console: Console) -> None:
    """How many of a host's signing workers hear it."""
    for heard, state in ((1, "Bien lo oye el 100"), (0, "Atención Iniciá Redis")):
        hand_over(console, "signing", sample("rubrica_redis_connected", 1))
        other = sample("rubrica_redis_connected", heard)
        hand_over(console, "signing", other, number=2)
        row = (await told(console, "ground"))[f"Redis {HOST}"]
        assert row.startswith(state)
    assert "50" in row
    assert "RubricaRedisAway" in row


async def test_bucket_does_not_say_how_much_room_it_has(console: Console) -> None:
    """And a folder that was never written to has no figure either: both are said."""
    hand_over(console, "chores", sample("rubrica_record_up", 1))
    row = (await told(console, "ground"))[f"Espacio para documentos {HOST}"]
    assert row == "No se sabe sin medir"


@pytest.mark.parametrize(
    ("held", "waiting", "ago_s", "state"),
    [
        (3, 0, None, "Bien"),
        (4, 0, 3600, "Bien"),
        (4, 1, None, "Atención"),
        (0, 0, 60, "Atención"),
    ],
)
async def test_pool(
    console: Console, held: int, waiting: int, ago_s: float | None, state: str
) -> None:
    """Used of how many, who waits, and who was turned away."""
    pool = {"pool": "pictures"}
    samples = [
        sample("rubrica_pool_places", 4, **pool),
        sample("rubrica_pool_held", held, **pool),
        sample("rubrica_pool_waiting", waiting, **pool),
        sample("rubrica_pool_refused_total", 7, cause="full", **pool),
    ]
    if ago_s is not None:
        at = console.clock.now().timestamp() - ago_s
        name = "rubrica_pool_last_refused_timestamp_seconds"
        samples.append(sample(name, at, **pool))
    hand_over(console, "embed", *samples)
    row = (await told(console, "pools"))["Páginas en preparación pictures"]
    assert row.startswith(state)
    assert f"embed/{HOST}/1 {held} de 4 {waiting} 7" in row
    assert ("RubricaPoolFull" in row) is (state == "Atención")


async def test_fullest_process_of_a_pool_comes_first(console: Console) -> None:
    """And of very many only some stand there, with how many more there are."""
    for number in range(1, 11):
        held = sample("rubrica_pool_held", number, pool="database")
        places = sample("rubrica_pool_places", 10, pool="database")
        hand_over(console, "signing", held, places, number=number)
    row = (await told(console, "pools"))["Conexiones a la base de datos database"]
    assert row.startswith(f"Bien signing/{HOST}/10 10 de 10 signing/{HOST}/9 9 de 10")
    assert f"signing/{HOST}/4 " not in row
    assert "y 4 procesos más" in row


async def test_where_to_look_comes_first(console: Console) -> None:
    """The sections with something that is not well, and how bad it is there."""
    async with console.services.store.write() as transaction:
        for role in ("signing", "chores", "api", "embed", "admin"):
            hsm = "ready" if role == "signing" else "none"
            status = WorkerStatus(f"{role}/h/1", "p", console.clock.now(), hsm, "")
            await WorkerStore(transaction).beat(status)
    well = plain(section(await page(console), "look"))
    assert well == "Dónde mirar De lo que se ve desde acá, nada pide atención."
    hand_over(console, "signing", sample("rubrica_redis_connected", 0))
    off = sample("rubrica_clock_offset_seconds", 3)
    hand_over(console, "chores", sample("rubrica_record_up", 1), off)
    hand_over(console, "api", version="0.0.7")
    shown = section(await page(console), "look")
    assert plain(shown) == "Dónde mirar Lo que sostiene todo Mal Procesos Atención"
    assert 'href="#ground"' in shown


# -- what the record knows -------------------------------------------------------


async def test_backup_that_is_too_old(tmp_path: Path, each_url: str) -> None:
    """In a trial nobody misses one; else after a day and a half."""
    async with Installation(tmp_path, each_url).console() as console:
        await console.sign_in()
        head = "Última copia de seguridad"
        assert (await told(console, "ground"))[
            head
        ] == "en una prueba no hace falta nunca se hizo ninguna"
        for hours, state in ((36, "Bien"), (37, "Atención")):
            made = console.clock.now() - timedelta(hours=hours)
            note_backup(console.front.settings, made, TABLES)
            row = (await told(console, "ground"))[head]
            assert row.startswith(state)
            assert "hace" in row
        assert "RubricaBackupOld en docs/alerts.md" in row


async def test_last_check_of_the_audit(tmp_path: Path, each_url: str) -> None:
    """None so far; one that found nothing; one that did, with what and what to do."""
    async with Installation(tmp_path, each_url).console() as console:
        await console.sign_in()
        head = "Última verificación de la auditoría"
        assert (await told(console, "ground"))[
            head
        ] == "ninguna todavía la hace rubrica audit verify"
        for broken, findings, state, found in (
            (0, 0, "Bien", ""),
            (2, 0, "Mal", ": 2 cadenas rotas"),
            (0, 1, "Mal", ": 1 hecho sin explicación"),
            (1, 2, "Mal", ": 1 cadena rota, 2 hechos sin explicación"),
        ):
            outcome = AuditCheck(console.clock.now(), 9, broken, 99, findings)
            await note_audit_check(console.front.settings, outcome)
            row = (await told(console, "ground"))[head]
            assert row.startswith(state)
            assert row.endswith(found)
        assert "RubricaAuditWrong en docs/alerts.md" in row


async def test_days_that_certificates_have_left(console: Console) -> None:
    """Of the CA, the TSA and the responder; that of the web server is not seen."""
    ca, now = write_pki(console), console.clock.now()
    lives = ((CertificateKind.TSA, 29), (CertificateKind.OCSP, 25))
    async with console.services.store.write() as transaction:
        for kind, days in lives:
            end = now + timedelta(days=days, hours=1)
            leaf = ca.certify(spki_of(ec_key()), "20000000001", end=end)
            await CertificateStore(transaction).add(
                CertificateRecord(
                    serial_text(leaf.serial_number),
                    kind,
                    key_identifier(ca.issuing),
                    None,
                    der(leaf),
                    leaf.not_valid_before_utc,
                    leaf.not_valid_after_utc,
                )
            )
    found = await told(console, "certificates")
    assert found["La autoridad interna"].startswith("Bien 36")
    assert found["Autoridad de sellado de tiempo"].startswith("Atención Hay que renov")
    assert "docs/alerts.md 29 " in found["Autoridad de sellado de tiempo"]
    assert found["Respondedor OCSP"].startswith("Bien 25 ")
    assert found["Servidor web"].startswith("No se sabe Lo tiene el proxy")
    console.clock.forward(timedelta(days=30).total_seconds())
    await console.sign_in()
    assert (await told(console, "certificates"))["Respondedor OCSP"].startswith("Mal ")


# -- figures that are wrong, old, of another version, or not there ---------------


async def test_without_figures_the_page_says_so(console: Console) -> None:
    """Of processes that say in the record that they live: their host is named."""
    async with console.services.store.write() as transaction:
        for host in ("lejos", HOST):
            status = WorkerStatus(f"api/{host}/1", "p", console.clock.now(), "none", "")
            await WorkerStore(transaction).beat(status)
    hand_over(console, "api")
    shown = section(await page(console), "workers")
    assert f"{socket.gethostname()}, no llegan cifras de h, lejos:" not in plain(shown)
    assert f"{socket.gethostname()}, no llegan cifras de lejos:" in plain(shown)
    rows = await told(console, "workers")
    assert "no se ve" in rows["API y páginas públicas api/lejos/1"]
    assert "1.2.3" in rows[f"API y páginas públicas api/{HOST}/1"]
    # Whoever hands over in the name of another host hides nobody there.
    hand_over(console, "sandbox", number=9, host="lejos")
    shown = section(await page(console), "workers")
    assert f"{socket.gethostname()}, no llegan cifras de lejos:" in plain(shown)


async def test_versions_differ(console: Console) -> None:
    """While an upgrade goes on, or where it did not come to its end."""
    hand_over(console, "api", version="0.1.0")
    hand_over(console, "sandbox", version="0.1.0")
    assert "Corren varias versiones" not in await page(console)
    hand_over(console, "chores", version="0.2.0")
    shown = plain(section(await page(console), "workers"))
    assert "Corren varias versiones: 0.1.0, 0.2.0 Atención Hay una actual" in shown
    assert "RubricaVersionsDiffer" in shown
    rows = await told(console, "workers")
    assert rows[f"Sandbox de documentos sandbox/{HOST}/1"].startswith("Bien 0.1.0")


def half(path: Path) -> None:
    """As of a process that was killed while it wrote; a good one never shows it."""
    path.write_text(path.read_text()[:40])


def newer(path: Path) -> None:
    """Of a format that this version does not know."""
    path.write_text(json.dumps({"format": 99, "samples": []}))


def more(path: Path) -> None:
    """Of a version that measures what this one does not know."""
    content = json.loads(path.read_text())
    content["samples"].append(["rubrica_of_the_future", {}, 1])
    path.write_text(json.dumps(content))


def strange(path: Path) -> None:
    """Numbers and times that no clock tells, in the right place."""
    start = ["rubrica_process_start_time_seconds", {}, 1e300]
    free = ["rubrica_process_max_fds", {}, 0]
    path.write_text(json.dumps({"format": 1, "samples": [start, free], "host": "a/b"}))


def stale(path: Path) -> None:
    """Of a process that ended, or hangs."""
    ago = time.time() - LATEST_S - 5
    os.utime(path, (ago, ago))


def pipe(path: Path) -> None:
    """No file at all."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("spoil", "state"),
    [
        (half, "Atención Sus cifras no se pueden leer"),
        (newer, "Atención Sus cifras no se pueden leer"),
        (more, "Atención Sus cifras no se pueden leer, o no todas"),
        (pipe, "Atención Sus cifras no se pueden leer"),
        (stale, "Mal No da señales de vida"),
        (strange, "Bien no se ve"),
    ],
)
async def test_figures_that_are_wrong(
    console: Console, spoil: Callable[[Path], None], state: str
) -> None:
    """The page comes, says it of that process, and shows the others."""
    hand_over(console, "embed")
    spoil(hand_over(console, "api", host=socket.gethostname()))
    rows = await told(console, "workers")
    (row,) = [text for head, text in rows.items() if " api/" in head]
    assert row.startswith(state)
    assert rows[f"Marco de firma embed/{HOST}/1"].startswith("Bien 1.2.3")


async def test_earlier_version_names_no_host(console: Console) -> None:
    """Its process is taken for one of this host's: each told its own alone."""
    hand_over(console, "api", host=None)
    slot = f"api/{socket.gethostname()}/1"
    assert f"API y páginas públicas {slot}" in await told(console, "workers")


async def test_folder_that_may_not_be_read_is_said(console: Console) -> None:
    """As of a unit whose user is not in the group; what is there is no folder of it."""
    hand_over(console, "embed")
    (console.front.settings.metrics_dir / "api").symlink_to("embed")
    shown = plain(await page(console))
    assert "Esta consola no puede leer las cifras de: api" in shown
    assert "rubrica-metrics" in shown
    assert f"embed/{HOST}/1" in shown


async def test_role_that_lies_makes_no_long_page(console: Console) -> None:
    """Pools, tokens and authorities that nobody has are left out."""
    hand_over(console, "signing")
    before = len(await page(console))
    many = [
        sample("rubrica_pool_places", 1e300, pool=f"<b>{n}")
        for n in range(MOST_SAMPLES // 2)
    ]
    many += [
        sample("rubrica_hsm_ready", 1, token=f"t{n}") for n in range(MOST_SAMPLES // 4)
    ]
    many += [sample("rubrica_pool_places", 1e300, pool=POOLS[0])]
    hand_over(console, "signing", *many)
    after = await page(console)
    assert "<b>1" not in after
    assert len(after) < before + 4_000


async def test_many_who_look_cost_one_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a folder with as much in it as a role may hand over, too."""
    # However slow the machine is, all of them look within that time.
    monkeypatch.setattr("admin_ui.figures.KEPT_S", 600.0)
    body = json.dumps({"format": FORMAT, "samples": [["x", {}, 1]] * 60_000})
    for number in range(1, 5):
        path = tmp_path / "api" / f"{number}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(body)
    source = FiguresInReach(tmp_path)
    first = await source.facts(NOON, ())
    found = await asyncio.gather(*(source.facts(NOON, ()) for _ in range(100)))
    assert len(first.processes) == 4
    assert all(each is first for each in found)


async def test_page_is_told_in_english(console: Console) -> None:
    """The same, for whose browser asks for it."""
    hand_over(console, "signing", sample("rubrica_redis_connected", 0))
    english = {"Accept-Language": "en"}
    row = (await told(console, "ground", **english))[f"Redis {HOST}"]
    assert row.startswith("Attention Start Redis")
    assert "More: RubricaRedisAway in docs/alerts.md" in row
    # And who changes the language stays on the page.
    assert 'name="back" value="/admin/health"' in await page(console)
