"""The flow of the spec, from sign-in to a verified download."""

from tests import pdfs
from tests.parts.appliance import Appliance, TestPerson
from tests.validators import pdfsig, pyhanko_valid


def test_flow_login_to_verified_download(
    appliance: Appliance, signer: TestPerson
) -> None:
    """Password, code, list, sign, download, verify: as the spec tells it.

    Source: spec "What the service does", 6.
    """
    request = appliance.new_request(signer, pdfs.one_page())
    with appliance.client() as client:
        challenge = client.post(
            "/auth/login",
            json={"usuario": signer.cuil, "password": signer.login_password},
        ).json()
        token = client.post(
            "/auth/otp",
            json={
                "loginToken": challenge["loginToken"],
                "codigo": signer.totp.now(),
            },
        ).json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        listed = client.get("/solicitudes").json()
        assert request in [entry["solicitudId"] for entry in listed]
        answer = client.post(
            "/solicitudes/firmar",
            json={"solicitudId": request, "password": signer.signing_password},
        )
        assert answer.status_code == 200, answer.text
        signed = client.get(answer.json()["documentoFirmado"]).content

    (verdict,) = pdfsig(signed)
    assert verdict.valid
    assert verdict.whole_document
    assert pyhanko_valid(signed, appliance.roots)
