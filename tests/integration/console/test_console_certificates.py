"""The console around certificates: credentials, ends, trust store, the CA's own."""

import hashlib
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pyotp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from sqlalchemy import update

from appliance.database.tables import credential
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.pki.certificates import CertificateRecord, Crl, serial_text
from appliance.domain.vocab import (
    CertificateKind,
    CredentialState,
    EventKind,
    PersonState,
    RevocationReason,
    TaskKind,
    TaskState,
)
from appliance.identity.console_login import SignIn
from appliance.identity.enrolment import Choice
from appliance.keys.credential_store import join
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.people.login_store import LoginSecretStore
from appliance.people.person_store import PersonStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication_store import PublicationStore
from tests.integration.console.forms import (
    audited,
    new_pin,
    sha256,
    upload,
    with_secret,
)
from tests.support.factories.fakes import NOON
from tests.support.factories.held_credential import Held, hold
from tests.support.installation.console import (
    NAME,
    PASSWORD,
    Answer,
    Console,
    write_pki,
)
from tests.support.installation.installation import Installation
from tests.support.pki.outside_ca import (
    OutsideCa,
    bundle,
    der,
    ec_key,
    named,
    spki_of,
)

CUIL = "20055361682"
OUTSIDE = OutsideCa(NOON)
SHA256 = sha256(OUTSIDE)
REFUSED = "Los procesos de firma rechazan esta clave"
# Not the middle of a UUID, which may be of digits alone.
PIN = re.compile(r"(?<![\w-])[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}(?![\w-])")


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console, signed in."""
    async with Installation(tmp_path).console() as made:
        await made.sign_in()
        yield made


async def somebody(console: Console, cuil: str = CUIL) -> tuple[PersonId, Held]:
    """Somebody enrolled, and their credential."""
    person = await console.person(cuil, enrolled=False)
    async with console.services.store.write() as transaction:
        await PersonStore(transaction).move(
            person, PersonState.INVITED, PersonState.ACTIVE
        )
    return person, await hold(console.services.store, person, cuil, console.clock.now())


async def fail_renewal(console: Console, reason: str) -> None:
    """Do what a worker does with the one open task when it cannot be done."""
    now, kinds = console.clock.now(), [TaskKind.RENEW]
    async with console.services.store.write() as transaction:
        tasks = HsmTaskStore(transaction)
        claim = await tasks.claim_next("w", "a", now, timedelta(1), 5, kinds)
        assert claim is not None
        assert await tasks.close(claim, TaskState.FAILED, None, reason)


async def trust(console: Console, **fields: str) -> Answer:
    """Add the root of `OUTSIDE`."""
    given = {"fingerprint": SHA256, "purpose": "signers", **fields}
    return await upload(console, "/admin/trust", bundle(OUTSIDE.root), **given)


# -- somebody's credential ----------------------------------------------------


async def test_certificate_is_saved_with_its_chain(console: Console) -> None:
    """PEM from the person's page; of another person there is none."""
    person, held = await somebody(console)
    here = f"/admin/people/{person}/credentials/{held.id}/certificate.pem"
    assert f'href="{here}"' in (await console.get(f"/admin/people/{person}")).text

    answer = await console.get(here)

    (saved, *_) = x509.load_pem_x509_certificates(answer.text.encode())
    assert saved == held.certificate
    disposition = answer.headers["Content-Disposition"]
    assert f"{saved.serial_number:x}.pem" in disposition
    other, _ = await somebody(console, "20267565393")
    wrong = f"/admin/people/{other}/credentials/{held.id}/certificate.pem"
    assert (await console.get(wrong)).status == 404


