"""The whole story where each role is a user of its own in the database.

Whatever a role does, PostgreSQL refuses it nothing that is its work: its log is read
at the end. And whatever it does it has loaded as it began: the files that the roles
were started from are taken away before the first of them is asked anything.
"""

import base64
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Final

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.ocsp import OCSPRequestBuilder
from playwright.async_api import Page, expect

from appliance.api.app import create_api
from appliance.bootstrap import ServiceRegistry
from appliance.database.rights import Role
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.vocab import SignatureLevel, TimestampPolicy
from tests.support.appliance.administrators import (
    Administrator,
    build_town,
    enrol,
    new_administrator,
)
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    BATCHES,
    backend_of,
    prepared,
    ready_batch,
)
from tests.support.appliance.http_calls import (
    code_of,
    log_in,
    sign,
    signed_pdf,
    state_of,
)
from tests.support.appliance.separate_users import AppliancePerUser, SeparateUsers
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.documents import pdfs
from tests.support.documents.validators import pyhanko_valid
from tests.support.faults.fault_injection import held
from tests.support.patience import CALL_S
from tests.support.pki.outside_ca import bundle
from tests.support.pki.timestamps import openssl
from tests.support.processes.installed_copy import Installed
from tests.support.processes.plain_http import NO_TLS
from tests.support.processes.scratch import short_folder
from tests.support.services.outside_services import (
    FIRST,
    OutsideServices,
    running_outside_services,
)

_LONGEST_S: Final = 120.0
_ASKING: Final = tuple(
    {"Accept": accept, "Accept-Language": language}
    for accept in ("text/html", "application/json")
    for language in ("es", "en")
)
"""As browsers and programs ask."""
_LINK: Final = re.compile(r'href="(/admin/[^"#]*)')
_CHANGING: Final = re.compile(r"/(language|logout|download|original|signed)")


@pytest.fixture(scope="module")
def world() -> Iterator[OutsideServices]:
    """TSAs and a CA outside."""
    with running_outside_services() as opened:
        yield opened


@pytest.fixture(scope="module")
def appliance(world: OutsideServices) -> Iterator[AppliancePerUser]:
    """Roles that were started one by one, and their files taken away."""
    with SeparateUsers.made() as cluster, short_folder() as folder:
        installed = Installed.made(folder)
        more = f"{world.settings}\n[timestamps]\npublic = true\n"
        made = AppliancePerUser(folder, cluster, more, installed)
        try:
            made.set_up()
            made.start()
            installed.take_away()
            yield made
        finally:
            made.close()
        assert made.refused() == []
        assert "store.permission_denied" not in made.log.read_text()


@pytest.fixture(scope="module")
def signer(appliance: AppliancePerUser) -> TestPerson:
    """Somebody who signs by REST."""
    return appliance.new_person("Elena Ríos")


