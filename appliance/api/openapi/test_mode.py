"""Operations of the test mode, which there are in PREPROD alone.

Source: docs/integration.md, "Test mode".
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from appliance.api.openapi import codes, parameters
from appliance.api.openapi.backend import GONE, backend_operation, in_json, page_of
from appliance.api.openapi.operation import BodyIn, Told
from appliance.api.wire import (
    answers,
    backend_answers,
    processes,
    signers_for_tests,
)
from appliance.domain.errors import ErrorCode as E
from appliance.domain.integrators.api_keys import ApiKeyScope

_READ, _WRITE = ApiKeyScope.PEOPLE_READ, ApiKeyScope.PEOPLE_WRITE
_AT: Final = "/test/signers"
_ONE: Final = f"{_AT}/{{cuil}}"
_ABSENT: Final = {E.FIELD_INVALID, E.PERSON_NOT_FOUND}
_OK, _ACCEPTED = HTTPStatus.OK, HTTPStatus.ACCEPTED

OTHERWISE: Final[Mapping[str, BodyIn]] = {
    "openSession": in_json(processes.FaultySession),
}
"""Bodies that have more in them where there is a test mode, by their operation."""
OPERATIONS: Final = (
    backend_operation(
        "createTestSigner",
        f"POST {_AT}",
        "Make up somebody who can sign, in PREPROD",
        _WRITE,
        Told(HTTPStatus.CREATED, backend_answers.SignerForTests, headers=("Location",)),
        {E.ALREADY_EXISTS, E.TEST_SIGNERS_TOO_MANY, *codes.TASK, *codes.ADDRESS},
        body=in_json(signers_for_tests.NewSignerForTests, is_required=False),
    ),
    backend_operation(
        "listTestSigners",
        f"GET {_AT}",
        "The test signers of the integrator",
        _READ,
        page_of(backend_answers.SignerForTests),
        codes.ADDRESS,
        query=parameters.PAGE,
        is_strict=True,
    ),
    backend_operation(
        "getTestSigner",
        f"GET {_ONE}",
        "One test signer, with what it takes to act as them",
        _READ,
        Told(_OK, backend_answers.SignerForTests, headers=("ETag",)),
        _ABSENT,
    ),
    backend_operation(
        "deleteTestSigner",
        f"DELETE {_ONE}",
        "Have a test signer sign no more",
        _WRITE,
        GONE,
        {*_ABSENT, *codes.CHANGED, E.PERSON_STATE, E.IN_PROGRESS},
        query=(parameters.IF_MATCH,),
    ),
    backend_operation(
        "getTestSignerCode",
        f"GET {_ONE}/otp",
        "A code of a test signer that is accepted now",
        _READ,
        Told(_OK, backend_answers.CodeForTests),
        _ABSENT,
    ),
    backend_operation(
        "listTestSignerMails",
        f"GET {_ONE}/mails",
        "The mails to a test signer",
        _READ,
        Told(_OK, backend_answers.MailForTests, is_list=True),
        _ABSENT,
    ),
    backend_operation(
        "signAsTestSigner",
        f"POST {_ONE}/sign",
        "Sign as a test signer",
        _WRITE,
        (
            Told(_OK, (answers.SignedAnswer, answers.BatchAnswer)),
            Told(
                _ACCEPTED,
                (answers.StillSigning, answers.BatchAnswer),
                headers=("Location", "Retry-After"),
            ),
        ),
        {
            *_ABSENT,
            *codes.SIGNING,
            *codes.PLACED,
            E.ALREADY_SIGNED,
            E.LOTE_NOT_FOUND,
            E.NOT_SIGNED_YET,
        },
        body=in_json(signers_for_tests.SignAsSigner),
    ),
    backend_operation(
        "rejectAsTestSigner",
        f"POST {_ONE}/reject",
        "Refuse as a test signer",
        _WRITE,
        Told(_OK, answers.RejectedRequest),
        {*_ABSENT, E.SOLICITUD_NOT_FOUND, E.STATE, E.IN_PROGRESS},
        body=in_json(signers_for_tests.RejectAsSigner),
    ),
)