async def test_revoked_certificates_are_listed_and_found(console: Console) -> None:
    """The latest first, with reason and serial number; by name and serial, too."""
    listed = "/admin/certificates?state=revoked"
    assert "No se revocó ningún certificado" in (await console.get(listed)).text
    person, held = await somebody(console)
    await somebody(console, "20267565393")
    revoke = f"/admin/people/{person}/credentials/{held.id}/revoke"
    await console.post(revoke, reason="keyCompromise")
    serial = f"{held.certificate.serial_number:x}"

    text = (await console.get(listed)).text
    assert serial in text
    assert "Alguien más podría usar la clave" in text
    assert text.count("<tr>") == 2

    assert serial in (await console.get(f"{listed}&q={serial}")).text
    assert serial not in (await console.get(f"{listed}&q=nadie")).text
    assert serial not in (await console.get("/admin/certificates?q=ana")).text
    assert (await console.get("/admin/certificates?state=active")).status == 400


async def test_person_page_tells_the_credential(console: Console) -> None:
    """State, mode, algorithm, vouching, dates, serial, and what can be done."""
    person, held = await somebody(console)

    text = (await console.get(f"/admin/people/{person}")).text

    here = f"/admin/people/{person}/credentials/{held.id}"
    assert "En uso" in text
    assert "guardada dentro del HSM" in text
    assert "EC-P256" in text
    assert f"{held.certificate.serial_number:x}" in text
    for action in ("revoke", "chain"):
        assert f'href="{here}/{action}"' in text
    assert f'href="{here}/renew"' in text
    assert "hx-get" not in text.partition("<main")[2]


async def test_person_page_says_why_workers_refuse_a_key(console: Console) -> None:
    """Before anybody signs; nothing is said of a key that agrees, nor without a CA."""
    person, held = await somebody(console)
    assert REFUSED not in (await console.get(f"/admin/people/{person}")).text
    ca = write_pki(console)

    async def page(name: str, by: OutsideCa = ca, **values: Any) -> str:
        subject = named(name, f"CUIL {CUIL}")
        made = by.certify(held.spki, CUIL, subject=subject)
        chain = join((der(by.issuing),))
        row = {"certificate": der(made), "chain": chain, **values}
        async with console.services.store.write() as transaction:
            await transaction.connection.execute(
                update(credential).where(credential.c.id == held.id).values(row)
            )
        return (await console.get(f"/admin/people/{person}")).text

    assert REFUSED not in await page("Ana María Núñez")
    renamed = await page("Otra")
    assert REFUSED in renamed
    assert "El nombre del certificado no es el de la persona." in renamed
    assert "El certificado no es de una CA" in await page("Ana María Núñez", OUTSIDE)
    own: dict[str, Any] = {"key_mode": "resident", "cka_id": b"rubrica-keep-alive"}
    assert "La clave que está en el token" in await page("Ana María Núñez", **own)
    for text in (renamed, await page("Otra", certificate=b"none")):
        told, _, _ = text.partition("Vigencia")
        assert f'href="/admin/people/{person}/credentials/reissue"' in told


async def test_certificate_that_cannot_be_read_hides_nothing_else(
    console: Console,
) -> None:
    """Whoever writes to the record puts any bytes there; every page still opens."""
    person, held = await somebody(console)
    write_pki(console)
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            update(credential)
            .where(credential.c.id == held.id)
            .values(certificate=b"none")
        )
    here = f"/admin/people/{person}"

    text = (await console.get(here)).text

    assert REFUSED in text
    assert "El certificado no se puede leer." in text
    assert hashlib.sha256(b"none").hexdigest()[:16] in text
    for path in ("credentials/reissue", f"credentials/{held.id}/revoke"):
        answer = await console.get(f"{here}/{path}")
        assert answer.status == HTTPStatus.OK


