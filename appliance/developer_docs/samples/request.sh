#!/usr/bin/env bash
# WEB_URL=… API_KEY=… CUIL=… ./request.sh contrato.pdf
set -euo pipefail

api() { curl -sS --fail-with-body -H "X-Api-Key: $API_KEY" "$@"; }
sha256=$(sha256sum "$1" | cut -d ' ' -f 1)

# 1. Upload the document. Repeated with the same key, it is the same document.
document=$(api "$WEB_URL/api/integration/documents?nombre=contrato.pdf" \
  -H 'Content-Type: application/pdf' -H "Idempotency-Key: doc-$sha256" \
  --data-binary "@$1" | jq -r .documentoId)

# 2. Ask for the signature.
process=$(api "$WEB_URL/api/integration/requests" \
  -H 'Content-Type: application/json' -H "Idempotency-Key: req-$sha256-$CUIL" \
  -d "{\"documento\":{\"documentoId\":\"$document\"},\"firmantes\":[{\"cuil\":\"$CUIL\"}]}" |
  jq -r .procesoId)

# 3. See how it stands.
api "$WEB_URL/api/integration/requests/$process" | jq -r '"\(.procesoId) \(.estado)"'
