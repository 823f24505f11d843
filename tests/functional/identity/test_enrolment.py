"""Enrolment by a link, up to the first signature, on a whole appliance."""

import httpx
import pyotp

from appliance.bootstrap import ServiceRegistry
from appliance.domain.ids import PersonId
from appliance.people.person_store import PersonStore
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig
from tests.support.faces.enrolment_page import opening_of, seed_of
from tests.support.patience import CALL_S

CUIL = "27314159263"


async def _person(front: ServiceRegistry) -> PersonId:
    async with front.core.store.read() as transaction:
        person = await PersonStore(transaction).by_cuil(CUIL)
    assert person is not None
    return person.id


def test_invited_person_enrols_and_signs(appliance: Appliance) -> None:
    """From the operator's link to a valid signature, with nobody else's help."""
    invited = appliance.rubrica(
        *("person", "invite", "--cuil", CUIL, "--name", "Eva Ríos"),
        *("--email", "eva@demo.example", "--vouched-by", "demo"),
    )
    assert invited.returncode == 0, invited.stderr
    url = invited.stdout.splitlines()[0]
    assert url.startswith(f"{appliance.base_url}/alta/")

    page = httpx.get(url, timeout=CALL_S).text
    totp = pyotp.TOTP(seed_of(page))
    login, signing = "una clave de ingreso", "una clave de firma"
    done = httpx.post(
        url,
        data={
            "login_password": login,
            "login_password_again": login,
            "signing_password": signing,
            "signing_password_again": signing,
            "totp_code": totp.now(),
            "opening": opening_of(page),
        },
        timeout=CALL_S,
    )

    assert "ya podés firmar" in done.text
    again = httpx.get(url, timeout=CALL_S)
    assert (again.status_code, "<form" in again.text) == (200, False)
    person_id = appliance.do(_person)
    person = TestPerson(
        person_id, CUIL, "Eva Ríos", "eva@demo.example", login, signing, totp
    )
    request = appliance.new_request(person, pdfs.one_page())
    with appliance.client(person) as client:
        answer = client.post(
            "/solicitudes/firmar", json={"solicitudId": request, "password": signing}
        )
        assert answer.status_code == 200, answer.text
        (verdict,) = pdfsig(client.get(answer.json()["documentoFirmado"]).content)
    assert verdict.valid
    log = appliance.log.read_text()
    for secret in (login, signing, totp.secret, url.rpartition("/")[2]):
        assert secret not in log
