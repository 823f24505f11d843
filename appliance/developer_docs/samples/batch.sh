#!/usr/bin/env bash
# WEB_URL=… API_KEY=… CUIL=… ./batch.sh enero.pdf febrero.pdf
set -euo pipefail

api() { curl -sS --fail-with-body -H "X-Api-Key: $API_KEY" "$@"; }
sha256=$(cat "$@" | sha256sum | cut -d ' ' -f 1)

# 1. Ask for all of them at once: a part for each PDF, in the order to be signed in.
parts=()
for pdf in "$@"; do
  parts+=(-F "pdf${#parts[@]}=@$pdf;type=application/pdf")
done
options=$(jq -n --arg cuil "$CUIL" --arg count $# \
  '{firmante: {cuil: $cuil}, documentos: [range($count | tonumber) | {}]}')
batch=$(api "$WEB_URL/api/integration/batches" -H "Idempotency-Key: lote-$sha256-$CUIL" \
  -F "options=$options;type=application/json" "${parts[@]}" | jq -r .loteId)

# 2. Wait until its documents are examined. A webhook tells it too: lote.listo.
while told=$(api "$WEB_URL/api/integration/batches/$batch"); do
  state=$(jq -r .estado <<< "$told")
  [ "$state" = en_preparacion ] || break
  sleep 1
done
[ "$state" = listo ] || { jq .errors <<< "$told" >&2; exit 1; }

# 3. Open a session for it, whose token your page gets.
api "$WEB_URL/api/integration/sessions" -H 'Content-Type: application/json' \
  -d "{\"loteId\":\"$batch\"}" | jq -r '"\(.loteId) \(.tokenSession)"'
