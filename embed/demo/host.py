"""The demo integrator's web server: a page, and a backend that asks for sessions.

The API key stays in this process: the page gets the ephemeral token alone
(contract, "Authentication", rule 1). It listens on this machine and is no model
of how to serve to the world; it is a model of what such a backend has to do.
"""

import hmac
import http.server
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from email.message import EmailMessage
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from appliance.cli.demo.visit_key import read_visit_key
from appliance.domain.text.urls import read_address
from appliance.runtime.processes import bind
from appliance.settings import SettingsError
from appliance.web import brand, sdk
from embed.demo import mail_pages
from embed.demo.config import HostConfig
from embed.demo.desk import Desk
from embed.demo.mail_catcher import MailCatcher

_STATIC: Final = Path(__file__).resolve().parent / "static"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FILES: Final = (
    {
        f"/{path.name}": path.read_bytes()
        for path in _STATIC.iterdir()
        if path.suffix in _TYPES
    }
    | {f"/{name}": content for name, content in brand.FILES.items()}
    | {"/": (_STATIC / "index.html").read_bytes()}
)
_SDK: Final = b"<!-- SDK -->"
"""Where the page has the SDK's script."""
_TRIAL: Final = "/ensayo"
"""Below it stands what a visitor of a trial is shown."""
_COOKIE: Final = "visita"
"""Begin of the name of the cookie with the visit key."""
_KEY_HEADER: Final = "X-Visita"
_SESSION_WAIT_S: Final = 15
_LARGEST_ANSWER: Final = 1_048_576
"""Of the service, in bytes; a request comes with its history."""
_NUMBER: Final = re.compile("[0-9]{1,15}", re.ASCII)
_ID: Final = re.compile("[0-9A-Za-z_-]{1,64}", re.ASCII)
_ASKED: Final = "/pedido.json"
"""Endpoint where the page reads signer and document of a request in a mail's link."""


@dataclass(frozen=True, slots=True)
class AskedRequest:
    """The request that a mail's link names; ids as the link has them, or empty."""

    process: str = ""
    request: str = ""
    batch: str = ""

    @classmethod
    def of_query(cls, query: dict[str, list[str]]) -> "AskedRequest":
        """Read it from a link's parameters; what is no id counts as not given."""

        def given(name: str, pattern: re.Pattern[str]) -> str:
            value = query.get(name, [""])[0]
            return value if pattern.fullmatch(value) else ""

        return cls(
            given("proceso", _ID), given("solicitud", _NUMBER), given("lote", _ID)
        )

    def as_json(self) -> dict[str, object]:
        """Return what names it at the session endpoint: one id; empty for none.

        Source: docs/integration.md, "A session for one request".
        """
        if self.batch:
            return {"loteId": self.batch}
        if self.request:
            return {"solicitudId": int(self.request)}
        return {"procesoId": self.process} if self.process else {}


_NOT_ASKED: Final = AskedRequest()
"""No request is named: the page brings the document."""


class ServiceRefusalError(Exception):
    """A call of the service failed; the text is the code that the page shows."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    status: int
    content: bytes
    kind: str
    policy: str | None = None
    """Its `Content-Security-Policy`, where that is not the site's."""
    cookie: str | None = None
    """A `Set-Cookie` header."""

    @classmethod
    def of_json(cls, value: object, status: int = HTTPStatus.OK) -> "Answer":
        """An answer of JSON."""
        return cls(status, json.dumps(value).encode(), "application/json")

    @classmethod
    def refused(cls, status: int, code: str) -> "Answer":
        """An error that the page shows."""
        return cls.of_json({"code": code}, status)


def _visit_key(path: Path | None) -> bytes | None:
    """Read the visit key; None for a site of this machine alone, which needs none.

    Raises:
        OSError: the file cannot be read.
        SettingsError: it holds no key. An empty one would let everybody in.
    """
    if path is None:
        return None
    key = read_visit_key(path)
    if not key:
        msg = f"{path}: holds no visit key; start the trial with --network again"
        raise SettingsError(msg)
    return key.encode()