async def test_key_of_another_is_told_beside_the_own(console: Console) -> None:
    """Somebody with two keys in use; nobody is led to revoke what is another's."""
    ana, theirs = await somebody(console)
    luis = await console.person("20267565393", "Luis Paz")
    ca = write_pki(console)
    made = ca.certify(theirs.spki, CUIL)
    row = {"certificate": der(made), "chain": join((der(ca.issuing),))}
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            update(credential)
            .where(credential.c.id == theirs.id)
            .values(person=luis, **row)
        )

    text = (await console.get(f"/admin/people/{luis}")).text
    listed = (await console.get("/admin/people")).text

    cards = re.findall(r"<article.*?</article>", text, re.DOTALL)
    assert len(cards) == 2
    (card,) = (one for one in cards if f"{made.serial_number:x}" in one)
    assert "El CUIL del certificado no es el de la persona." in card
    assert "Puede ser la clave de otra persona" in card
    assert "Empezar de nuevo" not in card
    assert listed.count(f'href="/admin/people/{luis}"') == 1
    assert listed.count(f'href="/admin/people/{ana}"') == 1


async def test_credential_is_revoked_with_its_reason(console: Console) -> None:
    """Asked for, recorded with before and after, and seen to be on its way."""
    person, held = await somebody(console)
    here = f"/admin/people/{person}/credentials/{held.id}/revoke"
    asked = await console.get(here)
    assert "Esto no se puede deshacer" in asked.text

    answer = await console.post(here, reason="keyCompromise")

    assert answer.status == 303
    event = await audited(console, EventKind.REVOCATION_ASKED)
    assert event.detail["reason"] == "keyCompromise"
    assert (event.detail["before"], event.detail["after"]) == (
        {"state": "active"},
        {"state": "revoking"},
    )
    text = (await console.get(f"/admin/people/{person}")).text
    assert "Alguien más podría usar la clave" in text
    assert "hx-get" in text
    assert "Revocar<" not in text
    again = await console.post(here, reason="keyCompromise")
    assert again.status == 409
    assert "CREDENTIAL_STATE" in again.text


@pytest.mark.parametrize("reason", ["", "cACompromise", "certificateHold"])
async def test_revocation_needs_a_reason_of_the_list(
    console: Console, reason: str
) -> None:
    """The form comes again, and the credential stays."""
    person, held = await somebody(console)

    answer = await console.post(
        f"/admin/people/{person}/credentials/{held.id}/revoke", reason=reason
    )

    assert answer.status == 422
    assert answer.fault_of("reason")
    view = await console.front.credentials.get(held.id)
    assert view.state is CredentialState.ACTIVE


async def test_credential_of_another_person_is_not_there(console: Console) -> None:
    """The address has to fit, on every page of it."""
    _, held = await somebody(console)
    other = await console.person("20267565393", "Luis")

    for path in ("revoke", "chain"):
        answer = await console.get(
            f"/admin/people/{other}/credentials/{held.id}/{path}"
        )
        assert answer.status == 404
        assert "CREDENTIAL_NOT_FOUND" in answer.text
    for path in ("revoke", "renew"):
        answer = await console.post(
            f"/admin/people/{other}/credentials/{held.id}/{path}"
        )
        assert answer.status == 404


async def test_renewal_is_asked_for(console: Console) -> None:
    """A task of the HSM, by the administrator."""
    person, held = await somebody(console)

    here = f"/admin/people/{person}/credentials/{held.id}/renew"
    assert f"{held.certificate.serial_number:x}" in (await console.get(here)).text

    answer = await console.post(here)

    assert answer.status == 303
    event = await audited(console, EventKind.TASK_CREATED)
    assert (event.detail["kind"], event.detail["credential"]) == ("renew", held.id)
    text = (await console.get(answer.location)).text
    assert "La renovación quedó pedida." in text
    assert "Renovación en curso" in text
    assert "hx-get" in text
    assert f"{here}" not in text
    await console.post(here)
    await audited(console, EventKind.TASK_CREATED)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("BUSY", "La clave estaba en uso en ese momento"),
        ("CERTIFICATE_STATE", "la persona estaba deshabilitada"),
        ("attempts used up", "varias veces"),
        ("of another CA", "el registro de ese momento"),
    ],
)
async def test_renewal_that_failed_is_told(
    console: Console, reason: str, told: str
) -> None:
    """Why, on the person's page, until another one is asked for."""
    person, held = await somebody(console)
    here = f"/admin/people/{person}/credentials/{held.id}/renew"
    await console.post(here)
    await fail_renewal(console, reason)

    text = (await console.get(f"/admin/people/{person}")).text

    assert "La renovación pedida el" in text
    assert told in text
    assert f'href="{here}"' in text
    assert "hx-get" not in text.partition("<main")[2]
    console.clock.forward(1)
    await console.post(here)
    assert told not in (await console.get(f"/admin/people/{person}")).text


