PROCESO=$(api "$WEB_URL/api/integration/requests" -H "Idempotency-Key: guia-$CUIL" \
  -F 'file=@var/demo.pdf;type=application/pdf' \
  -F "options={\"firmantes\":[{\"cuil\":\"$CUIL\"}]};type=application/json" | field procesoId)
api "$WEB_URL/api/integration/requests/$PROCESO" | field estado
