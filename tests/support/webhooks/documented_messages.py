"""Whether a message to a webhook is as the section `webhooks` of the document says.

check({"type": "webhook.prueba", "timestamp": "…", "data": {"webhookId": "…"}})
"""

from functools import cache
from typing import Any

import jsonschema_rs

from appliance.api.openapi.document import openapi_document


def check(message: dict[str, Any]) -> None:
    """Compare a message with the schema of its type.

    Args:
        message: the body, read.

    Raises:
        jsonschema_rs.ValidationError: it is not as its schema says.
    """
    _validator(message["type"]).validate(message)


@cache
def _validator(kind: str) -> jsonschema_rs.Draft202012Validator:
    document = openapi_document("en")
    content = document["webhooks"][kind]["post"]["requestBody"]["content"]
    schema = content["application/json"]["schema"]
    return jsonschema_rs.Draft202012Validator(
        {"allOf": [schema], "components": document["components"]},
        validate_formats=True,
    )