async def test_key_that_could_not_be_made_is_told(console: Console) -> None:
    """The page does not say for ever that the HSM is making it."""
    person = await with_secret(console)
    here = f"/admin/people/{person}"
    assert "El HSM está creando la clave" in (await console.get(here)).text

    now = console.clock.now()
    async with console.services.store.write() as transaction:
        assert await HsmTaskStore(transaction).expire(now, now, "attempts used up")

    text = (await console.get(here)).text
    assert "No se pudo crear la clave." in text
    assert "El HSM está creando la clave" not in text
    assert f'href="{here}/credentials/reissue"' in text


async def test_chain_is_imported_and_told(console: Console) -> None:
    """The page says that an outside CA issued it, and offers no renewal."""
    person, held = await somebody(console)
    here = f"/admin/people/{person}/credentials/{held.id}"
    assert (await trust(console)).status == 303
    pem = bundle(OUTSIDE.certify(held.spki, CUIL), OUTSIDE.issuing)

    answer = await upload(console, f"{here}/chain", pem)

    assert answer.status == 303
    event = await audited(console, EventKind.CERTIFICATE_IMPORTED)
    assert event.detail["before"] != event.detail["after"]
    text = (await console.get(f"/admin/people/{person}")).text
    assert "una autoridad externa" in text
    assert f"{here}/renew" not in text
    renewed = await console.post(f"{here}/renew")
    assert renewed.status == 409
    assert "se renueva ahí, no acá" in renewed.text
    again = await upload(console, f"{here}/chain", pem)
    assert "La credencial ya firma con ese certificado." in again.text
    assert "también" in (await console.get(f"{here}/revoke")).text


async def test_chain_that_does_not_fit_is_told_at_the_file(console: Console) -> None:
    """In words, with whom it names; nothing changed."""
    person, held = await somebody(console)
    here = f"/admin/people/{person}/credentials/{held.id}/chain"
    await trust(console)
    wrong = bundle(OUTSIDE.certify(spki_of(ec_key()), CUIL), OUTSIDE.issuing)

    for content, told in ((wrong, "es de otra clave"), (b"x", "no es una cadena")):
        answer = await upload(console, here, content)
        assert answer.status == 422
        assert told in answer.fault_of("file")
    assert (await console.post(here)).fault_of("file")
    assert not (await console.front.credentials.get(held.id)).outside


async def test_new_pin_is_shown_once(console: Console) -> None:
    """On one page; the audit says that there is one, not which."""
    person, _ = await somebody(console)

    here = f"/admin/people/{person}"
    assert f'href="{here}/credentials/pin"' in (await console.get(here)).text

    answer = await new_pin(console, here)

    (pin,) = {str(found) for found in PIN.findall(answer.text)}
    event = await audited(console, EventKind.REVOCATION_PIN_SET)
    assert pin not in str(event)
    for path in (f"/admin/people/{person}", "/admin/audit"):
        assert pin not in (await console.get(path)).text


