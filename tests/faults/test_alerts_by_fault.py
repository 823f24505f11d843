"""Debian's Prometheus scrapes every role, and alerts fire by real faults.

Each of the rules has its fault here.

`for:` of the rules is cut to two seconds; all else is as operators get it.
"""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from appliance.cli import EX_CONFIG
from appliance.domain.clock import SystemClock
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.vocab import SignatureLevel, TimestampPolicy
from tests.functional.pki.test_outside_ca import spki_of
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backups import backed_up
from tests.support.appliance.http_calls import at_once, sign
from tests.support.documents import pdfs
from tests.support.documents.slow_pdfs import transparent_groups
from tests.support.faults.fault_injection import execute, until
from tests.support.faults.monitored_installation import Watched, watched
from tests.support.faults.role_faults import (
    cramped,
    garbage,
    handed_over,
    left_over,
    stopped,
)
from tests.support.faults.small_disk import small_disk
from tests.support.pki.outside_ca import (
    Form,
    OutsideCa,
    bundle,
    ec_key,
    make,
    named,
    usage,
)
from tests.support.pki.outside_ca import spki_of as spki_of_key
from tests.support.services.fake_ca import Says
from tests.support.services.fake_tsa import Mode
from tests.support.services.outside_services import FIRST

_LAST_BACKUP: Final = "rubrica_backup_last_success_timestamp_seconds"
_STARTED: Final = "rubrica_process_start_time_seconds"
_CALLS: Final = 'sum(rubrica_http_request_seconds_count{route="/solicitudes/firmar"})'
_DEVICE_REMOVED, _MECHANISM_INVALID, _PIN_INCORRECT = 0x32, 0x70, 0xA0
_MOST_TRIES: Final = 40
_BY_ANSWERS: Final = ("RubricaServerErrors",)
"""What callers are told of other faults counts for it."""
_DAY: Final = timedelta(days=1)
_PROCESSES: Final = {
    *(("api", "1"), ("embed", "1"), ("admin", "1"), ("metrics", "1")),
    *(("signing", "1"), ("signing", "2"), ("chores", "1"), ("sandbox", "1")),
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("prometheus") is None,
        reason="prometheus is not installed (Debian's prometheus)",
    ),
]


@pytest.fixture(scope="module")
def monitored_installation(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Watched]:
    """One installation and one Prometheus for all of it."""
    with watched(tmp_path_factory.mktemp("prometheus")) as made:
        yield made


@pytest.fixture(scope="module")
def person(monitored_installation: Watched) -> TestPerson:
    """Somebody whom the internal CA certified."""
    return monitored_installation.appliance.new_person("Elena Ríos")


def test_every_role_is_scraped(monitored_installation: Watched) -> None:
    """Each process has a version, the listener's own too; all but it are up."""
    found = monitored_installation.prometheus.until("rubrica_build_info")
    assert {(one["role"], one["number"]) for one in found} == _PROCESSES
    assert monitored_installation.prometheus.firing() == set()


def test_workers_that_hang(monitored_installation: Watched, person: TestPerson) -> None:
    """Signatures wait for one, and CRLs and OCSP answers, which grow old meanwhile.

    The first of all faults: how slow signing was is told of the last ten minutes.
    """
    appliance, fires = (
        monitored_installation.appliance,
        monitored_installation.prometheus.until_firing,
    )
    requests = appliance.new_requests(person, pdfs.one_page(), 5)
    with (
        monitored_installation.hurting(
            *("RubricaNoSigningWorker", "RubricaQueueWaits", "RubricaSigningSlow"),
            *("RubricaCrlOld", "RubricaOcspOld"),
        ),
        appliance.client(person) as client,
    ):
        assert sign(client, person, requests[0]).status_code == 200
        monitored_installation.prometheus.until(f"{_CALLS} > 0")
        with stopped(appliance, "signing-1", "signing-2"):
            slow = at_once([partial(sign, client, person, r) for r in requests[1:]])
            assert {answer.status_code for answer in slow} == {202}
            for table in ("crl", "ocsp_response"):
                execute(
                    appliance,
                    f"UPDATE {table} SET this_update = now() - interval '1 hour', "  # noqa: S608 (ours)
                    "next_update = now() + interval '1 minute'",
                )
            fires("RubricaSigningSlow")
            fires("RubricaNoSigningWorker")
            fires("RubricaCrlOld", ca="issuing")
            fires("RubricaCrlOld", ca="root")
            fires("RubricaOcspOld")
            fires("RubricaQueueWaits")


# Processes


