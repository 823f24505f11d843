"""What a stamp shows besides its command's fields, by settings and by integrator.

Source: decisions "cuil, qr, logo".
"""

from appliance.domain.command import SignParameters
from appliance.domain.ids import IntegratorId
from appliance.domain.records import Records
from appliance.domain.stamp_details import SAMPLE_CODE, LogoPicture, StampDetails
from appliance.domain.vocab import CuilDisplay
from appliance.settings import StampSettings


class Stamping:
    """Settles a stamp's details; each command may say otherwise.

    Args:
        settings: what they show.
        verify_url: where the page of a signature is, without its code.
    """

    def __init__(self, settings: StampSettings, verify_url: str) -> None:
        self._settings = settings
        self._verify_url = verify_url

    def has_code(self, params: SignParameters) -> bool:
        """Whether a stamp has a QR code, and so its signature a code."""
        asked = self._settings.qr if params.qr is None else params.qr
        return asked and params.visible

    async def details(
        self,
        records: Records,
        params: SignParameters,
        integrator: IntegratorId,
        code: str = SAMPLE_CODE,
    ) -> StampDetails:
        """What a stamp shows besides.

        Args:
            records: to look up the logo.
            params: the signing command's fields.
            integrator: whose request it is.
            code: verification code; in previews a sample, as long as any.
        """
        is_masked = self._settings.mask_cuil
        if params.cuil is not None:
            is_masked = params.cuil is CuilDisplay.MASKED
        shows_logo = params.visible and params.logo is not False
        return StampDetails(
            is_cuil_masked=is_masked,
            qr=f"{self._verify_url}/{code}" if self.has_code(params) else None,
            logo=await records.logos.of(integrator) if shows_logo else None,
        )


async def picture_of(records: Records, details: StampDetails) -> LogoPicture | None:
    """The picture of the logo that a stamp shows, if it shows one."""
    if details.logo is None:
        return None
    return await records.logos.picture(details.logo.sha256)
