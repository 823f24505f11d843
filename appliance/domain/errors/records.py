"""Errors as rows of the record keep them, to be told later in any language."""

from collections.abc import Mapping
from typing import Any

from appliance.domain.errors.codes import ErrorCode
from appliance.domain.errors.exceptions import ApplianceError
from appliance.domain.errors.sentences import SENTENCES


def error_to_json(error: ApplianceError) -> dict[str, object]:
    """Write an error as JSON.

    Args:
        error: with plain JSON values in `params` and `extras`.
    """
    told: dict[str, object] = {"code": error.code.value}
    if error.params:
        told["params"] = dict(error.params)
    if error.extras:
        told["extras"] = dict(error.extras)
    if error.sentence != SENTENCES[error.code]:
        told["sentence"] = error.sentence
    return told


def error_from_json(fields: Mapping[str, Any]) -> ApplianceError:
    """Read back what `error_to_json` wrote.

    A code that this version does not know, of a later one, is read as `INTERNAL`.

    Args:
        fields: of the record.
    """
    try:
        code = ErrorCode(fields["code"])
    except ValueError:
        return ApplianceError(ErrorCode.INTERNAL, extras=dict(fields.get("extras", {})))
    return ApplianceError(
        code,
        params=dict(fields.get("params", {})),
        extras=dict(fields.get("extras", {})),
        sentence=fields.get("sentence"),
    )