@pytest.fixture
def administrator(appliance: AppliancePerUser) -> Administrator:
    """Somebody new."""
    return new_administrator(appliance)


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that happens by itself."""
    end = time.monotonic() + _LONGEST_S
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.2)


async def test_invited_person_enrols(
    page: Page,
    open_page: Opener,
    appliance: AppliancePerUser,
    administrator: Administrator,
) -> None:
    """The console records a person, who chooses passwords and gets a certificate."""
    await administrator.sign_in(page, "/admin/people/new")
    await page.get_by_label("CUIL").fill(appliance.next_cuil())
    await page.get_by_label("Nombre", exact=True).fill("Eva Ñandú")
    await page.get_by_label("Correo").fill("eva@demo.example")
    await page.get_by_label("Una persona de prueba").check()
    await page.get_by_role("button", name="Generar el enlace").click()
    link = await page.get_by_role("textbox", name="Enlace de alta").text_content()
    assert link is not None
    await page.get_by_role("link", name="Ya lo entregué").click()
    theirs = await open_page("phone")
    await theirs.goto(link)
    await enrol(theirs)

    await page.reload()
    issuer = page.get_by_role("definition").filter(has_text="DEMO SIN VALIDEZ")
    await expect(issuer).to_be_visible()


def test_rest_signs_rejects_and_signs_a_batch(
    appliance: AppliancePerUser, signer: TestPerson
) -> None:
    """One document, one that is refused, several at once."""
    request, rejected = appliance.new_requests(signer, pdfs.one_page(), 2)
    several = appliance.new_requests(signer, pdfs.pages(2), 3)
    body = {"solicitudIds": several, "password": signer.signing_password}
    with appliance.client(signer) as client:
        wrong = sign(client, signer, request, password="una clave que no es")
        pdf = signed_pdf(client, signer, request)
        refusal = {"motivo": "No es mi contrato."}
        told = client.post(f"/solicitudes/{rejected}/rechazar", json=refusal)
        answer = client.post("/solicitudes/firmar/lote", json=body)
        assert answer.status_code in {200, 202}, answer.text
        until(lambda: {state_of(client, each) for each in several} == {"firmada"})

        assert wrong.status_code == 403
        assert pdf.startswith(pdfs.one_page())
        assert told.status_code == 200, told.text
        assert state_of(client, rejected) == "rechazada"


def test_signing_in_with_every_look(
    appliance: AppliancePerUser, signer: TestPerson
) -> None:
    """By password and code; stamps in every font, with all that they may show."""
    looks: list[dict[str, object]] = [
        {"fontName": name, "fontStyle": style}
        for name in ("Serif", "SansSerif", "Monospaced")
        for style in ("PLAIN", "BOLD_ITALIC")
    ]
    looks.append({"motivo": "Conformidad: añejo €", "lugar": "Rosario", "qr": True})
    requests = appliance.new_requests(signer, pdfs.pages(2), len(looks))
    with appliance.client() as client:
        answer = client.post(
            "/auth/otp",
            json={
                "loginToken": log_in(client, signer),
                "codigo": code_of(appliance, signer),
            },
        )
        assert answer.status_code == 200, answer.text
        client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        listed = client.get("/solicitudes").json()
        for request, look in zip(requests, looks, strict=True):
            told = client.post(f"/solicitudes/{request}/vista-previa", json=look)
            assert told.status_code == 200, told.text
            pdf = signed_pdf(client, signer, request, **look)
        credentials = client.get("/credenciales")

    assert {*requests} <= {one["solicitudId"] for one in listed}
    assert credentials.status_code == 200
    assert pyhanko_valid(pdf, appliance.roots)


def test_backend_uploads_documents(appliance: AppliancePerUser) -> None:
    """One twice under a key, one that is repaired; shown, fetched, deleted."""
    path, headers = "/api/integration/documents", {"Content-Type": "application/pdf"}
    keyed = {**headers, "Idempotency-Key": "k"}
    with backend_of(appliance) as backend:
        answers = [
            backend.client.post(path, content=pdfs.one_page(), headers=keyed),
            backend.client.post(path, content=pdfs.one_page(), headers=keyed),
            backend.client.post(path, content=pdfs.wrong_startxref(), headers=headers),
        ]
        made = [each.json()["documentoId"] for each in answers]
        listed = backend.client.get(path).json()
        content = backend.client.get(f"{path}/{made[0]}/content").content
        gone = [backend.client.delete(f"{path}/{one}") for one in {*made}]

    assert [each.status_code for each in answers] == [201] * 3
    assert made[0] == made[1]
    assert {each["documentoId"] for each in listed} == {*made}
    assert content == pdfs.one_page()
    assert {each.status_code for each in gone} == {204}


def test_backend_asks_for_batches(
    appliance: AppliancePerUser, signer: TestPerson
) -> None:
    """One that is ready, with a repaired copy, one refused, and one taken back."""
    good, damaged, broken = (
        {"contenido": base64.b64encode(pdf).decode(), "sello": {"page": 1}}
        for pdf in (pdfs.one_page("Lote"), pdfs.wrong_startxref(), b"Hola")
    )
    with backend_of(appliance) as backend:

        def ask(key: str, *documents: Mapping[str, object]) -> httpx.Response:
            return backend.client.post(
                BATCHES,
                json={"firmante": {"cuil": signer.cuil}, "documentos": documents},
                headers={"Idempotency-Key": key},
            )

        made = ready_batch(backend.client, ask("a", good, damaged))
        refused = prepared(backend.client, ask("b", good, broken))
        with held(appliance, "chores"):
            lote = ask("c", good).json()["loteId"]
            ended = backend.client.post(f"{BATCHES}/{lote}/cancel")

    assert made["estados"] == {"pendiente": 2}
    assert [each["code"] for each in refused["errors"]] == ["PDF_MALFORMED"]
    assert ended.json()["estado"] == "cancelado"


def test_no_address_fails(appliance: AppliancePerUser, signer: TestPerson) -> None:
    """As a browser and as a program, in both languages, signed in and not."""

    async def walk(front: ServiceRegistry) -> list[str]:
        rules = create_api(front).url_map.iter_rules()
        return [re.sub(r"<[^>]+>", "7", rule.rule) for rule in rules]

    paths = [*appliance.do(walk), "/nada"]
    framed = ["/", "/embed/?sessionToken=x", "/nada", "/embed/v/7/boot.js"]
    with (
        appliance.client() as anybody,
        appliance.client(signer) as bearer,
        httpx.Client(
            base_url=appliance.iframe_url, verify=NO_TLS, timeout=CALL_S
        ) as frame,
    ):
        faults = [
            (method, path, answer.text)
            for client, asked in ((anybody, paths), (bearer, paths), (frame, framed))
            for path, method, headers in product(asked, ("GET", "POST"), _ASKING)
            if (answer := client.request(method, path, headers=headers)).is_server_error
        ]

    assert faults == []


def test_authority_answers(appliance: AppliancePerUser, tmp_path: Path) -> None:
    """Certificates, lists, OCSP and timestamps."""
    asked = tmp_path / "asked"
    digest = hashlib.sha256().hexdigest()
    openssl("-query", "-digest", digest, "-sha256", "-cert", "-out", asked)
    with appliance.client() as client:
        root, ca = (
            x509.load_der_x509_certificate(client.get(f"/pki/{name}.cer").content)
            for name in ("root", "ca")
        )
        about = OCSPRequestBuilder().add_certificate(ca, root, hashes.SHA256())
        questions = {
            "/tsa": ("timestamp-query", asked.read_bytes()),
            "/pki/ocsp": ("ocsp-request", about.build().public_bytes(Encoding.DER)),
        }
        statuses = [
            client.post(
                path, content=content, headers={"Content-Type": f"application/{kind}"}
            ).status_code
            for path, (kind, content) in questions.items()
        ]
        lists = [client.get(f"/pki/{name}.crl").status_code for name in ("root", "ca")]

    assert statuses == lists == [200, 200]


async def test_frame_signs_and_rejects(
    appliance: AppliancePerUser,
    site: FrameSite,
    person: TestPerson,
    open_page: Opener,
) -> None:
    """Two documents that the host's page brings."""
    one, two = await open_page(), await open_page()
    await site.open(one, person, autoLoadFile=file_of(pdfs.one_page()))
    await ceremony.whole(site.frame(one), person)
    await site.wait(one, "signature.completed")
    await site.open(two, person, autoLoadFile=file_of(pdfs.pages(2)))
    await ceremony.read(site.frame(two))
    await site.next_code(person)
    await ceremony.give_code(site.frame(two), person)
    await ceremony.at(site.frame(two), "place")
    await site.frame(two).get_by_role("button", name="Rechazar…").click()
    await ceremony.refuse(site.frame(two))
    await site.wait(two, "rejected")

    assert sorted(site.states(person)) == ["firmada", "rechazada"]
    assert appliance.refused() == []


