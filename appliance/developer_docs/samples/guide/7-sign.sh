sign() {
  api "$WEB_URL/api/integration/test/signers/$CUIL/sign" -H 'Content-Type: application/json' \
    -d "{\"procesoId\":\"$PROCESO\"}" | field status | grep -q success
}
wait_for sign
api "$WEB_URL/api/integration/requests/$PROCESO" | field estado
