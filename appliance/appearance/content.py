"""What a stamp shows besides its command's fields, by settings and by integrator.

Source: decisions "cuil, qr, logo".
"""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from appliance.core.unit_of_work import Transaction
from appliance.domain.appearance.details import (
    CODE_CHARACTERS,
    CODE_LENGTH,
    SAMPLE_CODE,
    LogoPicture,
    StampDetails,
)
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.requests.request import RequestView
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import CuilDisplay
from appliance.integrators.logo_store import LogoStore
from appliance.settings import StampSettings


@dataclass(frozen=True, slots=True)
class SettledStamp:
    """What the stamp of one signature shows besides, once and for all."""

    details: StampDetails
    code: str
    """Verification code; in its QR code, if it has one."""


class Stamping:
    """Settles a stamp's details; each command may say otherwise.

    Args:
        settings: what they show.
        verify_url: where the page of a signature is, without its code.
    """

    def __init__(self, settings: StampSettings, verify_url: str) -> None:
        self._settings = settings
        self._verify_url = verify_url

    async def settle(
        self,
        transaction: Transaction,
        parameters: Mapping[RequestId, SignParameters],
        views: Collection[RequestView],
    ) -> dict[RequestId, SettledStamp]:
        """Settle the stamps of signatures that are about to be consented to.

        Args:
            transaction: to look up logos.
            parameters: the signing command's fields, for each request.
            views: what is to be signed; each gets a code of its own.
        """
        samples: dict[tuple[IntegratorId, SignParameters], StampDetails] = {}
        settled = {}
        for view in views:
            # Without a QR code, too: the signer is told the page of the signature.
            code = new_code()
            sample = view.integrator, parameters[view.id]
            if sample not in samples:
                details = await self.details(transaction, sample[1], sample[0])
                samples[sample] = details
            details = samples[sample]
            if details.qr is not None:
                details = replace(details, qr=f"{self._verify_url}/{code}")
            settled[view.id] = SettledStamp(details, code)
        return settled

    async def details(
        self,
        transaction: Transaction,
        params: SignParameters,
        integrator: IntegratorId,
    ) -> StampDetails:
        """What a stamp shows besides, with a sample of a code, as long as any.

        Args:
            transaction: to look up the logo.
            params: the signing command's fields.
            integrator: whose request it is.
        """
        is_masked = self._settings.mask_cuil
        if params.cuil is not None:
            is_masked = params.cuil is CuilDisplay.MASKED
        has_qr = self._settings.qr if params.qr is None else params.qr
        address = f"{self._verify_url}/{SAMPLE_CODE}"
        shows_logo = params.visible and params.logo is not False
        return StampDetails(
            is_cuil_masked=is_masked,
            qr=address if has_qr and params.visible else None,
            logo=await LogoStore(transaction).of(integrator) if shows_logo else None,
        )


def new_code() -> str:
    """A verification code that nobody can guess."""
    return "".join(secrets.choice(CODE_CHARACTERS) for _ in range(CODE_LENGTH))


async def picture_of(
    transaction: Transaction, details: StampDetails
) -> LogoPicture | None:
    """The picture of the logo that a stamp shows, if it shows one."""
    if details.logo is None:
        return None
    return await LogoStore(transaction).picture(details.logo.sha256)
