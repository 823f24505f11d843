"""What a stamp shows besides its command's fields, by settings and by integrator.

Source: decisions "cuil, qr, logo".
"""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from appliance.domain.appearance.details import (
    CODE_CHARACTERS,
    CODE_LENGTH,
    SAMPLE_CODE,
    LogoPicture,
    StampDetails,
)
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.requests.preset import SignaturePreset, StampDefaults
from appliance.domain.requests.request import RequestView
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.vocab import CuilDisplay, StampDesign
from appliance.integrators.logo_store import LogoStore
from appliance.record.unit_of_work import Transaction
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
        given: GivenParameters,
        parameters: Mapping[RequestId, SignParameters],
        views: Collection[RequestView],
    ) -> dict[RequestId, SettledStamp]:
        """Settle the stamps of signatures that are about to be consented to.

        Args:
            transaction: to look up logos.
            given: by the signer's call.
            parameters: the signing command's fields, for each request.
            views: what is to be signed; each gets a code of its own.
        """
        samples: dict[
            tuple[IntegratorId, SignParameters, StampDefaults], StampDetails
        ] = {}
        settled = {}
        for view in views:
            # Without a QR code, too: the signer is told the page of the signature.
            code = new_code()
            defaults = self.defaults(given, view.preset)
            sample = view.integrator, parameters[view.id], defaults
            if sample not in samples:
                details = await self.details(
                    transaction, parameters[view.id], view.integrator, defaults
                )
                samples[sample] = details
            details = samples[sample]
            if details.qr is not None:
                details = replace(details, qr=f"{self._verify_url}/{code}")
            settled[view.id] = SettledStamp(details, code)
        return settled

    def defaults(
        self, given: GivenParameters, preset: SignaturePreset | None = None
    ) -> StampDefaults:
        """What a stamp shows where the command's fields do not say it.

        Args:
            given: by the signer's call, or by who asks for a signature.
            preset: of the request, if it has one.
        """
        settings = self._settings
        found = StampDefaults(settings.design, settings.qr)
        if preset is not None:
            # Of an earlier version, which knew the classic design alone.
            earlier = StampDefaults(StampDesign.CLASSIC, settings.qr)
            found = preset.defaults or earlier
            found = found.classic_if_named(preset.given)
            if preset.fixed:
                return found
        return found.classic_if_named(given)

    async def details(
        self,
        transaction: Transaction,
        params: SignParameters,
        integrator: IntegratorId,
        defaults: StampDefaults,
    ) -> StampDetails:
        """What a stamp shows besides, with a sample of a code, as long as any.

        Args:
            transaction: to look up the logo.
            params: the signing command's fields.
            integrator: whose request it is.
            defaults: from `defaults`.
        """
        is_masked = self._settings.mask_cuil
        if params.cuil is not None:
            is_masked = params.cuil is CuilDisplay.MASKED
        has_qr = defaults.qr if params.qr is None else params.qr
        address = f"{self._verify_url}/{SAMPLE_CODE}"
        shows_logo = params.visible and params.logo is not False
        return StampDetails(
            is_cuil_masked=is_masked,
            qr=address if has_qr and params.visible else None,
            logo=await LogoStore(transaction).of(integrator) if shows_logo else None,
            design=defaults.design if params.visible else StampDesign.CLASSIC,
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