async def test_pin_outlives_a_page_that_is_loaded_anew(console: Console) -> None:
    """The form sent again, and one without a right code, make no other PIN."""
    person, _ = await somebody(console)
    here = f"/admin/people/{person}/credentials/pin"
    asked = await console.post(here, code="1")
    assert asked.fault_of("code")
    assert not PIN.findall(asked.text)
    form = {**await console.version(here), "code": console.code()}
    assert PIN.findall((await console.post(here, **form)).text)

    again = await console.post(here, **form)

    assert again.status == 412
    assert "PIN de revocación creado" in again.text
    assert not again.fault_of("code")
    await audited(console, EventKind.REVOCATION_PIN_SET)
    await console.post(here, version="", code=console.code())
    await audited(console, EventKind.REVOCATION_PIN_SET)


async def test_forgotten_password_begins_anew(console: Console) -> None:
    """Revoked, secrets gone, a link; the old page of secrets works for a new key."""
    person, held = await somebody(console)
    here = f"/admin/people/{person}/credentials/reissue"
    assert "Segundo oficial" not in (await console.get(here)).text

    answer = await console.post(here, code=console.code())

    assert answer.status == 200
    (code,) = set(re.findall(r"/alta/([A-Za-z0-9_-]{43})", answer.text))
    view = await console.services.enrolment.look(code)
    assert view.person == person
    credential = await console.front.credentials.get(held.id)
    assert (credential.state, credential.reason) == (
        CredentialState.REVOKING,
        RevocationReason.SUPERSEDED,
    )
    event = await audited(console, EventKind.PERSON_REISSUED)
    assert event.detail["before"] == {"state": "active", "credentials": [held.id]}
    async with console.services.store.read() as transaction:
        assert await PersonStore(transaction).signing_secret(person) is None
        assert await LoginSecretStore(transaction).secret(person) is None
        assert await HsmTaskStore(transaction).any_open(TaskKind.REVOKE)
    assert (await console.post(here, code=console.code())).status == 409


async def test_revoked_certificate_is_not_revoked_again(console: Console) -> None:
    """The page says what is so, and offers what helps; a key in the making as well."""
    person, held = await somebody(console)
    here = f"/admin/people/{person}"
    before = (await console.get(here)).text
    assert "Una contraseña olvidada" in before
    assert "Empezar un alta nueva" not in before
    await console.post(f"{here}/credentials/{held.id}/revoke", reason="keyCompromise")

    text = (await console.get(here)).text
    assert "El certificado está revocado: esta persona no puede firmar." in text
    assert "Empezar un alta nueva" in text
    assert "Una contraseña olvidada" not in text
    assert "Generar un PIN nuevo" not in text
    asked = (await console.get(f"{here}/credentials/reissue")).text
    assert "el certificado ya está revocado" in asked
    assert "se revoca" not in asked
    assert "Revocar y generar" not in asked

    made = await console.post(f"{here}/credentials/reissue", code=console.code())
    (code,) = set(re.findall(r"/alta/([A-Za-z0-9_-]{43})", made.text))
    console.clock.forward(30)
    await console.services.host.beat(console.services.store, console.clock.now())
    view = await console.services.enrolment.look(code)
    totp = pyotp.TOTP(view.totp_secret).at(console.clock.now())
    choice = Choice("una clave de ingreso", "una clave de firma", totp, view.opening)
    await console.services.enrolment.complete(code, choice)
    text = (await console.get(here)).text
    assert "El HSM está creando la clave" in text
    assert "Empezar un alta nueva" not in text


async def test_beginning_anew_needs_the_officers_code(console: Console) -> None:
    """A wrong or used code changes nothing."""
    person, held = await somebody(console)
    here = f"/admin/people/{person}/credentials/reissue"

    answer = await console.post(here, code="000000")

    assert answer.status == 422
    assert answer.fault_of("code")
    view = await console.front.credentials.get(held.id)
    assert view.state is CredentialState.ACTIVE


# -- the trust store -----------------------------------------------------------


