"""What validation data a signature or timestamp of a document needs now.

What was revoked since leaves a document as good as it was: the data of before is in
the store, and a document timestamp is followed by another one. Nobody answers any
more for what has ended.

Source: EN 319 142-1, 5.4.
"""

from datetime import datetime

from cryptography import x509

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.requests.levels import ValidationData
from appliance.pki.validation.validation_material import ValidationSource
from worker.pades.existing_signatures import Embedded
from worker.pades.timestamp_token import TimestampToken


async def needed_data(
    source: ValidationSource, one: Embedded, now: datetime, *, is_kept: bool
) -> ValidationData | None:
    """What one of them needs; None for what has ended and was kept in time.

    Args:
        source: gathers it.
        one: a signature or timestamp.
        now: the time.
        is_kept: whether it stands in a published document: data is then asked for
            that is younger than what it proves.

    Raises:
        ApplianceError: as `ValidationSource.of`.
    """
    try:
        return await _data_of(source, one, now, is_kept=is_kept)
    except ApplianceError as exc:
        # Of a TSA's that is revoked it is `TSA_UNAVAILABLE`.
        is_away = exc.code is ErrorCode.REVOCATION_UNAVAILABLE
        if is_away or not (one.has_data or one.is_timestamp):
            raise
        return None


async def _data_of(
    source: ValidationSource, one: Embedded, now: datetime, *, is_kept: bool
) -> ValidationData | None:
    """As `needed_data`, of what is not revoked.

    Raises:
        ApplianceError: as `ValidationSource.of`.
    """
    data, token = ValidationData(), one.token
    since = token.at if is_kept and token is not None else None
    if _is_alive(one.certificate, now):
        data = await source.of(one.certificate, one.others, since)
    if (
        token is not None
        and token.certificate != one.certificate
        and _is_alive(token.certificate, now)
    ):
        data = data.with_more(await _of_tsa(source, token, since))
    return data if data.certificates else None


async def _of_tsa(
    source: ValidationSource, token: TimestampToken, since: datetime | None
) -> ValidationData:
    """What the certificate of a TSA needs.

    Raises:
        ApplianceError: `REVOCATION_UNAVAILABLE`; `TSA_UNAVAILABLE`: it is
            revoked, and another one is to stamp.
    """
    try:
        return await source.of(token.certificate, token.certificates, since)
    except ApplianceError as exc:
        if exc.code is ErrorCode.CERTIFICATE_NOT_USABLE:
            raise ApplianceError(ErrorCode.TSA_UNAVAILABLE) from exc
        raise


def _is_alive(certificate: bytes, now: datetime) -> bool:
    """Whether somebody still answers for a certificate."""
    return x509.load_der_x509_certificate(certificate).not_valid_after_utc > now
