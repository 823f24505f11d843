"""The page of a signature, behind the QR code of its stamp.

Plain HTML for whoever holds the document. What it may tell, and what not, is
`Verification`'s to say. It says *signed* only of a signature that was verified in the
file that is kept; what could not be verified now is said to be neither valid nor not.
"""

from http import HTTPStatus
from typing import Final, cast

from quart import Blueprint, Response, current_app

from appliance.admission.address_rates import AddressRate
from appliance.api import pages
from appliance.api.core import core
from appliance.domain.appearance.details import CODE_LENGTH
from appliance.domain.documents.verification import Answer
from appliance.domain.errors import ApplianceError
from appliance.domain.text.civil_time import day_and_time, with_zone
from appliance.web.auth import public
from appliance.web.server.client_address import client_address

blueprint = Blueprint("verificar", __name__)

RATE: Final = "rubrica.verify_rate"
"""Where the application keeps the counts."""
EXAMINED_RATE: Final = "rubrica.verify_examined_rate"
"""The same, of files that are examined for an address."""
EXAMINED_PER_MINUTE: Final = 10
"""Files that one address may have examined in a minute; what was examined before is
told without."""
_SHOWN_AT_MOST: Final = 100


@blueprint.get("/verificar/<code>")
@public
async def verify(code: str) -> Response:
    """`GET /verificar/{code}`: what is known of that signature."""
    cast("AddressRate", current_app.extensions[RATE]).count(client_address())
    lang = pages.reader_language()
    known = await core().verification.look(code, _may_examine)
    if known is None:
        return _unindexed(
            pages.show(
                "verificar_nada.html",
                HTTPStatus.NOT_FOUND,
                code=code[:_SHOWN_AT_MOST],
                length=CODE_LENGTH,
                errors={},
            )
        )
    if known.answer is not Answer.YES:
        # Nothing that only the record says is told.
        is_refuted = known.answer is Answer.NO
        return _unindexed(
            pages.show("verificar_sin.html", HTTPStatus.OK, is_refuted=is_refuted)
        )
    return _unindexed(
        pages.show(
            "verificar.html",
            HTTPStatus.OK,
            signer=known.signer,
            signed_at=with_zone(known.signed_at, lang),
            newest=known.newest,
            earlier=[(day_and_time(each.made, lang), each) for each in known.earlier],
            is_code_in_document=known.is_code_in_document,
        )
    )


def _may_examine() -> bool:
    """Return whether a file may be examined for the caller's address now."""
    rate = cast("AddressRate", current_app.extensions[EXAMINED_RATE])
    try:
        rate.count(client_address())
    except ApplianceError:
        return False
    return True


@blueprint.errorhandler(ApplianceError)
async def refuse(error: ApplianceError) -> Response:
    """Say in words, on a page, what went wrong.

    Args:
        error: raised by a view of this page.
    """
    return pages.refuse(error, "revocar_error.html")


def _unindexed(response: Response) -> Response:
    """Keep a page out of search engines: it is for whoever holds the document."""
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response
