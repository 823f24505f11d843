"""The REST API's routes of credentials, over the record on SQLite."""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from sqlalchemy import update

from appliance.database.tables import credential
from appliance.domain.ids import PersonId
from appliance.domain.pki.trust_store import AnchorPurpose
from tests.support.factories.fakes import NOON
from tests.support.factories.held_credential import Held, hold
from tests.support.installation.api import CUIL, ApiServices, Caller, code
from tests.support.installation.installation import Installation
from tests.support.pki.outside_ca import OutsideCa, bundle, der

OUTSIDE = OutsideCa(NOON)


@pytest.fixture
async def api_services(tmp_path: Path) -> AsyncIterator[ApiServices]:
    """Storage and services; the root of `OUTSIDE` is trusted."""
    async with Installation(tmp_path).api() as made:
        sha256 = OUTSIDE.root.fingerprint(hashes.SHA256()).hex()
        await made.trust.add(
            "operator", der(OUTSIDE.root), AnchorPurpose.SIGNERS, sha256
        )
        yield made


@pytest.fixture
async def person(api_services: ApiServices) -> PersonId:
    """A signer."""
    who, _ = await api_services.add_person()
    return who


@pytest.fixture
async def held(api_services: ApiServices, person: PersonId) -> Held:
    """Their credential."""
    return await hold(api_services.store, person, CUIL, api_services.clock.now())


async def test_list_has_every_field(caller: Caller, held: Held) -> None:
    """Each member as docs/api.md has it."""
    (element,) = await (await caller.get("/credenciales")).get_json()

    assert element == {
        "id": held.id,
        "estado": "vigente",
        "modo": "residente",
        "algoritmo": "ec-p256",
        "titular": "Ana Pérez",
        "cuil": CUIL,
        "emisor": "Rúbrica DEMO SIN VALIDEZ",
        "ca": "interna",
        "numeroDeSerie": f"{held.certificate.serial_number:x}",
        "desde": _instant(held.certificate.not_valid_before_utc),
        "hasta": _instant(held.certificate.not_valid_after_utc),
        "acreditacion": "demo",
        "huella": held.certificate.fingerprint(hashes.SHA256()).hex(),
        "revocada": None,
        "motivo": None,
    }


def _instant(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_certificate_that_cannot_be_read_is_not_there(
    api_services: ApiServices, person: PersonId, caller: Caller, held: Held
) -> None:
    """Whoever writes to the record puts any bytes there; the others are listed."""
    other = await hold(api_services.store, person, CUIL, api_services.clock.now())
    async with api_services.store.write() as transaction:
        await transaction.connection.execute(
            update(credential)
            .where(credential.c.id == other.id)
            .values(certificate=b"none")
        )

    listed = await (await caller.get("/credenciales")).get_json()
    answer = await caller.get(f"/credenciales/{other.id}/certificado")

    assert [one["id"] for one in listed] == [held.id]
    assert (await code(answer, 404))["code"] == "CREDENTIAL_NOT_FOUND"


async def test_certificate_past_its_end_is_told(
    api_services: ApiServices, person: PersonId, held: Held
) -> None:
    """`vencida` is a matter of the clock."""
    api_services.clock.at = held.certificate.not_valid_after_utc
    caller = Caller(api_services, await api_services.bearer(person))

    (element,) = await (await caller.get("/credenciales")).get_json()

    assert element["estado"] == "vencida"


async def test_nobody_elses_credentials_are_listed(
    api_services: ApiServices, held: Held
) -> None:
    """A person without any has an empty array; another's is not there."""
    other, _ = await api_services.add_person("20055361682", "otra@example.com")
    caller = Caller(api_services, await api_services.bearer(other))
    here = f"/credenciales/{held.id}"

    assert await (await caller.get("/credenciales")).get_json() == []
    answers = [
        await caller.get(f"{here}/certificado"),
        await caller.post(f"{here}/revocar", {"motivo": "sin_especificar"}),
        await caller.post(f"{here}/cadena", {"cadena": "x"}),
    ]
    for answer in answers:
        assert (await code(answer, 404))["code"] == "CREDENTIAL_NOT_FOUND"


async def test_certificate_is_downloaded_in_both_forms(
    caller: Caller, held: Held
) -> None:
    """PEM with the chain by itself, DER when asked for; to be saved."""
    path = f"/credenciales/{held.id}/certificado"
    pem, der_answer = (
        await caller.get(path),
        await caller.get(path, Accept="application/pkix-cert"),
    )

    chain = x509.load_pem_x509_certificates(await pem.get_data())
    assert chain == [held.certificate, held.ca.issuing]
    assert pem.headers["Content-Type"] == "application/pem-certificate-chain"
    assert await der_answer.get_data() == der(held.certificate)
    assert der_answer.headers["Content-Type"] == "application/pkix-cert"
    for answer, ending in ((pem, ".pem"), (der_answer, ".cer")):
        disposition = answer.headers["Content-Disposition"]
        assert disposition.startswith("attachment")
        assert ending in disposition


async def test_credential_is_revoked_once(caller: Caller, held: Held) -> None:
    """202 and in progress; a second time is a conflict."""
    path = f"/credenciales/{held.id}/revocar"

    first = await caller.post(path, {"motivo": "clave_comprometida"})
    second = await caller.post(path, {"motivo": "clave_comprometida"})

    element = await first.get_json()
    assert first.status_code == 202
    assert (element["estado"], element["motivo"]) == (
        "en_revocacion",
        "clave_comprometida",
    )
    assert element["revocada"] == _instant(NOON)
    assert (await code(second, 409))["code"] == "CREDENTIAL_STATE"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("revocar", {}, "motivo"),
        ("revocar", {"motivo": "keyCompromise"}, "motivo"),
        ("revocar", {"motivo": 1}, "motivo"),
        ("revocar", {"motivo": "cese_de_uso", "x": 1}, "x"),
        ("cadena", {}, "cadena"),
        ("cadena", {"cadena": ""}, "cadena"),
        ("cadena", {"cadena": ["-----BEGIN"]}, "cadena"),
    ],
)
async def test_bodies_are_read_strictly(
    caller: Caller, held: Held, path: str, body: object, field: str
) -> None:
    """400 with the field, and nothing happened."""
    answer = await caller.post(f"/credenciales/{held.id}/{path}", body)

    assert (await code(answer, 400))["field"] == field
    (element,) = await (await caller.get("/credenciales")).get_json()
    assert element["estado"] == "vigente"