def test_processes_that_are_not_well(
    monitored_installation: Watched, tmp_path: Path
) -> None:
    """Each in a way of its own; the others are well."""
    appliance, fires = (
        monitored_installation.appliance,
        monitored_installation.prometheus.until_firing,
    )
    (embed,) = appliance.children("embed")
    with (
        monitored_installation.hurting(
            *("RubricaRoleDown", "RubricaFiguresRefused", "RubricaVersionsDiffer"),
            *("RubricaDescriptorsRunOut", "RubricaRedisAway"),
        ),
        ExitStack() as faults,
    ):
        for fault in (
            stopped(appliance, "admin"),
            garbage(appliance),
            cramped(embed),
            left_over(
                appliance, tmp_path / "older", monitored_installation.shim.environment
            ),
        ):
            faults.enter_context(fault)
        monitored_installation.redis.kill()
        fires("RubricaRedisAway", role="signing", number="2")
        fires("RubricaFiguresRefused", role="embed", number="9")
        fires("RubricaDescriptorsRunOut", role="embed")
        fires("RubricaVersionsDiffer")
        fires("RubricaRoleDown", role="admin")
        assert (
            "RubricaNoSigningWorker" not in monitored_installation.prometheus.firing()
        )
        monitored_installation.redis.start()


def test_process_that_gets_on_slowly(monitored_installation: Watched) -> None:
    """It stands still again and again, each time for less than makes it be gone."""
    file = monitored_installation.appliance.settings.metrics_dir / "api" / "1.json"
    with monitored_installation.hurting("RubricaEventLoopLags"):
        with stopped(monitored_installation.appliance, "api"):
            # It was about to write again after five seconds.
            until(lambda: time.time() - file.stat().st_mtime > 8)
        monitored_installation.prometheus.until(
            'rubrica_event_loop_lag_seconds{role="api"} > 1'
        )
        with stopped(monitored_installation.appliance, "api"):
            monitored_installation.prometheus.until_firing(
                "RubricaEventLoopLags", role="api"
            )


def test_listener_that_goes(monitored_installation: Watched) -> None:
    """Prometheus says so itself."""
    with (
        monitored_installation.hurting("RubricaFiguresAway"),
        stopped(monitored_installation.appliance, "metrics"),
    ):
        monitored_installation.prometheus.until_firing("RubricaFiguresAway")


# What others do, and what ends


def test_backups_that_fail_for_long(
    monitored_installation: Watched, tmp_path: Path
) -> None:
    """The last good one grows old meanwhile; the next good one ends it."""
    with (
        monitored_installation.hurting("RubricaBackupOld"),
        backed_up(monitored_installation.appliance, tmp_path) as backups,
    ):
        backups.back_up_all()
        monitored_installation.prometheus.until(f"time() - max({_LAST_BACKUP}) < 3600")
        places = [backups.places / kind for kind in ("record", "secrets")]
        for place in places:
            place.rename(place.with_name(f"{place.name}-away"))
        assert backups.back_up().returncode == EX_CONFIG
        before = (SystemClock().now() - 2 * _DAY).isoformat()
        execute(
            monitored_installation.appliance,
            f"UPDATE installation SET value = '{before}' WHERE name = 'backup'",  # noqa: S608 (ours)
        )

        monitored_installation.prometheus.until_firing("RubricaBackupOld")

        for place in places:
            place.with_name(f"{place.name}-away").rename(place)
        assert backups.back_up().returncode == 0


def test_record_that_the_audit_does_not_explain(
    monitored_installation: Watched, person: TestPerson
) -> None:
    """Somebody with SQL calls a request signed; the next check ends it once undone."""
    appliance = monitored_installation.appliance
    verify = partial(appliance.rubrica, "audit", "verify")
    (request,) = appliance.new_requests(person, pdfs.one_page(), 1)
    say = f"UPDATE signature_request SET state = '{{}}' WHERE id = {request}"  # noqa: S608 (ours)
    with monitored_installation.hurting("RubricaAuditWrong"):
        assert verify().returncode == 0
        execute(appliance, say.format("firmada"))
        assert verify().returncode == 1

        monitored_installation.prometheus.until_firing("RubricaAuditWrong")

        execute(appliance, say.format("pendiente"))
        assert verify().returncode == 0


