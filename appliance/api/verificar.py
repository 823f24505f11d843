"""The page of a signature, behind the QR code of its stamp.

Plain HTML for whoever holds the document. What it may tell, and what not, is
`Verification`'s to say.
"""

from datetime import datetime, timedelta, timezone
from http import HTTPStatus
from typing import Final, cast

from quart import Blueprint, Response, current_app

from appliance.api import pages
from appliance.api.core import core
from appliance.domain.errors import ApplianceError
from appliance.domain.stamp_details import CODE_LENGTH
from appliance.web.app import client_address
from appliance.web.auth import public
from appliance.web.rate import AddressRate

blueprint = Blueprint("verificar", __name__)

RATE: Final = "rubrica.verify_rate"
"""Where the application keeps the counts."""
_SHOWN_AT_MOST: Final = 100
_BUENOS_AIRES: Final = timezone(timedelta(hours=-3))


@blueprint.get("/verificar/<code>")
@public
async def verify(code: str) -> Response:
    """`GET /verificar/{code}`: what is known of that signature."""
    cast("AddressRate", current_app.extensions[RATE]).count(client_address())
    known = await core().verification.look(code)
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
    return _unindexed(
        pages.show(
            "verificar.html",
            HTTPStatus.OK,
            signer=known.signer,
            signed_at=_local(known.signed_at),
            newest=known.newest,
            earlier=[(_local(each.made), each) for each in known.earlier],
        )
    )


@blueprint.errorhandler(ApplianceError)
async def refuse(error: ApplianceError) -> Response:
    """Say in words, on a page, what went wrong.

    Args:
        error: raised by a view of this page.
    """
    return pages.refuse(error, "revocar_error.html")


def _local(at: datetime) -> str:
    """A time as people here say it.

    To the minute: a stamp's own seconds are those of its drawing.
    """
    return f"{at.astimezone(_BUENOS_AIRES):%Y-%m-%d %H:%M} -03:00"


def _unindexed(response: Response) -> Response:
    """Keep a page out of search engines: it is for whoever holds the document."""
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response
