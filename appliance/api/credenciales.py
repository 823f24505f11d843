"""The signer's own credentials: see, download, revoke, certify outside.

Handlers parse, call one service and render; nothing is decided here.
"""

import re
from http import HTTPStatus
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from quart import Blueprint, Response

from appliance.api.core import core
from appliance.api.declaring import codes
from appliance.api.declaring.endpoint import endpoint, in_json
from appliance.api.declaring.operation import Told
from appliance.api.wire import answers, credentials, webhooks
from appliance.api.wire import credentials as wire
from appliance.api.wire.fields import Body
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId
from appliance.domain.keys.credentials import CredentialView
from appliance.domain.requests.request import Signer
from appliance.web import auth, body, content_negotiation, request_log
from appliance.web.responses import file_response, json_response

blueprint = Blueprint("credenciales", __name__)

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_DER: Final = "application/pkix-cert"
"""One certificate in DER. Source: RFC 2585, 4.1."""
_CSR: Final = "application/x-pem-file"
_CSR_WAIT_S: Final = 20.0
_PEM: Final = "application/pem-certificate-chain"
"""The certificate, then its chain. Source: RFC 8555, 9.1."""


@endpoint(
    "listCredentials",
    "GET /credenciales",
    "The signer's credentials",
    Told(HTTPStatus.OK, answers.Credential, is_list=True),
)
@blueprint.get("/credenciales")
async def list_credentials() -> Response:
    """`GET /credenciales`: a JSON array, newest first."""
    signer = await auth.signer()
    held = await core().credentials.of(signer.person)
    now = core().clock.now()
    return json_response([wire.element(each, now) for each in held if each.is_readable])


@endpoint(
    "getCertificate",
    "GET /credenciales/{credencialId}/certificado",
    "A certificate, to be saved",
    Told(
        HTTPStatus.OK,
        media_type="application/pem-certificate-chain",
        also=("application/pkix-cert",),
        headers=("Content-Disposition",),
    ),
    {ErrorCode.CREDENTIAL_NOT_FOUND},
)
@blueprint.get("/credenciales/<credencial>/certificado")
async def download_certificate(credencial: str) -> Response:
    """`GET /credenciales/{id}/certificado`: PEM with its chain, or DER by Accept.

    Raises:
        ApplianceError: `CREDENTIAL_NOT_FOUND`, also where its bytes are no certificate.
    """
    signer = await auth.signer()
    view = await core().credentials.get(_id(credencial), signer.person)
    if not view.is_readable:
        raise ApplianceError(ErrorCode.CREDENTIAL_NOT_FOUND)
    name = f"certificado-{view.serial}"
    if content_negotiation.prefers(_DER, over=_PEM):
        return file_response(view.certificate, _DER, f"{name}.cer")
    return file_response(_pem(view), _PEM, f"{name}.pem")


@endpoint(
    "revokeCredential",
    "POST /credenciales/{credencialId}/revocar",
    "Revoke a credential, for good",
    Told(HTTPStatus.ACCEPTED, answers.Credential),
    {ErrorCode.CREDENTIAL_NOT_FOUND, *codes.FRESH, ErrorCode.CREDENTIAL_STATE},
    body=in_json(credentials.Revocation),
)
@blueprint.post("/credenciales/<credencial>/revocar")
async def revoke(credencial: str) -> Response:
    """`POST /credenciales/{id}/revocar`: for good, from this moment on."""
    signer = await _fresh()
    reason = wire.reason(wire.Revocation.read(await body.read_object()).motivo)
    credential = _id(credencial)
    await core().credentials.revoke(credential, reason, signer.actor, signer.person)
    view = await core().credentials.get(credential, signer.person)
    return json_response(wire.element(view, core().clock.now()), HTTPStatus.ACCEPTED)


@endpoint(
    "requestCertificate",
    "POST /credenciales/{credencialId}/csr",
    "A certificate signing request of the key",
    Told(
        HTTPStatus.OK,
        media_type="application/x-pem-file",
        headers=("Content-Disposition",),
    ),
    {
        ErrorCode.CREDENTIAL_NOT_FOUND,
        *codes.FRESH,
        *codes.PASSWORD,
        *codes.TASK,
        ErrorCode.ACTIVATION_EXPIRED,
        ErrorCode.CREDENTIAL_STATE,
        ErrorCode.PERSON_NOT_FOUND,
    },
    body=in_json(credentials.Password),
)
@blueprint.post("/credenciales/<credencial>/csr")
async def request_certificate(credencial: str) -> Response:
    """`POST /credenciales/{id}/csr`: what an outside CA is asked with, PKCS#10."""
    signer = await _fresh()
    given = wire.Password.read(await body.read_object())
    wanted = _id(credencial)
    asked = await core().signing_requests.ask(signer, wanted, given.password)
    pem = asked.made(await core().tasks.wait(asked.task, _CSR_WAIT_S))
    return file_response(pem, _CSR, f"solicitud-{credencial}.csr")


@endpoint(
    "importChain",
    "POST /credenciales/{credencialId}/cadena",
    "Take the certificate that an outside CA issued",
    Told(HTTPStatus.OK, answers.Credential),
    {
        ErrorCode.CREDENTIAL_NOT_FOUND,
        *codes.FRESH,
        *codes.CHAIN,
        ErrorCode.ALREADY_EXISTS,
        ErrorCode.BUSY,
        ErrorCode.CREDENTIAL_STATE,
    },
    body=in_json(credentials.Chain),
)
@blueprint.post("/credenciales/<credencial>/cadena")
async def import_chain(credencial: str) -> Response:
    """`POST /credenciales/{id}/cadena`: the chain that an outside CA issued."""
    signer = await _fresh()
    sent = wire.Chain.read(await body.read_object())
    view = await core().credentials.import_chain(
        _id(credencial), sent.cadena.encode(), signer.actor, signer.person
    )
    return json_response(wire.element(view, core().clock.now()))


@endpoint(
    "newRevocationPin",
    "POST /credenciales/pin-de-revocacion",
    "A new revocation PIN",
    Told(HTTPStatus.OK, answers.PinAnswer),
    {*codes.FRESH, ErrorCode.PERSON_NOT_FOUND, ErrorCode.PERSON_STATE},
    body=in_json(webhooks.Nothing),
)
@blueprint.post("/credenciales/pin-de-revocacion")
async def new_pin() -> Response:
    """`POST /credenciales/pin-de-revocacion`: a new PIN; the earlier one is over."""
    signer = await _fresh()
    Body.read(await body.read_object())
    pin = await core().revocation_pins.renew(signer.person, signer.actor)
    return json_response({"pin": pin})


async def _fresh() -> Signer:
    """The signer, whose second factor must be young enough to sign."""
    signer = await auth.signer()
    core().tokens.require_fresh(signer)
    return signer


def _id(text: str) -> CredentialId:
    """The credential of an address; nothing that is none is ever looked for.

    Raises:
        ApplianceError: `CREDENTIAL_NOT_FOUND`.
    """
    if not _UUID.fullmatch(text):
        raise ApplianceError(ErrorCode.CREDENTIAL_NOT_FOUND)
    request_log.note(credential=text)
    return CredentialId(text)


def _pem(view: CredentialView) -> bytes:
    chain = [x509.load_der_x509_certificate(d) for d in (view.certificate, *view.chain)]
    return b"".join(one.public_bytes(Encoding.PEM) for one in chain)
