"""Operations of signers, and of anybody.

Source: docs/contract.md, docs/api.md.
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from appliance.api.openapi import codes, parameters
from appliance.api.openapi.operation import (
    BINARY,
    BodyIn,
    Caller,
    Operation,
    Parameter,
    Sent,
    Told,
)
from appliance.api.wire import answers, credentials, requests, webhooks
from appliance.domain.errors import ErrorCode as E
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.vocab import RequestState
from appliance.web.body import MULTIPART
from appliance.web.responses import JSON, OCTETS, PDF

_OK, _ACCEPTED = HTTPStatus.OK, HTTPStatus.ACCEPTED
_PNG: Final = "image/png"
_FILE: Final = {"type": "string", "format": "binary", "contentMediaType": PDF}
_DER: Final = "application/pkix-cert"
_CRL: Final = "application/pkix-crl"
_OCSP: Final = "application/ocsp-response"
_LISTED: Final = [each for each in RequestState if each is not RequestState.WAITING]
_RATES: Final = parameters.RATES
_LATER: Final = ("Location", "Retry-After")
_GONE: Final = {E.SOLICITUD_NOT_FOUND}
_CREDENTIAL_GONE: Final = {E.CREDENTIAL_NOT_FOUND}
_PDF_FILE: Final = parameters.DOCUMENT
_PART_GONE: Final = {E.RANGE_UNSATISFIABLE}


def _json(kind: Any) -> BodyIn:
    return BodyIn({JSON: Sent(kind)})


def _bytes(media_type: str) -> BodyIn:
    return BodyIn({name: Sent(BINARY) for name in (media_type, OCTETS)})


def _operation(
    name: str,
    call: str,
    summary: str,
    told: Told | tuple[Told, ...],
    own: Iterable[E] = (),
    *,
    caller: Caller = Caller.BEARER,
    query: tuple[Parameter, ...] = (),
    body: BodyIn | None = None,
    scope: ApiKeyScope | None = None,
    is_strict: bool = False,
) -> Operation:
    method, path = call.split()
    return Operation(
        name,
        method,
        path,
        summary,
        caller,
        told if isinstance(told, tuple) else (told,),
        frozenset(own),
        scope,
        query,
        body,
        passes_unknown=not is_strict,
    )


_SIGN_IN: Final = (
    _operation(
        "logIn",
        "POST /auth/login",
        "User and password give a login token",
        Told(_OK, answers.LoginAnswer),
        {E.LOGIN_FAILED, E.RATE_LIMITED},
        caller=Caller.ANYBODY,
        body=_json(requests.Login),
    ),
    _operation(
        "showCode",
        "POST /auth/otp",
        "Login token and code give an access token",
        Told(_OK, answers.TokenAnswer),
        {E.LOGIN_FAILED, E.OTP_INVALID, E.RATE_LIMITED},
        caller=Caller.ANYBODY,
        body=_json(requests.OneTimeCode),
    ),
    _operation(
        "newSession",
        "POST /api/integration/session/new",
        "A session token for the iframe",
        Told(_OK, answers.SessionAnswer),
        {E.FIELD_MISSING, E.QUERY_INVALID, E.BODY_TOO_LARGE, E.BODY_TIMEOUT},
        caller=Caller.SESSION_KEY,
        query=(Parameter("id", {"type": "string"}, is_required=True),),
        scope=ApiKeyScope.SESSIONS_WRITE,
    ),
)

_REQUESTS: Final = (
    _operation(
        "listSignerRequests",
        "GET /solicitudes",
        "The signer's requests",
        Told(_OK, answers.SignerRequest, is_list=True, may_have=("Link", *_RATES)),
        {E.RATE_LIMITED},
        query=(parameters.one_of("estado", _LISTED), *parameters.PAGE),
        is_strict=True,
    ),
    _operation(
        "getSignerRequest",
        "GET /solicitudes/{solicitudId}",
        "One request, with what to know before signing",
        Told(_OK, answers.SignerRequestDetail, headers=("ETag",)),
        _GONE,
    ),
    _operation(
        "getSignerOriginal",
        "GET /solicitudes/{solicitudId}/original",
        "The PDF to be signed",
        _PDF_FILE,
        {*_GONE, *_PART_GONE},
        query=parameters.RANGES,
    ),
    _operation(
        "preview",
        "POST /solicitudes/{solicitudId}/vista-previa",
        "Where the stamp would lie, and the page with it",
        Told(
            _OK,
            answers.PreviewAnswer,
            also=(_PNG,),
            may_have=("Content-Disposition",),
        ),
        {*_GONE, *codes.PLACED, E.PRESET_FIXED, E.STATE, E.PDF_MALFORMED},
        body=_json(requests.Parameters),
    ),
    _operation(
        "reject",
        "POST /solicitudes/{solicitudId}/rechazar",
        "The signer refuses",
        Told(_OK, answers.RejectedRequest),
        {*_GONE, E.STATE, E.IN_PROGRESS},
        body=_json(requests.Rejection),
    ),
    _operation(
        "sign",
        "POST /solicitudes/firmar",
        "The signing command",
        (
            Told(
                _OK,
                answers.SignedAnswer,
                also=(PDF,),
                may_have=("ETag", "Content-Disposition", "Accept-Ranges", *_RATES),
            ),
            Told(_ACCEPTED, answers.StillSigning, headers=_LATER, may_have=_RATES),
        ),
        {
            *codes.SIGNING,
            *codes.FRESH,
            *codes.PLACED,
            *codes.EXAMINED,
            E.ALREADY_SIGNED,
            E.DOCUMENT_CHANGED,
            E.DOCUMENT_MISMATCH,
            E.NOT_SIGNED_YET,
            E.PRESET_FIXED,
            E.STILL_SIGNING,
        },
        query=(parameters.IDEMPOTENCY_KEY, parameters.IF_MATCH),
        body=BodyIn(
            {
                JSON: Sent(requests.SignBody),
                MULTIPART: Sent(
                    {
                        "type": "object",
                        "properties": {
                            "file": _FILE,
                            "options": requests.SignBody,
                        },
                        "required": ["file", "options"],
                        "additionalProperties": False,
                    }
                ),
            }
        ),
    ),
    _operation(
        "signSeveral",
        "POST /solicitudes/firmar/lote",
        "One signing command for several requests, or a whole batch",
        (
            Told(_OK, answers.BatchAnswer, may_have=_RATES),
            Told(_ACCEPTED, answers.BatchAnswer, headers=_LATER, may_have=_RATES),
        ),
        {*codes.SIGNING, *codes.FRESH, *codes.PLACED, E.LOTE_NOT_FOUND},
        query=(parameters.IDEMPOTENCY_KEY,),
        body=_json((requests.SignSeveralBody, requests.SignBatchBody)),
    ),
    _operation(
        "getSigningProgress",
        "GET /solicitudes/lotes/{ordenId}",
        "How a signing command for several requests goes on",
        Told(_OK, answers.BatchAnswer, may_have=("Retry-After",)),
        {E.LOTE_NOT_FOUND},
    ),
    _operation(
        "download",
        "GET /solicitudes/{solicitudId}/documento",
        "The signed PDF",
        (
            Told(
                _OK,
                answers.SignedAnswer,
                also=(PDF,),
                is_file=True,
                may_have=("ETag", "Content-Disposition", "Accept-Ranges"),
            ),
            parameters.PART,
        ),
        {*_GONE, *_PART_GONE, E.NOT_SIGNED_YET, E.STATE, E.QUERY_INVALID},
        caller=Caller.LINK_OR_BEARER,
        query=(
            Parameter("clave", {"type": "string"}),
            parameters.VERSION,
            *parameters.RANGES,
        ),
    ),
)

_CREDENTIALS: Final = (
    _operation(
        "changePassword",
        "POST /credenciales/clave",
        "Another signing password",
        Told(HTTPStatus.NO_CONTENT),
        {*codes.PASSWORD, *codes.FRESH},
        body=_json(requests.PasswordChange),
    ),
    _operation(
        "listCredentials",
        "GET /credenciales",
        "The signer's credentials",
        Told(_OK, answers.Credential, is_list=True),
    ),
    _operation(
        "getCertificate",
        "GET /credenciales/{credencialId}/certificado",
        "A certificate, to be saved",
        Told(
            _OK,
            media_type="application/pem-certificate-chain",
            also=(_DER,),
            headers=("Content-Disposition",),
        ),
        _CREDENTIAL_GONE,
    ),
    _operation(
        "revokeCredential",
        "POST /credenciales/{credencialId}/revocar",
        "Revoke a credential, for good",
        Told(_ACCEPTED, answers.Credential),
        {*_CREDENTIAL_GONE, *codes.FRESH, E.CREDENTIAL_STATE},
        body=_json(credentials.Revocation),
    ),
    _operation(
        "requestCertificate",
        "POST /credenciales/{credencialId}/csr",
        "A certificate signing request of the key",
        Told(
            _OK, media_type="application/x-pem-file", headers=("Content-Disposition",)
        ),
        {
            *_CREDENTIAL_GONE,
            *codes.FRESH,
            *codes.PASSWORD,
            *codes.TASK,
            E.ACTIVATION_EXPIRED,
            E.CREDENTIAL_STATE,
            E.PERSON_NOT_FOUND,
        },
        body=_json(credentials.Password),
    ),
    _operation(
        "importChain",
        "POST /credenciales/{credencialId}/cadena",
        "Take the certificate that an outside CA issued",
        Told(_OK, answers.Credential),
        {
            *_CREDENTIAL_GONE,
            *codes.FRESH,
            *codes.CHAIN,
            E.ALREADY_EXISTS,
            E.BUSY,
            E.CREDENTIAL_STATE,
        },
        body=_json(credentials.Chain),
    ),
    _operation(
        "newRevocationPin",
        "POST /credenciales/pin-de-revocacion",
        "A new revocation PIN",
        Told(_OK, answers.PinAnswer),
        {*codes.FRESH, E.PERSON_NOT_FOUND, E.PERSON_STATE},
        body=_json(webhooks.Nothing),
    ),
)


def _published(name: str, call: str, summary: str, media_type: str) -> Operation:
    return _operation(
        name,
        call,
        summary,
        (
            Told(_OK, media_type=media_type, headers=("Cache-Control",)),
            Told(HTTPStatus.NOT_MODIFIED, headers=("ETag",)),
        ),
        {E.NOT_FOUND, E.HSM_UNAVAILABLE, E.RATE_LIMITED},
        caller=Caller.ANYBODY,
    )


_PUBLIC: Final = (
    _operation(
        "getPublicKeys",
        "GET /.well-known/jwks.json",
        "Keys that sign access tokens",
        Told(
            _OK,
            answers.PublicKeys,
            media_type="application/jwk-set+json",
            headers=("Cache-Control",),
        ),
        caller=Caller.ANYBODY,
    ),
    _published(
        "getRootCertificate",
        "GET /pki/root.cer",
        "Certificate of the internal CA's root",
        _DER,
    ),
    _published(
        "getCaCertificate",
        "GET /pki/ca.cer",
        "Certificate of the CA that issues",
        _DER,
    ),
    _published("getRootCrl", "GET /pki/root.crl", "What the root revoked", _CRL),
    _published("getCaCrl", "GET /pki/ca.crl", "What the CA revoked", _CRL),
    _operation(
        "askStatus",
        "POST /pki/ocsp",
        "The status of one certificate",
        (
            Told(_OK, media_type=_OCSP),
            Told(HTTPStatus.NOT_MODIFIED, headers=("ETag",)),
        ),
        {E.HSM_UNAVAILABLE, E.NOT_FOUND, E.RATE_LIMITED},
        caller=Caller.ANYBODY,
        body=_bytes("application/ocsp-request"),
    ),
    _operation(
        "getStatus",
        "GET /pki/ocsp/{consulta}",
        "The status of one certificate, for caches",
        (
            Told(_OK, media_type=_OCSP),
            Told(HTTPStatus.NOT_MODIFIED, headers=("ETag",)),
        ),
        {E.HSM_UNAVAILABLE, E.NOT_FOUND, E.RATE_LIMITED},
        caller=Caller.ANYBODY,
    ),
    _operation(
        "timestamp",
        "POST /tsa",
        "A timestamp (RFC 3161), where it is switched on",
        Told(_OK, media_type="application/timestamp-reply"),
        {E.NOT_FOUND, E.RATE_LIMITED, E.TSA_UNAVAILABLE},
        caller=Caller.ANYBODY,
        body=_bytes("application/timestamp-query"),
    ),
    _operation(
        "isAlive",
        "GET /healthz",
        "This process answers",
        Told(_OK, answers.Alive),
        caller=Caller.ANYBODY,
    ),
    _operation(
        "isReady",
        "GET /readyz",
        "Everything that signing needs works",
        (
            Told(_OK, answers.Ready),
            Told(
                HTTPStatus.SERVICE_UNAVAILABLE,
                answers.Unready,
                headers=("Retry-After",),
            ),
        ),
        caller=Caller.ANYBODY,
    ),
)

OPERATIONS: Final = (*_SIGN_IN, *_REQUESTS, *_CREDENTIALS, *_PUBLIC)
