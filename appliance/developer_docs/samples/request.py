# WEB_URL=… API_KEY=… CUIL=… python request.py contrato.pdf
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import httpx

pdf = Path(sys.argv[1]).read_bytes()
cuil = os.environ["CUIL"]
sha256 = hashlib.sha256(pdf).hexdigest()
api = httpx.Client(
    base_url=f"{os.environ['WEB_URL']}/api/integration",
    headers={"X-Api-Key": os.environ["API_KEY"]},
    timeout=60,
)


def told(answer: httpx.Response) -> Any:
    """The JSON of an answer; an error ends the program with its code."""
    body = answer.json()
    if answer.is_error:
        sys.exit(f"{body['code']}: {body['detail']} ({body['requestId']})")
    return body


# 1. Upload the document. Repeated with the same key, it is the same document.
document = told(
    api.post(
        "/documents",
        params={"nombre": "contrato.pdf"},
        headers={
            "Content-Type": "application/pdf",
            "Idempotency-Key": f"doc-{sha256}",
        },
        content=pdf,
    )
)

# 2. Ask for the signature.
made = told(
    api.post(
        "/requests",
        headers={"Idempotency-Key": f"req-{sha256}-{cuil}"},
        json={
            "documento": {"documentoId": document["documentoId"]},
            "firmantes": [{"cuil": cuil}],
        },
    )
)

# 3. See how it stands.
request = told(api.get(f"/requests/{made['procesoId']}"))
print(request["procesoId"], request["estado"])
