"""What the internal CA publishes, for whoever checks a signature.

Source: RFC 5280, 4.2.1.13 and 4.2.2.1; RFC 6960, appendix A; RFC 5019, 5 and 6.
"""

import base64
import binascii
import hashlib
from datetime import UTC
from email.utils import format_datetime
from http import HTTPStatus
from typing import Final, cast

from quart import Blueprint, Response, current_app, request

from appliance.admission.address_rates import AddressRate
from appliance.api.core import core
from appliance.api.declaring.endpoint import endpoint, in_bytes, published_endpoint
from appliance.api.declaring.operation import Caller, Told
from appliance.domain.errors import ErrorCode
from appliance.pki.ocsp_responder import Issuer, OcspRefusal, Published
from appliance.web.auth import public
from appliance.web.body import read_bytes
from appliance.web.responses import OCTETS
from appliance.web.server.client_address import client_address

blueprint = Blueprint("pki", __name__, url_prefix="/pki")

RATE: Final = "rubrica.pki_rate"
"""Where the application keeps the counts."""
REQUEST: Final = "application/ocsp-request"
_RESPONSE: Final = "application/ocsp-response"
_CRL: Final = "application/pkix-crl"
_CERTIFICATE: Final = "application/pkix-cert"
_REQUEST_BYTES: Final = 4096
_MAX_AGE_S: Final = 3600
"""Longest that a cache may keep what a revocation would replace, in seconds."""


@blueprint.before_request
async def _count() -> None:
    """Count the caller.

    Raises:
        ApplianceError: `RATE_LIMITED`.
    """
    cast("AddressRate", current_app.extensions[RATE]).count(client_address())


@published_endpoint(
    "getRootCertificate",
    "GET /pki/root.cer",
    "Certificate of the internal CA's root",
    "application/pkix-cert",
)
@blueprint.get("/root.cer")
@public
async def root_certificate() -> Response:
    """`GET /pki/root.cer`: the root's certificate, DER."""
    return _certificate(Issuer.ROOT)


@published_endpoint(
    "getCaCertificate",
    "GET /pki/ca.cer",
    "Certificate of the CA that issues",
    "application/pkix-cert",
)
@blueprint.get("/ca.cer")
@public
async def ca_certificate() -> Response:
    """`GET /pki/ca.cer`: the certificate of the CA that issues, DER."""
    return _certificate(Issuer.CA)


@published_endpoint(
    "getRootCrl", "GET /pki/root.crl", "What the root revoked", "application/pkix-crl"
)
@blueprint.get("/root.crl")
@public
async def root_crl() -> Response:
    """`GET /pki/root.crl`: what the root revoked."""
    return _published(await core().status_answers.crl(Issuer.ROOT), _CRL)


@published_endpoint(
    "getCaCrl", "GET /pki/ca.crl", "What the CA revoked", "application/pkix-crl"
)
@blueprint.get("/ca.crl")
@public
async def ca_crl() -> Response:
    """`GET /pki/ca.crl`: what the CA that issues revoked."""
    return _published(await core().status_answers.crl(Issuer.CA), _CRL)


@endpoint(
    "askStatus",
    "POST /pki/ocsp",
    "The status of one certificate",
    (
        Told(HTTPStatus.OK, media_type="application/ocsp-response"),
        Told(HTTPStatus.NOT_MODIFIED, headers=("ETag",)),
    ),
    {ErrorCode.HSM_UNAVAILABLE, ErrorCode.NOT_FOUND, ErrorCode.RATE_LIMITED},
    caller=Caller.ANYBODY,
    body=in_bytes("application/ocsp-request"),
)
@blueprint.post("/ocsp")
@public
async def ocsp_post() -> Response:
    """`POST /pki/ocsp`: the status of one certificate."""
    return await _answer(await read_bytes((REQUEST, OCTETS), _REQUEST_BYTES))


@endpoint(
    "getStatus",
    "GET /pki/ocsp/{consulta}",
    "The status of one certificate, for caches",
    (
        Told(HTTPStatus.OK, media_type="application/ocsp-response"),
        Told(HTTPStatus.NOT_MODIFIED, headers=("ETag",)),
    ),
    {ErrorCode.HSM_UNAVAILABLE, ErrorCode.NOT_FOUND, ErrorCode.RATE_LIMITED},
    caller=Caller.ANYBODY,
)
@blueprint.get("/ocsp/<path:encoded>")
@public
async def ocsp_get(encoded: str) -> Response:
    """`GET /pki/ocsp/{Base64 of the request}`: the same, for caches."""
    try:
        asked = base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        asked = b""
    return await _answer(asked[:_REQUEST_BYTES])


async def _answer(asked: bytes) -> Response:
    found = await core().status_answers.answer(asked)
    if isinstance(found, OcspRefusal):
        return _bytes(found.der, _RESPONSE)
    return _published(found, _RESPONSE)


def _certificate(issuer: Issuer) -> Response:
    response = _bytes(core().status_answers.certificate(issuer), _CERTIFICATE)
    response.headers["Cache-Control"] = "public, max-age=86400"
    return response


def _published(found: Published, media_type: str) -> Response:
    """Answer with something that caches may keep until it is replaced."""
    left = int((found.next_update - core().clock.now()).total_seconds())
    tag = f'"{hashlib.sha256(found.der).hexdigest()}"'
    kept = tag in request.headers.get("If-None-Match", "")
    response = _bytes(b"" if kept else found.der, media_type)
    if kept:
        response.status_code = HTTPStatus.NOT_MODIFIED
        del response.headers["Content-Length"]
    response.headers.update(
        {
            "ETag": tag,
            "Last-Modified": format_datetime(
                found.this_update.astimezone(UTC), usegmt=True
            ),
            "Expires": format_datetime(found.next_update.astimezone(UTC), usegmt=True),
            "Cache-Control": (
                f"max-age={max(0, min(left, _MAX_AGE_S))}, public, no-transform, "
                "must-revalidate"
            ),
        }
    )
    return response


def _bytes(content: bytes, media_type: str) -> Response:
    return Response(
        content,
        headers={
            "Content-Type": media_type,
            "Cross-Origin-Resource-Policy": "cross-origin",
        },
    )
