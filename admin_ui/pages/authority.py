"""The installation's own CA: its certificates, to be saved, and its CRLs."""

from quart import Blueprint, Response

from admin_ui.core import core
from admin_ui.render import page
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.web.responses import file_response

blueprint = Blueprint("authority", __name__, url_prefix="/admin/authority")
_DER = "application/pkix-cert"


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/authority`."""
    return await page(
        "authority.html",
        own=await core().own_authority.show(),
        now=core().clock.now(),
        base_url=core().settings.web.base_url,
    )


@blueprint.get("/<sha256>.cer")
async def download(sha256: str) -> Response:
    """`GET /admin/authority/{sha256}.cer`: a certificate, DER.

    Raises:
        ApplianceError: `NOT_FOUND`.
    """
    own = await core().own_authority.show()
    for certificate in own.certificates:
        if certificate.sha256 == sha256:
            name = f"{certificate.role}-{certificate.serial}.cer"
            return file_response(certificate.der, _DER, name)
    raise ApplianceError(ErrorCode.NOT_FOUND)