def trust(appliance: Appliance, root: x509.Certificate, purpose: str) -> str:
    """Trust a root by the command line; gives its id."""
    path = appliance.folder / "root-outside.pem"
    path.write_bytes(bundle(root))
    fingerprint = root.fingerprint(hashes.SHA256()).hex()
    added = appliance.rubrica(
        *("trust", "add", str(path), "--purpose", purpose),
        *("--fingerprint", fingerprint),
    )
    assert added.returncode == 0, added.stderr
    if purpose == "signers":
        pinned = appliance.rubrica("hsm", "anchors", "--pin", fingerprint)
        assert pinned.returncode == 0, pinned.stderr
    (found,) = re.findall(r"^ +id +(\S+)$", added.stdout, re.MULTILINE)
    return str(found)


def ending_root() -> x509.Certificate:
    """A root that ends in twenty days."""
    now, key, name = SystemClock().now(), ec_key(), named("AC que termina")
    form = Form(
        subject=name,
        start=now - _DAY,
        end=(now + 20 * _DAY).replace(microsecond=0),
        ca=True,
        usage=usage("key_cert_sign", "crl_sign"),
        purposes=None,
    )
    return make(form, spki_of_key(key), name, key)


def outsider(appliance: Appliance, ca: OutsideCa) -> TestPerson:
    """Somebody whom a CA outside certified, for two days."""
    somebody = appliance.new_person("Ñusta Quispe")
    end = (SystemClock().now() + 2 * _DAY).replace(microsecond=0)
    with appliance.client(somebody) as client:
        here = f"/credenciales/{client.get('/credenciales').json()[0]['id']}"
        body = {"password": somebody.signing_password}
        asked = client.post(f"{here}/csr", json=body).content
        spki = spki_of(x509.load_pem_x509_csr(asked))
        chain = bundle(ca.certify(spki, somebody.cuil, end=end), ca.issuing)
        done = client.post(f"{here}/cadena", json={"cadena": chain.decode()})
        assert done.status_code == 200, done.text
    return somebody


def published_below(appliance: Appliance, person: TestPerson, tsa: str) -> None:
    """A document that is handed out though its level is not reached."""
    level, preferred = SignatureLevel.B_LT, TimestampPolicy.PREFERRED
    wishes = ProfileWishes(level, preferred, tsa=(tsa,))
    request = appliance.new_request(person, pdfs.one_page(), wishes=wishes)
    with appliance.client(person) as client:
        while (answer := sign(client, person, request)).status_code == 202:
            pass
    assert answer.status_code == 200, answer.text
    assert answer.json()["nivel"] != level.value


def test_world_outside_that_fails_and_what_ends(
    monitored_installation: Watched, person: TestPerson
) -> None:
    """A TSA and a CA answer errors; their documents wait, and certificates end."""
    appliance, world, fires = (
        monitored_installation.appliance,
        monitored_installation.world,
        monitored_installation.prometheus.until_firing,
    )
    with monitored_installation.hurting(
        *("RubricaTsaFails", "RubricaOutsideStatusFails", "RubricaLevelsBehind"),
        *("RubricaSignersEnd", "RubricaCertificateEnds", "RubricaClockOff"),
    ):
        for purpose in ("signers", "timestamps"):
            trust(appliance, world.ca.root, purpose)
        somebody = outsider(appliance, world.ca)
        ending = trust(appliance, ending_root(), "signers")
        monitored_installation.set_database_clock("3 seconds")
        world.first.mode = Mode.HTTP_ERROR
        world.site.ocsp = world.site.crl = Says.HTTP_ERROR
        published_below(appliance, person, FIRST)
        for _ in range(5):
            published_below(appliance, somebody, "internal")
        execute(
            appliance,
            "UPDATE level_upkeep SET since = now() - interval '2 hours', "
            "due = now() + interval '1 hour'",
        )

        fires("RubricaTsaFails", tsa=FIRST)
        fires("RubricaOutsideStatusFails", kind="ocsp")
        fires("RubricaOutsideStatusFails", kind="crl")
        fires("RubricaLevelsBehind", level="B-LT")
        fires("RubricaSignersEnd")
        fires("RubricaCertificateEnds", kind="anchor")
        fires("RubricaClockOff")

        monitored_installation.set_database_clock("0")
        world.first.mode = Mode.GOOD
        world.site.ocsp = world.site.crl = Says.GOOD
        execute(appliance, "UPDATE level_upkeep SET due = now() - interval '1 minute'")
        assert appliance.rubrica("trust", "remove", ending).returncode == 0
        monitored_installation.prometheus.until_silent("RubricaLevelsBehind")
        revoke(appliance, somebody)
    monitored_installation.prometheus.until_silent("RubricaOutsideStatusFails")
    monitored_installation.lingering.remove("RubricaOutsideStatusFails")