async def test_root_is_added_and_removed(console: Console) -> None:
    """With the fingerprint that its CA publishes; both are recorded."""
    assert "Todavía no hay raíces" in (await console.get("/admin/trust")).text

    assert (await trust(console)).status == 303
    added = await audited(console, EventKind.ANCHOR_ADDED)
    listed = await console.get("/admin/trust")
    (remove,) = set(re.findall(r'href="(/admin/trust/[^"]+/remove)"', listed.text))
    assert "AC de afuera raíz" in listed.text
    assert SHA256 in re.sub(r":<wbr>", "", listed.text)
    assert "AC de afuera raíz" in (await console.get(remove)).text

    assert (await console.post(remove)).status == 303
    removed = await audited(console, EventKind.ANCHOR_REMOVED)
    assert removed.detail["before"] == added.detail["after"]
    assert (await console.post(remove)).location == "/admin/trust"
    assert "AC de afuera" not in (await console.get("/admin/trust")).text


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"fingerprint": ""}, "fingerprint"),
        ({"fingerprint": "0" * 64}, "fingerprint"),
        ({"purpose": "all"}, "purpose"),
    ],
)
async def test_root_refused(
    console: Console, fields: dict[str, str], field: str
) -> None:
    """The fault stands at its field; nothing is trusted."""
    answer = await trust(console, **fields)

    assert answer.status == 422
    assert answer.fault_of(field)
    assert await console.front.trust.anchors() == []


async def test_file_that_is_no_root(console: Console) -> None:
    """No file, no certificate, one that is not a root, the same one twice."""
    given = {"fingerprint": SHA256, "purpose": "signers"}
    missing = await console.post("/admin/trust", **given)
    garbage = await upload(console, "/admin/trust", b"x", **given)
    issuing = await upload(console, "/admin/trust", der(OUTSIDE.issuing), **given)
    await trust(console)
    twice = await trust(console)

    for answer in (missing, garbage, issuing, twice):
        assert answer.status == 422
        assert answer.fault_of("file")


# -- ends and the CA's own ---------------------------------------------------------


async def test_ends_are_listed_with_the_time_left(console: Console) -> None:
    """Soonest first, with the way to the person; counted on the home page."""
    assert "Ningún certificado vence" in (await console.get("/admin/certificates")).text
    person, held = await somebody(console)
    console.clock.at = held.certificate.not_valid_after_utc - timedelta(days=3, hours=1)
    await console.sign_in()

    listed = (await console.get("/admin/certificates")).text

    assert f'href="/admin/people/{person}"' in listed
    assert "Faltan 3 días" in listed
    assert re.search(
        r'href="/admin/certificates\?days=30"[^>]*>\s*<b>1</b>',
        (await console.get("/admin/")).text,
    )
    health = (await console.get("/admin/health")).text
    assert "Certificados por vencer" in health
    assert '<a href="/admin/certificates?days=30">1 firmante</a>' in health
    assert (await console.get("/admin/certificates?cursor=x")).status == 400


async def test_list_has_as_many_ends_as_the_number_that_leads_to_it(
    console: Console,
) -> None:
    """Thirty days, not ninety; the filter can be taken off, and others chosen."""
    ends = {"20055361682": 29, "20267565393": 31, "27111111117": 89}
    for cuil, days in ends.items():
        person = await console.person(cuil, f"Firmante {days}", enrolled=False)
        end = console.clock.now() + timedelta(days=days)
        await hold(
            console.services.store, person, cuil, console.clock.now(), not_after=end
        )

    async def listed(query: str) -> list[str]:
        text = (await console.get(f"/admin/certificates{query}")).text
        return re.findall(r">Firmante (\d+)</a>", text)

    numbers, _ = await console.front.views.home()
    ends_soon = await console.front.expiry.overview()

    assert numbers.ending == ends_soon.signers == 1
    assert await listed("?days=30") == ["29"]
    assert await listed("") == ["29", "31", "89"]
    assert await listed("?days=7") == []
    assert await listed("?days=30&q=Firmante") == ["29"]
    assert await listed("?q=Firmante") == ["29", "31", "89"]
    shown = (await console.get("/admin/certificates?days=30")).text
    assert "Vencen dentro de: <b>30 días</b>" in shown
    assert 'href="/admin/certificates"' in shown
    assert (await console.get("/admin/certificates?days=60")).status == 400
    both = await console.get("/admin/certificates?state=revoked&days=30")
    assert "Vencen dentro de: <b>" not in both.text


