TOKEN=$(api "$WEB_URL/api/integration/sessions" -H 'Content-Type: application/json' \
  -d "{\"procesoId\":\"$PROCESO\"}" | field tokenSession)
echo "{iframe_url}/embed/?sessionToken=$TOKEN"