def revoke(appliance: Appliance, person: TestPerson) -> None:
    """Have nobody wait for the end of their certificate."""
    with appliance.client(person) as client:
        here = f"/credenciales/{client.get('/credenciales').json()[0]['id']}"
        done = client.post(f"{here}/revocar", json={"motivo": "reemplazo"})
        assert done.status_code == 202, done.text


def test_disk_that_is_small(monitored_installation: Watched) -> None:
    """A real disk of 1 GiB under the documents."""
    with (
        monitored_installation.hurting("RubricaDiskFull"),
        small_disk(
            monitored_installation.appliance.settings.documents_dir, 1_073_741_824
        ) as made,
    ):
        if not made:
            pytest.skip("mounting a tmpfs needs root")
        monitored_installation.prometheus.until_firing("RubricaDiskFull")


def test_database_that_goes(
    monitored_installation: Watched, person: TestPerson
) -> None:
    """The chores say so, and who calls is told so."""
    appliance = monitored_installation.appliance
    with (
        monitored_installation.hurting("RubricaDatabaseAway", "RubricaServerErrors"),
        appliance.client(person) as client,
    ):
        monitored_installation.server.stop()
        answers = {client.get("/solicitudes").status_code for _ in range(8)}
        assert answers == {503}
        monitored_installation.prometheus.until_firing("RubricaDatabaseAway")
        monitored_installation.prometheus.until_firing(
            "RubricaServerErrors", role="api"
        )
        monitored_installation.server.start_again()


# What has to reach somebody


def test_what_reaches_nobody(
    monitored_installation: Watched, person: TestPerson
) -> None:
    """A webhook fails, a mail is refused, and a signer's certificate is revoked."""
    appliance, fires = (
        monitored_installation.appliance,
        monitored_installation.prometheus.until_firing,
    )
    appliance.new_request(person, pdfs.one_page())
    whose = f"(SELECT id FROM person WHERE cuil = '{person.cuil}')"  # noqa: S608 (ours)
    state = f"UPDATE credential SET state = '{{}}' WHERE person = {whose}"  # noqa: S608 (ours)
    with monitored_installation.hurting(
        "RubricaWebhooksFail", "RubricaMailFails", "RubricaSignersRevoked"
    ):
        execute(
            appliance,
            "INSERT INTO webhook_endpoint (id, integrator, url, label, events, "
            "secret_sealed, created, failing_since) SELECT 'hook', id, 'https://a/', "
            "'', '[]', '', now(), now() FROM integrator LIMIT 1",
        )
        execute(
            appliance,
            "INSERT INTO mail_message (id, person, kind, detail, state, answer, tries, "
            "due, created, ended, fence) SELECT 'mail', id, 'invitation', '{}', "
            "'refused', '550', 1, now(), now(), now(), 0 FROM person LIMIT 1",
        )
        execute(appliance, state.format("revoked"))

        fires("RubricaWebhooksFail")
        fires("RubricaMailFails")
        fires("RubricaSignersRevoked")

        execute(appliance, state.format("active"))
        execute(appliance, "UPDATE webhook_endpoint SET removed = now()")
        execute(appliance, "DELETE FROM mail_message WHERE id = 'mail'")


def test_document_that_is_gone(
    monitored_installation: Watched, person: TestPerson
) -> None:
    """Whoever asks for it is told so; with the file back a new process forgets it."""
    appliance = monitored_installation.appliance
    request = appliance.new_request(person, pdfs.one_page())
    with (
        monitored_installation.hurting("RubricaDocumentDamaged", along=_BY_ANSWERS),
        appliance.client(person) as client,
    ):
        sha256 = client.get(f"/solicitudes/{request}").json()["sha256"]
        (file,) = appliance.settings.documents_dir.glob(f"*/??/{sha256}.pdf")
        away = file.rename(file.with_suffix(".away"))
        answer = client.get(f"/solicitudes/{request}/original")
        assert (answer.status_code, answer.json()["code"]) == (503, "DOCUMENT_DAMAGED")

        monitored_installation.prometheus.until_firing("RubricaDocumentDamaged")

        away.rename(file)
        restart(monitored_installation, "api")


# What signing stands on


def test_hsm_of_production_that_is_software(monitored_installation: Watched) -> None:
    """As a worker of a production installation hands it over."""
    with (
        monitored_installation.hurting("RubricaSoftwareHsm"),
        handed_over(
            monitored_installation.appliance,
            "signing",
            rubrica_hsm_software_in_production=1,
        ),
    ):
        monitored_installation.prometheus.until_firing("RubricaSoftwareHsm")


