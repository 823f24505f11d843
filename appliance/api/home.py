"""Where people land who type an address by hand: what this is, and the code form.

Programs get the errors that they always got here.
"""

from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response, request

from appliance.api import pages
from appliance.api.core import core
from appliance.domain.appearance.details import CODE_LENGTH
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.text.urls import read_address
from appliance.signing.signature_lookup import read_code
from appliance.web.auth import public
from appliance.web.content_negotiation import wants_page

blueprint = Blueprint("home", __name__)

_LONGEST_TYPED: Final = 500
"""Of what is shown again in the form; a whole address has room in it."""


@blueprint.get("/")
@public
async def home() -> Response:
    """`GET /`: what this address is, for a person.

    Raises:
        ApplianceError: `NOT_FOUND`, for a program.
    """
    _for_people()
    return pages.show(
        "inicio.html",
        HTTPStatus.OK,
        documentation=core().settings.web.documentation_url,
        errors={},
        code="",
        length=CODE_LENGTH,
    )


@blueprint.get("/verificar")
@public
async def find() -> Response:
    """`GET /verificar`: a form for the code; `?codigo=` leads to its page.

    The code may come as people copy it: with blanks or hyphens, in small letters,
    or as the whole address.

    Raises:
        ApplianceError: `NOT_FOUND`, for a program.
    """
    _for_people()
    typed = request.args.get("codigo")
    if typed is None:
        return _form("", HTTPStatus.OK)
    # The last part of an address, if it is one.
    address = read_address(typed.strip())
    code = read_code(address.path.rpartition("/")[2]) if address else None
    if code is None:
        return _form(typed[:_LONGEST_TYPED], HTTPStatus.UNPROCESSABLE_ENTITY)
    where = f"{pages.base_path()}/verificar/{code}{pages.language_query()}"
    return Response(b"", HTTPStatus.SEE_OTHER, headers={"Location": where})


def _form(typed: str, status: HTTPStatus) -> Response:
    fault = "Look at the code again: it has {count} letters and digits."
    return pages.show(
        "verificar_codigo.html",
        status,
        code=typed,
        length=CODE_LENGTH,
        errors={"codigo": fault} if status is not HTTPStatus.OK else {},
    )


def _for_people() -> None:
    """Leave programs their answer.

    Raises:
        ApplianceError: `NOT_FOUND`.
    """
    if not wants_page():
        raise ApplianceError(ErrorCode.NOT_FOUND)
