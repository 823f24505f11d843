"""The plain form of a page: fields, each of them once."""

from typing import Final
from urllib.parse import parse_qsl

from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
    FieldMissingError,
)
from appliance.web.body.reading import check_type, chunks

_URLENCODED: Final = "application/x-www-form-urlencoded"
_FORM_BYTES = 65_536
_FIELDS_AT_MOST = 64


async def read_fields(*names: str) -> dict[str, str]:
    """Read the present request's body, which must be a page's plain form.

    Args:
        names: the form's fields; each must be there once, and no other.

    Raises:
        FieldMissingError: a field is missing.
        FieldInvalidError: a field is there twice, or the body is not UTF-8.
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`,
            `FIELD_UNKNOWN`.

    Source: URL standard, application/x-www-form-urlencoded.
    """
    given = await read_pairs(_FORM_BYTES, "ascii")
    fields: dict[str, str] = {}
    for name, value in given:
        if name not in names:
            shown = name[:64]
            raise ApplianceError(
                ErrorCode.FIELD_UNKNOWN,
                params={"field": shown},
                extras={"field": shown, "allowed": sorted(names)},
            )
        if name in fields:
            raise FieldInvalidError(name)
        fields[name] = value
    for name in names:
        if name not in fields:
            raise FieldMissingError(name)
    return fields


async def read_pairs(limit_bytes: int, encoding: str) -> list[tuple[str, str]]:
    """Read the present request's body as names and values, as they come.

    Args:
        limit_bytes: largest body.
        encoding: of what is not escaped.

    Raises:
        FieldInvalidError: the body is not in that encoding, or has too many fields.
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`.
    """
    check_type(_URLENCODED)
    raw = b"".join([c async for c in chunks(limit_bytes)])
    try:
        return parse_qsl(
            raw.decode(encoding),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_FIELDS_AT_MOST,
        )
    except ValueError as exc:
        raise FieldInvalidError("(body)", _URLENCODED) from exc
