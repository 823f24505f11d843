# WEB_URL=… API_KEY=… CUIL=… python batch.py enero.pdf febrero.pdf
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import httpx

paths = [Path(each) for each in sys.argv[1:]]
pdfs = [path.read_bytes() for path in paths]
cuil = os.environ["CUIL"]
sha256 = hashlib.sha256(b"".join(pdfs)).hexdigest()
api = httpx.Client(
    base_url=f"{os.environ['WEB_URL']}/api/integration",
    headers={"X-Api-Key": os.environ["API_KEY"]},
    timeout=90,
)


def told(answer: httpx.Response) -> Any:
    """The JSON of an answer; an error ends the program with its code."""
    body = answer.json()
    if answer.is_error:
        sys.exit(f"{body['code']}: {body['detail']} ({body['requestId']})")
    return body


# 1. Ask for all of them at once: a part for each PDF, in the order to be signed in.
options = {"firmante": {"cuil": cuil}, "documentos": [{} for _ in pdfs]}
parts = [
    (f"pdf{number}", (path.name, pdf, "application/pdf"))
    for number, (path, pdf) in enumerate(zip(paths, pdfs, strict=True))
]
batch = told(
    api.post(
        "/batches",
        headers={"Idempotency-Key": f"lote-{sha256}-{cuil}"},
        files=[("options", (None, json.dumps(options), "application/json")), *parts],
    )
)

# 2. Wait until its documents are examined. A webhook tells it too: lote.listo.
while batch["estado"] == "en_preparacion":
    time.sleep(1)
    batch = told(api.get(f"/batches/{batch['loteId']}"))
if batch["estado"] != "listo":
    sys.exit(json.dumps(batch.get("errors", []), indent=2, ensure_ascii=False))

# 3. Open a session for it, whose token your page gets.
session = told(api.post("/sessions", json={"loteId": batch["loteId"]}))
print(session["loteId"], session["tokenSession"])
