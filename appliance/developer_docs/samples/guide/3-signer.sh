api "$WEB_URL/api/integration/test/signers" -H 'Content-Type: application/json' \
  -d '{"nombre":"Ana Prueba"}' >signer.json
CUIL=$(field cuil <signer.json)
can_sign() {
  api "$WEB_URL/api/integration/test/signers/$CUIL" | field puedeFirmar | grep -q True
}
wait_for can_sign