def test_hsm_that_refuses_to_sign(
    monitored_installation: Watched, person: TestPerson
) -> None:
    """Each call is one of its faults, and each document has failed."""
    alerts = ("RubricaHsmFaults", "RubricaSignaturesFail")
    with (
        monitored_installation.hurting(*alerts, along=_BY_ANSWERS),
        monitored_installation.appliance.client(person) as client,
    ):
        for _ in range(_MOST_TRIES):
            request = monitored_installation.appliance.new_request(
                person, pdfs.one_page()
            )
            # What keeps the session alive signs as well, and may be refused first.
            with monitored_installation.shim.fault(
                *("C_Sign", "code", _MECHANISM_INVALID), at="firma", times=2
            ):
                sign(client, person, request)
            if monitored_installation.prometheus.firing() >= set(alerts):
                break
        monitored_installation.prometheus.until_firing(
            "RubricaHsmFaults", token="firma", fault="refused"
        )
        # What it does not sign is an operator's to mend: the request is kept.
        monitored_installation.prometheus.until_firing(
            "RubricaSignaturesFail", outcome="HSM_UNAVAILABLE"
        )


def test_token_that_goes(monitored_installation: Watched) -> None:
    """It is told of that token, and is well when that is back."""
    with (
        monitored_installation.hurting("RubricaHsmUnavailable"),
        monitored_installation.shim.fault("*", "code", _DEVICE_REMOVED, at="firma"),
    ):
        monitored_installation.prometheus.until_firing(
            "RubricaHsmUnavailable", token="firma"
        )


def test_pin_that_is_refused(monitored_installation: Watched) -> None:
    """By a worker that starts; with the right one the next start ends it."""
    with monitored_installation.hurting("RubricaHsmPinRefused"):
        with monitored_installation.shim.fault(
            "C_Login", "code", _PIN_INCORRECT, at="firma"
        ):
            restart(monitored_installation, "signing-1")
            monitored_installation.prometheus.until_firing(
                "RubricaHsmPinRefused", token="firma"
            )
        restart(monitored_installation, "signing-1")
    monitored_installation.prometheus.until('rubrica_signing_workers{hsm="ready"} == 2')


def restart(monitored_installation: Watched, role: str) -> None:
    """Kill a role; a process more of it has handed its figures over afterwards."""
    (process,) = monitored_installation.appliance.children(role)
    killed_at = time.time()
    process.kill()
    name, _, number = role.partition("-")
    labels = f'role="{name}",number="{number or 1}"'
    monitored_installation.prometheus.until(f"{_STARTED}{{{labels}}} > {killed_at:.3f}")


def test_role_that_dies_again_and_again(monitored_installation: Watched) -> None:
    """Each time it is started anew, and was up in between."""
    with monitored_installation.hurting("RubricaRoleRestarts"):
        for _ in range(4):
            restart(monitored_installation, "admin")
        monitored_installation.prometheus.until_firing(
            "RubricaRoleRestarts", role="admin"
        )


def test_sandbox_that_hangs_while_many_ask(
    monitored_installation: Watched, person: TestPerson
) -> None:
    """Who finds no place to wait is turned away."""
    request = monitored_installation.appliance.new_request(person, pdfs.one_page())
    with (
        monitored_installation.hurting("RubricaPoolFull", along=_BY_ANSWERS),
        monitored_installation.appliance.client(person) as client,
        stopped(monitored_installation.appliance, "sandbox"),
    ):
        answers = at_once([partial(drawn, client, request)] * 20)
        turned_away = [a for a in answers if a.json()["code"] == "OVERLOADED"]
        assert len(turned_away) > 5
        monitored_installation.prometheus.until_firing(
            "RubricaPoolFull", role="api", pool="sandbox"
        )


def test_documents_that_take_too_long_to_draw(
    monitored_installation: Watched, person: TestPerson
) -> None:
    """The sandbox ends each job that has used its time."""
    request = monitored_installation.appliance.new_request(person, transparent_groups())
    with (
        monitored_installation.hurting("RubricaSandboxCuts", along=_BY_ANSWERS),
        monitored_installation.appliance.client(person) as client,
    ):
        for _ in range(_MOST_TRIES):
            assert drawn(client, request).is_error
            if "RubricaSandboxCuts" in monitored_installation.prometheus.firing():
                break
        monitored_installation.prometheus.until_firing("RubricaSandboxCuts")


def drawn(client: httpx.Client, request: int) -> httpx.Response:
    """Ask for the picture of a page with the stamp."""
    url = f"/solicitudes/{request}/vista-previa"
    return client.post(url, json={}, headers={"Accept": "image/png"})
