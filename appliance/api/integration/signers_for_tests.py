"""Test mode: signers that a backend makes up, and acts for; in PREPROD alone.

Handlers parse, call one use case and render; nothing is decided here. In PROD none of
these addresses is there.
"""

import asyncio
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from quart import Blueprint, Response, request

from appliance.api import lotes, solicitudes
from appliance.api.core import core
from appliance.api.declaring import codes, parameters
from appliance.api.declaring.endpoint import GONE, backend_endpoint, in_json, page_of
from appliance.api.declaring.operation import Told
from appliance.api.integration import edits
from appliance.api.integration.caller import caller
from appliance.api.wire import (
    answers,
    backend_answers,
    documents,
    representations,
    signers_for_tests,
)
from appliance.api.wire import signers_for_tests as wire
from appliance.domain.console.edit_subjects import Subject
from appliance.domain.errors import ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.people.identity import parse_cuil
from appliance.domain.requests.request import SignCommand
from appliance.domain.requests.signing_batch import SignBatch
from appliance.domain.signing_command import GivenParameters
from appliance.identity.login import STEP_S
from appliance.record import pagination
from appliance.web import body, i18n, request_log
from appliance.web.auth import public
from appliance.web.responses import json_response

blueprint = Blueprint("integration_signers_for_tests", __name__)

PATH: Final = "/api/integration/test/signers"
_ONE: Final = f"{PATH}/<firmante>"
_READ: Final = ApiKeyScope.PEOPLE_READ
_WRITE: Final = ApiKeyScope.PEOPLE_WRITE


@backend_endpoint(
    "createTestSigner",
    "POST /test/signers",
    "Make up somebody who can sign, in PREPROD",
    ApiKeyScope.PEOPLE_WRITE,
    Told(HTTPStatus.CREATED, backend_answers.SignerForTests, headers=("Location",)),
    {
        ErrorCode.ALREADY_EXISTS,
        ErrorCode.TEST_SIGNERS_TOO_MANY,
        *codes.TASK,
        *codes.ADDRESS,
    },
    body=in_json(signers_for_tests.NewSignerForTests, is_required=False),
    only_in_test_mode=True,
)
@blueprint.post(PATH)
@public
async def create() -> Response:
    """`POST /api/integration/test/signers`: somebody made up, ready to sign."""
    asking = await caller(_WRITE)
    has_body = request.content_length or "Content-Type" in request.headers
    order = wire.order(await body.read_object() if has_body else {})
    made = await core().signers_for_tests.create(asking, order)
    told = wire.told(made, i18n.requested())
    response = json_response(told, HTTPStatus.CREATED)
    response.headers["Location"] = _address(f"/{told['cuil']}")
    return response


@backend_endpoint(
    "listTestSigners",
    "GET /test/signers",
    "The test signers of the integrator",
    ApiKeyScope.PEOPLE_READ,
    page_of(backend_answers.SignerForTests),
    codes.ADDRESS,
    query=parameters.PAGE,
    is_strict=True,
    only_in_test_mode=True,
)
@blueprint.get(PATH)
@public
async def list_signers() -> Response:
    """`GET /api/integration/test/signers`: the integrator's, newest first."""
    asking = await caller(_READ)
    asked = documents.uploads_query()
    # One more than a page shows whether there is a next one.
    found = await core().signers_for_tests.page(
        asking.integrator.id, asked.before, asked.limit + 1
    )
    page = found[: asked.limit]
    lang = i18n.requested()
    response = json_response([wire.told(each, lang) for each in page])
    if len(page) < len(found):
        cursor = pagination.instant(page[-1].created, page[-1].person.id)
        url = _address("?" + urlencode({"limite": asked.limit, "cursor": cursor}))
        response.headers["Link"] = f'<{url}>; rel="next"'
    return response


@backend_endpoint(
    "getTestSigner",
    "GET /test/signers/{cuil}",
    "One test signer, with what it takes to act as them",
    ApiKeyScope.PEOPLE_READ,
    Told(HTTPStatus.OK, backend_answers.SignerForTests, headers=("ETag",)),
    {ErrorCode.FIELD_INVALID, ErrorCode.PERSON_NOT_FOUND},
    only_in_test_mode=True,
)
@blueprint.get(_ONE)
@public
async def show(firmante: str) -> Response:
    """`GET …/test/signers/{cuil}`: one of them, as it was when made."""
    asking = await caller(_READ)
    cuil = parse_cuil(firmante)
    tag = await edits.tag(asking, Subject.SIGNER, cuil)
    found = await core().signers_for_tests.get(asking.integrator.id, cuil)
    return edits.tagged(json_response(wire.told(found, i18n.requested())), tag)


@backend_endpoint(
    "deleteTestSigner",
    "DELETE /test/signers/{cuil}",
    "Have a test signer sign no more",
    ApiKeyScope.PEOPLE_WRITE,
    GONE,
    {
        ErrorCode.FIELD_INVALID,
        ErrorCode.PERSON_NOT_FOUND,
        *codes.CHANGED,
        ErrorCode.PERSON_STATE,
        ErrorCode.IN_PROGRESS,
    },
    query=(parameters.IF_MATCH,),
    only_in_test_mode=True,
)
@blueprint.delete(_ONE)
@public
async def remove(firmante: str) -> Response:
    """`DELETE …/test/signers/{cuil}`: they sign no more."""
    asking = await caller(_WRITE)
    cuil = parse_cuil(firmante)
    async with edits.unchanged(asking, Subject.SIGNER, cuil):
        await core().signers_for_tests.remove(asking, cuil)
    return Response(b"", status=HTTPStatus.NO_CONTENT)