def test_chores_raise_levels_and_end_what_lapses(
    appliance: AppliancePerUser, world: OutsideServices, signer: TestPerson
) -> None:
    """What goes outside, and what is due by itself, is done by `chores`."""
    root = appliance.folder / "outside-root.pem"
    root.write_bytes(bundle(world.ca.root))
    fingerprint = world.ca.root.fingerprint(hashes.SHA256()).hex()
    added = appliance.rubrica(
        *("trust", "add", str(root)),
        *("--purpose", "timestamps", "--fingerprint", fingerprint),
    )
    assert added.returncode == 0, added.stderr
    wishes = ProfileWishes(SignatureLevel.B_LT, TimestampPolicy.REQUIRED, tsa=(FIRST,))
    raised = appliance.new_request(signer, pdfs.one_page(), wishes=wishes)
    lapsing = appliance.new_request(signer, pdfs.one_page())
    appliance.let_lapse(lapsing)

    with appliance.client(signer) as client:
        sign(client, signer, raised)
        until(lambda: state_of(client, raised) == "firmada")
        until(lambda: state_of(client, lapsing) == "vencida")
        assert sign(client, signer, raised).json()["nivel"] == "B-LT"
    tried = appliance.rubrica_as(Role.CHORES, "timestamps", "try")
    assert tried.stdout.count(": good") == 2, tried.stderr