async def test_authority_tells_certificates_and_crls(console: Console) -> None:
    """Root, issuing CA and responder with fingerprints and downloads; the CRL."""
    empty = await console.get("/admin/authority")
    assert "Todavía no hay autoridad" in empty.text
    ca = write_pki(console)
    key_id = x509.SubjectKeyIdentifier.from_public_key(ca.issuing.public_key())
    responder = ca.certify(spki_of(ec_key()), CUIL)
    async with console.services.store.write() as transaction:
        await CertificateStore(transaction).add(
            CertificateRecord(
                serial_text(responder.serial_number),
                CertificateKind.OCSP,
                key_id.digest.hex(),
                None,
                der(responder),
                responder.not_valid_before_utc,
                responder.not_valid_after_utc,
            )
        )
        await PublicationStore(transaction).put_crl(
            Crl(key_id.digest.hex(), 1, b"crl", NOON, NOON + timedelta(days=7))
        )

    text = (await console.get("/admin/authority")).text

    for made in (ca.root, ca.issuing, responder):
        sha256 = made.fingerprint(hashes.SHA256()).hex()
        assert sha256 in text.replace(":<wbr>", "")
        saved = await console.get(f"/admin/authority/{sha256}.cer")
        assert saved.status == 200
        assert saved.headers["Content-Type"] == "application/pkix-cert"
        assert saved.headers["Content-Disposition"].startswith("attachment")
    assert "/pki/ca.crl" in text
    assert "Atrasada" not in text
    assert (await console.get(f"/admin/authority/{'0' * 64}.cer")).status == 404
    console.clock.forward(8 * 86_400)
    await console.sign_in()
    assert "Atrasada" in (await console.get("/admin/authority")).text


async def test_own_root_cannot_be_removed(console: Console) -> None:
    """It is listed first, and has no way out."""
    write_pki(console)

    text = (await console.get("/admin/trust")).text

    assert "Rúbrica CA interna raíz" in text
    assert "/remove" not in text


async def test_second_officer_is_asked_for_in_production(console: Console) -> None:
    """Somebody else, with password and code; nobody is their own witness."""
    made = await console.services.console.create_user("operator", "otra", PASSWORD)
    session_of = await console.services.console.sign_in(
        _typed(console, NAME), "192.0.2.1"
    )
    sign_ins = console.front.console
    other = _totp(made.totp_uri)
    console.clock.forward(30)

    agreed = await sign_ins.witness(
        session_of.session, _sign_in("otra", other.at(console.clock.now())), "192.0.2.2"
    )

    assert agreed == made.user.actor
    for typed in (
        _sign_in("otra", other.at(console.clock.now())),
        _sign_in("otra", "000000"),
        _sign_in("nadie", "000000"),
        _typed(console, NAME),
    ):
        with pytest.raises(ApplianceError) as caught:
            await sign_ins.witness(session_of.session, typed, "192.0.2.2")
        assert caught.value.code is ErrorCode.LOGIN_FAILED


def _totp(uri: str) -> pyotp.TOTP:
    made = pyotp.parse_uri(uri)
    assert isinstance(made, pyotp.TOTP)
    return made


def _sign_in(name: str, code: str) -> SignIn:
    return SignIn(name, PASSWORD, code)


def _typed(console: Console, name: str) -> SignIn:
    return _sign_in(name, console.code())
