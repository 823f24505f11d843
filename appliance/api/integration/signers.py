"""People as an integrator's backend asks about them, and answers for them."""

from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response

from appliance.api.core import core
from appliance.api.declaring import codes, parameters
from appliance.api.declaring.endpoint import backend_endpoint, in_json
from appliance.api.declaring.operation import Told
from appliance.api.integration import edits
from appliance.api.integration.caller import caller
from appliance.api.wire import backend_answers, signers
from appliance.domain.console.edit_subjects import Subject
from appliance.domain.errors import ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.people.identity import parse_cuil
from appliance.web import body, i18n
from appliance.web.auth import public
from appliance.web.responses import json_response

blueprint = Blueprint("integration_signers", __name__)

PATH: Final = "/api/integration/signers/<cuil>"


@backend_endpoint(
    "getSigner",
    "GET /signers/{cuil}",
    "Whether somebody can sign, and if not, why",
    ApiKeyScope.PEOPLE_READ,
    Told(HTTPStatus.OK, backend_answers.Signer, headers=("ETag",)),
    {ErrorCode.FIELD_INVALID},
)
@blueprint.get(PATH)
@public
async def show(cuil: str) -> Response:
    """`GET /api/integration/signers/{cuil}`: whether somebody can sign, and why not."""
    asking = await caller(ApiKeyScope.PEOPLE_READ)
    whose = asking.integrator.id
    tag = await edits.tag(asking, Subject.SIGNER, parse_cuil(cuil))
    found = await core().backend_signers.state(whose, parse_cuil(cuil))
    return edits.tagged(json_response(signers.state(found, i18n.requested())), tag)


@backend_endpoint(
    "vouchForSigner",
    "PUT /signers/{cuil}",
    "Answer for somebody, and invite them",
    ApiKeyScope.PEOPLE_WRITE,
    (
        Told(HTTPStatus.OK, backend_answers.VouchedSigner),
        Told(HTTPStatus.CREATED, backend_answers.VouchedSigner),
    ),
    {
        ErrorCode.ALREADY_EXISTS,
        ErrorCode.MAIL_OFF,
        ErrorCode.PERSON_NOT_FOUND,
        ErrorCode.PERSON_STATE,
        ErrorCode.VOUCH_REFUSED,
        *codes.CHANGED,
    },
    query=(parameters.IF_MATCH,),
    body=in_json(signers.VouchBody),
)
@blueprint.put(PATH)
@public
async def vouch(cuil: str) -> Response:
    """`PUT /api/integration/signers/{cuil}`: answer for somebody, and invite them."""
    asking = await caller(ApiKeyScope.PEOPLE_WRITE)
    sent = await body.read_object()
    order = signers.vouch(parse_cuil(cuil), sent)
    async with edits.unchanged(asking, Subject.SIGNER, order.cuil, sent):
        made = await core().backend_signers.vouch(asking, order)
    status = HTTPStatus.CREATED if made.is_new else HTTPStatus.OK
    return json_response(signers.vouched(made, i18n.requested()), status)