def test_commands_work_as_their_users(appliance: AppliancePerUser) -> None:
    """The owner's and the signing worker's, on the record and the HSM."""
    person = appliance.new_person("Rocío Vera")
    serial = _serial(appliance, person)
    done = [
        appliance.rubrica("certificate", "revoke", serial, "--reason", "superseded"),
        appliance.rubrica_as(Role.SIGNING, "hsm", "renew-tsa"),
        appliance.rubrica_as(Role.SIGNING, "hsm", "anchors"),
        appliance.rubrica_as(Role.SIGNING, "hsm", "rotate-master"),
        appliance.rubrica("secrets", "rotate", "data"),
        appliance.rubrica("secrets", "rotate", "document"),
        appliance.rubrica("secrets", "status"),
        appliance.rubrica("levels", "status"),
        appliance.rubrica("migrate"),
        appliance.rubrica("audit", "verify"),
    ]

    assert [one.stderr for one in done if one.returncode != 0] == []
    assert done[-2].stdout.strip() == "current"
    assert "all whole" in done[-1].stdout
    crl = httpx.get(f"{appliance.base_url}/pki/ca.crl", verify=NO_TLS, timeout=CALL_S)
    assert crl.status_code == 200


def _serial(appliance: Appliance, person: TestPerson) -> str:
    """Of somebody's certificate."""
    listed = appliance.rubrica("certificate", "list").stdout
    (line,) = [line for line in listed.splitlines() if person.name in line]
    return line.split()[0]


async def test_every_page_of_the_console_opens(
    page: Page, appliance: AppliancePerUser, administrator: Administrator
) -> None:
    """With something on each; whatever is linked from one is followed."""
    build_town(appliance)
    await administrator.sign_in(page)
    cookies = {
        str(cookie.get("name")): str(cookie.get("value"))
        for cookie in await page.context.cookies(administrator.url())
    }
    statuses: dict[str, int] = {}
    waiting = ["/admin/"]
    async with httpx.AsyncClient(
        base_url=appliance.admin_url, cookies=cookies, verify=NO_TLS, timeout=CALL_S
    ) as client:
        while waiting:
            path = waiting.pop().replace("&amp;", "&")
            kind = re.sub(r"[0-9a-f-]{12,}|\d+", "#", path.partition("?")[0])
            if kind in statuses or _CHANGING.search(path):
                continue
            answer = await client.get(path)
            statuses[kind] = answer.status_code
            waiting += _LINK.findall(answer.text)

    assert len(statuses) > 30
    assert set(statuses.values()) <= {200, 303}, statuses
    assert appliance.refused() == []
