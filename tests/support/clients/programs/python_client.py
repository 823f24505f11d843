"""Calls the API by what openapi-python-client made: `create` or `download`."""

import hashlib
import json
import sys
from base64 import b64decode
from io import BytesIO
from typing import Any

from rubrica_api_client import AuthenticatedClient
from rubrica_api_client.api.requests import (
    create_request,
    get_signed_document,
    list_requests,
)
from rubrica_api_client.models import (
    CreateRequestFilesBody,
    NewRequest,
    Problem,
    SentDocument,
    SignerInTurn,
)
from rubrica_api_client.types import File


def create(
    client: AuthenticatedClient, cuil: str, base64: str, referencia: str
) -> dict[str, Any]:
    """Ask for a signature in parts and in JSON; the one is found in the list."""
    content = b64decode(base64)
    signers = [SignerInTurn(cuil=cuil)]
    options = NewRequest(firmantes=signers, referencia=referencia)
    file = File(BytesIO(content), "contrato.pdf", "application/pdf")
    made = create_request.sync(
        client=client, body=CreateRequestFilesBody(file=file, options=options)
    )
    document = SentDocument(contenido=base64, nombre="anexo.pdf")
    other = create_request.sync(
        client=client, body=NewRequest(firmantes=signers, documento=document)
    )
    wrong = create_request.sync(client=client, body=NewRequest(firmantes=signers))
    assert isinstance(wrong, Problem)
    listed = list_requests.sync(client=client, referencia=referencia)
    return {
        "procesoId": str(made.proceso_id),
        "names": [made.documento.nombre, other.documento.nombre],
        "solicitudId": made.firmantes[0].solicitud_id,
        "listed": [str(each.proceso_id) for each in listed],
        "refusedAs": wrong.code,
    }


def download(client: AuthenticatedClient, proceso: str) -> dict[str, Any]:
    """Fetch the signed document."""
    found = get_signed_document.sync(client=client, proceso_id=proceso)
    return {"sha256": hashlib.sha256(found.payload.read()).hexdigest()}


given = json.load(sys.stdin)
with AuthenticatedClient(base_url=given.pop("url"), token=given.pop("key")) as opened:
    run: Any = create if sys.argv[1] == "create" else download
    sys.stdout.write(json.dumps(run(opened, **given)))
