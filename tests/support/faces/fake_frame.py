"""A service that speaks the iframe's protocol and signs nothing.

For the host's side alone: session endpoint, embed page and download are where the
contract has them, and behave as a test asks. What the real frame does is tested
with the real frame.
"""

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tests.support.browsers.host_page import Call, HostPage, Reply

_PAGE: Final = Path(__file__).with_name("fake_frame.html")
API_KEY: Final = "rbk_test_1_0123456789abcdef"
INTEGRATOR: Final = "demo"
PROCESS: Final = "proceso-1"
"""A request that the service has, of `SIGNERS`."""
BATCH: Final = "lote-1"
SIGNERS: Final = (
    (7, "20-05536168-2", "Ana María Núñez"),
    (8, "20-26756539-3", "Bruno Díaz"),
)
"""Its signers: `solicitudId`, CUIL and name, in their order."""


class FakeService(HostPage):
    """Plays the appliance; its frame is on `localhost`.

    Args:
        host_origin: the origin of the page that may embed.
        **play: how the frame behaves: `delivery` (`binary` or `url`), `prefix`,
            `error` (payload sent instead of the ack), `mute` (no ack), `silent`
            (no ready).
    """

    def __init__(self, host_origin: str, **play: Any) -> None:
        super().__init__()
        self.play = {
            "parent": host_origin,
            "prefix": "svc",
            "delivery": "binary",
            **play,
        }
        self.signed = b""
        self.tokens: list[str] = []
        self.on("POST", "/api/integration/session/new", self._new_session)
        self.on("POST", "/api/integration/sessions", self._session_for)
        self.on("GET", f"/api/integration/requests/{PROCESS}", self._request)
        self.on("GET", "/embed/", self._embed)
        self.on("POST", "/signed", self._keep)
        self.on("GET", "/download", self._download)

    @property
    def iframe_url(self) -> str:
        """Origin of the frame."""
        return self.origin("localhost")

    @property
    def web_url(self) -> str:
        """Origin of the session endpoint."""
        return self.origin("127.0.0.1")

    def _new_session(self, call: Call) -> Reply:
        query = parse_qs(urlsplit(call.target).query)
        if call.headers.get("X-Api-Key") != API_KEY or query != {"id": [INTEGRATOR]}:
            return Reply.of_json({"code": "API_KEY_INVALID"}, 401)
        self.tokens.append(f"token-{len(self.tokens) + 1}")
        return Reply.of_json(
            {"tokenSession": self.tokens[-1], "validUntil": "2030-01-01T00:30:00Z"}
        )

    def _session_for(self, call: Call) -> Reply:
        """A session for one request of the integrator, or for a batch."""
        named = json.loads(call.body)
        if call.headers.get("X-Api-Key") != API_KEY:
            return Reply.of_json({"code": "API_KEY_INVALID"}, 401)
        if named not in ({"procesoId": PROCESS}, {"solicitudId": 8}, {"loteId": BATCH}):
            return Reply.of_json({"code": "NOT_FOUND"}, 404)
        self.tokens.append(f"token-{len(self.tokens) + 1}")
        return Reply.of_json(
            {"tokenSession": self.tokens[-1], "validUntil": "2030-01-01T00:30:00Z"}, 201
        )

    def _request(self, call: Call) -> Reply:
        """A request of two signers."""
        if call.headers.get("X-Api-Key") != API_KEY:
            return Reply.of_json({"code": "API_KEY_INVALID"}, 401)
        signers = [
            {"solicitudId": number, "cuil": cuil, "nombre": name}
            for number, cuil, name in SIGNERS
        ]
        return Reply.of_json(
            {"firmantes": signers, "documento": {"nombre": "acuerdo.pdf"}}
        )

    def _embed(self, call: Call) -> Reply:
        token = parse_qs(urlsplit(call.target).query).get("sessionToken", [""])[0]
        if token not in self.tokens:
            return Reply(b"unknown session", status=401)
        page = _PAGE.read_text(encoding="utf-8")
        page = page.replace("/*PLAY*/{}", json.dumps(self.play))
        policy = f"frame-ancestors {self.play['parent']}"
        return Reply(page.encode(), headers={"Content-Security-Policy": policy})

    def _keep(self, call: Call) -> Reply:
        self.signed = call.body
        return Reply(self.url("/download").encode(), "text/plain")

    def _download(self, call: Call) -> Reply:
        del call
        allow = {"Access-Control-Allow-Origin": str(self.play["parent"])}
        return Reply(self.signed, "application/pdf", headers=allow)