@backend_endpoint(
    "getTestSignerCode",
    "GET /test/signers/{cuil}/otp",
    "A code of a test signer that is accepted now",
    ApiKeyScope.PEOPLE_READ,
    Told(HTTPStatus.OK, backend_answers.CodeForTests),
    {ErrorCode.FIELD_INVALID, ErrorCode.PERSON_NOT_FOUND},
    only_in_test_mode=True,
)
@blueprint.get(f"{_ONE}/otp")
@public
async def one_time_code(firmante: str) -> Response:
    """`GET …/test/signers/{cuil}/otp`: a code that is accepted now.

    After two that were used one after the other it waits until there is a third.
    """
    asking = await caller(_READ)
    found = await core().signers_for_tests.get(
        asking.integrator.id, parse_cuil(firmante)
    )
    code, wait_s = await core().login.next_code(found.person.id)
    while wait_s > 0:
        await asyncio.sleep(wait_s)
        code, wait_s = await core().login.next_code(found.person.id)
    # A code is accepted until the step after its own is over.
    left = 2 * STEP_S - int(core().clock.now().timestamp()) % STEP_S
    answer: backend_answers.CodeForTests = {"otp": code, "venceEn": left}
    return json_response(answer)


@backend_endpoint(
    "listTestSignerMails",
    "GET /test/signers/{cuil}/mails",
    "The mails to a test signer",
    ApiKeyScope.PEOPLE_READ,
    Told(HTTPStatus.OK, backend_answers.MailForTests, is_list=True),
    {ErrorCode.FIELD_INVALID, ErrorCode.PERSON_NOT_FOUND},
    only_in_test_mode=True,
)
@blueprint.get(f"{_ONE}/mails")
@public
async def mails(firmante: str) -> Response:
    """`GET …/test/signers/{cuil}/mails`: what they were written, newest first."""
    asking = await caller(_READ)
    cuil = parse_cuil(firmante)
    found = await core().signers_for_tests.get(asking.integrator.id, cuil)
    written = await core().mails_for_tests.of(found.person.id)
    return json_response([wire.mail(each) for each in written])


@backend_endpoint(
    "signAsTestSigner",
    "POST /test/signers/{cuil}/sign",
    "Sign as a test signer",
    ApiKeyScope.PEOPLE_WRITE,
    (
        Told(HTTPStatus.OK, (answers.SignedAnswer, answers.BatchAnswer)),
        Told(
            HTTPStatus.ACCEPTED,
            (answers.StillSigning, answers.BatchAnswer),
            headers=("Location", "Retry-After"),
        ),
    ),
    {
        ErrorCode.FIELD_INVALID,
        ErrorCode.PERSON_NOT_FOUND,
        *codes.SIGNING,
        *codes.PLACED,
        ErrorCode.ALREADY_SIGNED,
        ErrorCode.LOTE_NOT_FOUND,
        ErrorCode.NOT_SIGNED_YET,
    },
    body=in_json(signers_for_tests.SignAsSigner),
    only_in_test_mode=True,
)
@blueprint.post(f"{_ONE}/sign")
@public
async def sign(firmante: str) -> Response:
    """`POST …/test/signers/{cuil}/sign`: sign as them; answers as firmar does."""
    asking = await caller(_WRITE)
    wanted = wire.to_sign(await body.read_object())
    acting = core().signers_for_tests
    signer, password = await acting.acting(asking, parse_cuil(firmante))
    if isinstance(wanted, wire.WholeBatch):
        batch = SignBatch((), GivenParameters(), password, None, wanted.id)
        outcome_of_all = await core().batch_signing.sign(batch, signer)
        return await lotes.begun(outcome_of_all, signer.actor)
    named = await acting.request_of(asking.integrator.id, signer.person, wanted)
    request_log.note(solicitudId=named)
    command = SignCommand(request=named, given=GivenParameters(), password=password)
    outcome = await core().signing.sign(command, signer)
    if outcome.document is None:
        return solicitudes.going_on(named, wants_pdf=False)
    clave = await core().links.mint(named, signer.actor)
    url = representations.document_url(core().settings.web.base_url, named, clave)
    return json_response(representations.signed(outcome.document, url))


@backend_endpoint(
    "rejectAsTestSigner",
    "POST /test/signers/{cuil}/reject",
    "Refuse as a test signer",
    ApiKeyScope.PEOPLE_WRITE,
    Told(HTTPStatus.OK, answers.RejectedRequest),
    {
        ErrorCode.FIELD_INVALID,
        ErrorCode.PERSON_NOT_FOUND,
        ErrorCode.SOLICITUD_NOT_FOUND,
        ErrorCode.STATE,
        ErrorCode.IN_PROGRESS,
    },
    body=in_json(signers_for_tests.RejectAsSigner),
    only_in_test_mode=True,
)
@blueprint.post(f"{_ONE}/reject")
@public
async def reject(firmante: str) -> Response:
    """`POST …/test/signers/{cuil}/reject`: refuse as them; answers as rechazar does."""
    asking = await caller(_WRITE)
    wanted, reason = wire.to_reject(await body.read_object())
    acting = core().signers_for_tests
    signer, _ = await acting.acting(asking, parse_cuil(firmante))
    named = await acting.request_of(asking.integrator.id, signer.person, wanted)
    request_log.note(solicitudId=named)
    view = await core().requests.reject(signer, named, reason)
    return json_response(representations.detail(view, i18n.requested()))


def _address(rest: str) -> str:
    """Where they are in public, and what follows that."""
    return f"{core().settings.web.web_url}{PATH}{rest}"
