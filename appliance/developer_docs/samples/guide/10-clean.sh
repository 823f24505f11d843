api -X DELETE "$WEB_URL/api/integration/webhooks/$WEBHOOK"
kill $RECEIVER
rm receiver.py receiver.log receiver.url webhook.json webhook.secret signer.json
api "$WEB_URL/api/integration/webhooks"