class DemoHost(http.server.ThreadingHTTPServer):
    """The integrator's site.

    Args:
        config: addresses, key file, and the person to be proposed.
        quiet: writes no line for each request.
        catcher: has the trial's mails; None where there are none.
        desk: has the trial's passwords and codes; None where none are shown.

    Raises:
        OSError: the address cannot be had, or the visit key cannot be read.
        SettingsError: the visit key's file holds none.
    """

    daemon_threads = True

    def __init__(
        self,
        config: HostConfig,
        *,
        quiet: bool = False,
        catcher: MailCatcher | None = None,
        desk: Desk | None = None,
    ) -> None:
        self.config = config
        self.quiet = quiet
        self.catcher = catcher
        self.desk = desk
        self.visit_key = _visit_key(config.visit_key_file)
        # `server_bind` takes the address from the configuration.
        super().__init__(("", 0), _Handler)

    def server_bind(self) -> None:
        """Listen where the configuration says, or take what is open there.

        Raises:
            SettingsError: the address cannot be had; the text says why.
        """
        self.socket.close()
        self.socket = bind(self.config.listen, self.request_queue_size)
        name, port = self.socket.getsockname()[:2]
        self.server_address = (name, port)
        self.server_name, self.server_port = name, port

    def get(self, path: str, lang: str = "es") -> Answer:
        """Answer a GET: the page, its files, what it has to know, the sample, mails."""
        if path.startswith(mail_pages.PATH):
            return self._mails(path.removeprefix(mail_pages.PATH), lang)
        if path.startswith(f"{_TRIAL}/"):
            return self._trial(path.removeprefix(_TRIAL))
        if path == "/config.json":
            return Answer.of_json(self._told_to_the_page())
        if path == "/ejemplo.pdf" and self.config.sample is not None:
            return self._sample(self.config.sample)
        if path not in _FILES:
            return Answer.refused(HTTPStatus.NOT_FOUND, "NOT_FOUND")
        kind = _TYPES[Path(path).suffix or ".html"]
        content = _FILES[path].replace(_SDK, self._sdk_script().encode())
        return Answer(HTTPStatus.OK, content, kind)

    @staticmethod
    def is_private(path: str) -> bool:
        """Return whether a path is for visitors with the visit key alone."""
        return path.startswith((f"{_TRIAL}/", mail_pages.PATH)) or path == _ASKED

    def admits(self, key: str) -> bool:
        """Return whether a visitor with this key is shown what is private."""
        if self.visit_key is None:
            # A site that others reach shows nothing private without a key.
            return not self.config.public_origin
        return hmac.compare_digest(self.visit_key, key.encode())

    @property
    def cookie_name(self) -> str:
        """Name of the visit key's cookie; browsers share cookies of all ports."""
        return f"{_COOKIE}-{self.config.listen.rpartition(':')[2]}"

    def enter(self, key: str) -> Answer:
        """Answer a visitor who shows the visit key, with a cookie if it is right."""
        if self.visit_key is None or not self.admits(key):
            return Answer.refused(HTTPStatus.FORBIDDEN, "VISIT_KEY_WRONG")
        cookie = f"{self.cookie_name}={key}; Path=/; HttpOnly; Secure; SameSite=Strict"
        return Answer(HTTPStatus.NO_CONTENT, b"", "text/plain", cookie=cookie)

    def _trial(self, rest: str) -> Answer:
        """Answer with the present codes, or with the page of a signature."""
        if self.desk is None:
            return Answer.refused(HTTPStatus.NOT_FOUND, "NOT_FOUND")
        if rest == "/claves.json":
            shown = self.desk.visit()
            if shown is None:
                return Answer.refused(HTTPStatus.SERVICE_UNAVAILABLE, "NOT_NOW")
            return Answer.of_json(shown)
        folder, _, number = rest[1:].partition("/")
        if folder != "firma" or not _NUMBER.fullmatch(number):
            return Answer.refused(HTTPStatus.NOT_FOUND, "NOT_FOUND")
        return Answer.of_json({"url": self.desk.signature_page(int(number))})

    def _sdk_script(self) -> str:
        """The SDK's script, from the appliance and by its hash; none, if none is built.

        An integrator writes this line by hand, as the list at `{web_url}/sdk/` has it.
        """
        if (built := sdk.built()) is None:
            return ""
        return (
            f'<script type="module" src="{self._sdk_address}" crossorigin'
            f' integrity="{built.files[sdk.MODULE].integrity}"></script>'
        )

    @property
    def _sdk_address(self) -> str:
        return f"{self.config.web_url}/sdk/{sdk.MODULE}"

    def _mails(self, rest: str, lang: str) -> Answer:
        """The mails that were caught, or of one `/7/html`, `/7/text`, `/7/0`."""
        if self.catcher is None:
            return Answer.refused(HTTPStatus.NOT_FOUND, "NOT_FOUND")
        caught = self.catcher.caught
        if rest in {"", "/"}:
            page = mail_pages.listing(caught, lang)
            return Answer(HTTPStatus.OK, page.encode(), _TYPES[".html"])
        number, _, part = rest[1:].partition("/")
        found = next((mail for mail in caught if str(mail.number) == number), None)
        if found is None:
            return Answer.refused(HTTPStatus.NOT_FOUND, "NOT_FOUND")
        return _part(found.message, part)

    def _sample(self, path: Path) -> Answer:
        try:
            return Answer(HTTPStatus.OK, path.read_bytes(), "application/pdf")
        except OSError:
            return Answer.refused(HTTPStatus.NOT_FOUND, "SAMPLE_MISSING")

    def _told_to_the_page(self) -> dict[str, object]:
        return {
            "iframeUrl": self.config.iframe_url,
            "eventPrefix": self.config.event_prefix,
            "user": self.config.user,
            "sample": self.config.sample.name if self.config.sample else None,
            "hasCodes": self.desk is not None,
            "hasMails": self.catcher is not None,
            # Behind a certificate that a browser asks its person about.
            "isShared": bool(self.config.public_origin),
        }

    def new_session(self, asked: AskedRequest = _NOT_ASKED) -> Answer:
        """Ask the appliance for a session token, and hand on the token alone.

        Source: contract, "POST {web_url}/api/integration/session/new";
        docs/integration.md, "A session for one request".

        Args:
            asked: the request that is signed in it; by default the page brings one.
        """
        query = urllib.parse.urlencode({"id": self.config.integrator_id})
        named = asked.as_json()
        try:
            if named:
                told = self._call("POST", "/api/integration/sessions", named)
            else:
                told = self._call("POST", f"/api/integration/session/new?{query}")
            token = told["tokenSession"]
        except ServiceRefusalError as exc:
            return Answer.refused(HTTPStatus.BAD_GATEWAY, str(exc))
        except (KeyError, TypeError):
            return Answer.refused(HTTPStatus.BAD_GATEWAY, "UNINTELLIGIBLE")
        return Answer.of_json(
            {"tokenSession": token, "validUntil": told.get("validUntil")}
        )

    def asked_for(self, asked: AskedRequest) -> Answer:
        """Answer with the signer and the document of a request.

        Source: docs/integration.md, "One request, and its history".

        Args:
            asked: of a mail's link; without a `request` the signer is the first one.
        """
        if not asked.process:
            return Answer.refused(HTTPStatus.NOT_FOUND, "NOT_FOUND")
        try:
            told = self._call("GET", f"/api/integration/requests/{asked.process}")
            signers = told["firmantes"]
            signer = next(
                (each for each in signers if str(each["solicitudId"]) == asked.request),
                signers[0],
            )
            shown = {
                "cuil": signer["cuil"],
                "name": signer["nombre"],
                "document": told["documento"]["nombre"],
            }
        except ServiceRefusalError as exc:
            return Answer.refused(HTTPStatus.BAD_GATEWAY, str(exc))
        except (KeyError, TypeError, IndexError):
            return Answer.refused(HTTPStatus.BAD_GATEWAY, "UNINTELLIGIBLE")
        return Answer.of_json(shown)

    def _call(
        self, method: str, path: str, body: dict[str, object] | None = None
    ) -> dict[str, Any]:
        """Call the service with the API key; the JSON that it answers.

        Raises:
            ServiceRefusalError: it refused, did not answer, or not in JSON.
        """
        try:
            key = self.config.api_key_file.read_text(encoding="ascii").strip()
        except OSError as exc:
            raise ServiceRefusalError("API_KEY_MISSING") from exc
        headers = {"X-Api-Key": key}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(  # noqa: S310 (an address of the configuration)
            f"{self.config.service_url or self.config.web_url}{path}",
            None if body is None else json.dumps(body).encode(),
            headers,
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=_SESSION_WAIT_S) as answer:  # noqa: S310 (same)
                told: dict[str, Any] = json.loads(answer.read(_LARGEST_ANSWER))
        except urllib.error.HTTPError as exc:
            raise ServiceRefusalError(_code_of(exc)) from exc
        except OSError as exc:
            raise ServiceRefusalError("UNREACHABLE") from exc
        except ValueError as exc:
            raise ServiceRefusalError("UNINTELLIGIBLE") from exc
        return told

    def headers_of_all(self) -> dict[str, str]:
        """Headers of answers; the policy is what an integrator needs."""
        documents = " ".join(self.config.download_origins)
        return {
            "Content-Security-Policy": (
                f"default-src 'none'; script-src 'self' {self._sdk_address}; "
                "style-src 'self'; "
                f"img-src 'self'; connect-src 'self' {documents}; "
                f"frame-src {self.config.iframe_url}; "
                "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "strict-origin-when-cross-origin",
            "Cache-Control": "no-store",
        }


def _part(message: EmailMessage, part: str) -> Answer:
    """One part of a caught mail."""
    if part == "html":
        page = mail_pages.html_of(message)
        return Answer(HTTPStatus.OK, page.encode(), _TYPES[".html"], mail_pages.POLICY)
    if part == "text":
        text = mail_pages.text_of(message)
        return Answer(HTTPStatus.OK, text.encode(), "text/plain; charset=utf-8")
    files = mail_pages.attachments(message)
    if part.isascii() and part.isdigit() and int(part[:4]) < len(files):
        return Answer(HTTPStatus.OK, files[int(part[:4])][1], "application/pdf")
    return Answer.refused(HTTPStatus.NOT_FOUND, "NOT_FOUND")


def _code_of(exc: urllib.error.HTTPError) -> str:
    """The code of a problem document, or the status."""
    try:
        return str(json.loads(exc.read(_LARGEST_ANSWER))["code"])
    except (ValueError, KeyError, TypeError, OSError):
        return f"HTTP_{exc.code}"


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection of a browser."""

    server: DemoHost
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        """Answer a GET."""
        self._send(self._misdirected() or self._get())

    def _get(self) -> Answer:
        path, query = self._asked(), self._query()
        if refused := self._uninvited(path):
            return refused
        if path == _ASKED:
            return self.server.asked_for(AskedRequest.of_query(query))
        lang = "en" if query.get("lang") == ["en"] else "es"
        return self.server.get(path, lang)

    def do_POST(self) -> None:
        """Answer a POST: a new session, for the page's own scripts."""
        # No body is of use here; what came is not read, so the connection ends.
        self.close_connection = True
        self._send(self._misdirected() or self._post())

    def _post(self) -> Answer:
        # In a browser every POST carries Origin: a page of somebody else must not
        # spend this integrator's sessions.
        if self.headers.get("Origin") != self.server.config.origin:
            return Answer.refused(HTTPStatus.FORBIDDEN, "FOREIGN_PAGE")
        path = self._asked()
        if path == "/visita":
            return self.server.enter(self.headers.get(_KEY_HEADER, ""))
        if path != "/sesion":
            return Answer.refused(HTTPStatus.NOT_FOUND, "NOT_FOUND")
        asked = AskedRequest.of_query(self._query())
        # Only whoever may read the mails follows their links.
        if asked != _NOT_ASKED and (refused := self._uninvited(_ASKED)):
            return refused
        return self.server.new_session(asked)

    def _uninvited(self, path: str) -> Answer | None:
        """Refuse what is private to a visitor without the visit key."""
        if not self.server.is_private(path) or self.server.admits(self._cookie()):
            return None
        return Answer.refused(HTTPStatus.FORBIDDEN, "VISIT_KEY_MISSING")

    def _cookie(self) -> str:
        for pair in self.headers.get("Cookie", "").split(";"):
            name, _, value = pair.strip().partition("=")
            if name == self.server.cookie_name:
                return value
        return ""

    def _asked(self) -> str:
        """The path that is asked for; empty, where nothing is, for no address."""
        address = read_address(self.path)
        return "" if address is None else address.path

    def _query(self) -> dict[str, list[str]]:
        """Return the parameters of the address."""
        address = read_address(self.path)
        return urllib.parse.parse_qs("" if address is None else address.query)

    def _misdirected(self) -> Answer | None:
        """Refuse another host name: a name that was made to point here."""
        expected = urllib.parse.urlsplit(self.server.config.origin).netloc
        if self.headers.get("Host") == expected:
            return None
        return Answer.refused(HTTPStatus.MISDIRECTED_REQUEST, "MISDIRECTED")

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        headers = self.server.headers_of_all()
        if answer.policy is not None:
            headers["Content-Security-Policy"] = answer.policy
        if answer.cookie is not None:
            headers["Set-Cookie"] = answer.cookie
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.content)))
        if self.close_connection:
            # A client that is not told would ask again on it.
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.content)

    def version_string(self) -> str:
        """Name of the server, without versions."""
        return "demo"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (inherited)
        """Write a line for a request; no address of ours carries a secret.

        Open pages ask for codes every few seconds: of that none is written.
        """
        # A request that could not be read has no path.
        polls = getattr(self, "path", "").startswith(f"{_TRIAL}/")
        if not self.server.quiet and not polls:
            super().log_message(format, *args)
