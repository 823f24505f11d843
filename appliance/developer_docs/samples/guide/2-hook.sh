cat >receiver.py <<'END'
import base64, hmac, http.server, json, pathlib, time


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_ours = self.is_ours(body)
        self.send_response(204 if is_ours else 400)
        self.end_headers()
        if is_ours:
            told = json.loads(body)
            with open("var/events.txt", "a") as events:
                print(told["type"], told["data"].get("procesoId", ""), file=events)

    def is_ours(self, body):
        secret = pathlib.Path("webhook.secret").read_text().strip()
        key = base64.b64decode(secret.removeprefix("whsec_"))
        sent = self.headers["webhook-timestamp"]
        signed = f"{self.headers['webhook-id']}.{sent}.".encode() + body
        wanted = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
        given = self.headers["webhook-signature"].split()
        return abs(time.time() - int(sent)) <= 300 and any(
            hmac.compare_digest(wanted, each) for each in given
        )


server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
pathlib.Path("receiver.url").write_text(f"http://127.0.0.1:{server.server_port}/")
server.serve_forever()
END
rm -f receiver.url var/events.txt
.venv/bin/python receiver.py 2>receiver.log &
RECEIVER=$!
wait_for test -s receiver.url
(umask 077
  api "$WEB_URL/api/integration/webhooks" -H 'Content-Type: application/json' \
    -d "{\"url\":\"$(cat receiver.url)\"}" >webhook.json
  field secreto <webhook.json >webhook.secret)
WEBHOOK=$(field webhookId <webhook.json)