async def test_chain_is_imported(caller: Caller, held: Held) -> None:
    """The credential has the certificate of the outside CA."""
    made = OUTSIDE.certify(held.spki, CUIL)
    pem = bundle(made, OUTSIDE.issuing).decode()

    answer = await caller.post(f"/credenciales/{held.id}/cadena", {"cadena": pem})

    element = await answer.get_json()
    assert answer.status_code == 200, element
    assert (element["ca"], element["emisor"]) == ("externa", "AC de afuera")
    downloaded = await caller.get(f"/credenciales/{held.id}/certificado")
    chain = x509.load_pem_x509_certificates(await downloaded.get_data())
    assert chain == [made, OUTSIDE.issuing]


async def test_chain_that_does_not_fit_is_told_by_name(
    caller: Caller, held: Held
) -> None:
    """422, the code, the place in the file, and words with whom it names."""
    made = OUTSIDE.certify(held.spki, "20055361682")
    pem = bundle(made, OUTSIDE.issuing).decode()

    answer = await caller.post(f"/credenciales/{held.id}/cadena", {"cadena": pem})

    members = await code(answer, 422)
    assert members["code"] == "CERTIFICATE_CUIL_DIFFERS"
    assert (members["field"], members["certificado"]) == ("cadena", 0)
    assert "Ana Pérez" in members["detail"]


async def test_new_pin_works_and_is_told_once(caller: Caller, held: Held) -> None:
    """The answer has the PIN, by which the page revokes."""
    del held
    answer = await caller.post("/credenciales/pin-de-revocacion", {})
    pin = (await answer.get_json())["pin"]

    form = {"cuil": CUIL, "pin": pin, "motivo": "cese_de_uso", "confirmo": "si"}
    done = await caller.client.post("/revocar", form=form)

    assert done.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]


async def test_changes_want_a_young_second_factor(
    api_services: ApiServices, person: PersonId, held: Held
) -> None:
    """Seeing does not; revoking, importing and a new PIN do."""
    age_s = api_services.settings.auth.factor_age_s + 1
    caller = Caller(api_services, await api_services.bearer(person, age_s=age_s))
    here = f"/credenciales/{held.id}"

    assert (await caller.get("/credenciales")).status_code == 200
    answers = [
        await caller.post(f"{here}/revocar", {"motivo": "cese_de_uso"}),
        await caller.post(f"{here}/cadena", {"cadena": "x"}),
        await caller.post("/credenciales/pin-de-revocacion", {}),
    ]
    for answer in answers:
        assert (await code(answer, 403))["code"] == "STEP_UP"
