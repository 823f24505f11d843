"""Calls that functional tests make, and answers and signed PDFs read back."""

import base64
import io
import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx
import pikepdf
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from appliance.bootstrap import ServiceRegistry
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.faults.fault_injection import until
from tests.support.patience import CALL_S
from tests.support.processes.plain_http import NO_TLS

Result = TypeVar("Result")

ORIGIN: Final = "https://app.example"
"""The one origin whose pages may call the second appliance."""
A4_HEIGHT: Final = 842
_SOCKET_S: Final = 60


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check an error's status, code and shape; gives its members."""
    assert response.headers["Content-Type"] == "application/problem+json", response.text
    members: dict[str, Any] = response.json()
    assert (response.status_code, members["code"]) == (status, code), members
    assert members["status"] == status
    assert members["requestId"] == response.headers["X-Request-Id"]
    assert members.keys() >= {"type", "title", "detail", "category"}
    return members


def command(person: TestPerson, request: int, **fields: object) -> dict[str, object]:
    """A body of firmar: what is required, and what is given."""
    required = {"solicitudId": request, "password": person.signing_password}
    return {**required, **fields}


def sign(
    client: httpx.Client, person: TestPerson, request: int, **fields: object
) -> httpx.Response:
    """Call firmar."""
    return client.post("/solicitudes/firmar", json=command(person, request, **fields))


def sign_at_last(
    client: httpx.Client, person: TestPerson, request: int, **fields: object
) -> httpx.Response:
    """Call firmar, and again while it is answered 202.

    What a worker left that died takes longer on a busy machine than one call waits.
    """
    while (answer := sign(client, person, request, **fields)).status_code == 202:
        pass
    return answer


def signed_pdf(
    client: httpx.Client, person: TestPerson, request: int, **fields: object
) -> bytes:
    """Call firmar, which must succeed, and download by the link it gives."""
    answer = sign(client, person, request, **fields)
    assert answer.status_code == 200, answer.text
    address = answer.json()["documentoFirmado"]
    download = httpx.get(address, timeout=CALL_S, verify=NO_TLS)
    assert download.status_code == 200, download.text
    return download.content


def state_of(client: httpx.Client, request: int) -> str:
    """`estado` of a request."""
    return str(client.get(f"/solicitudes/{request}").json()["estado"])


@contextmanager
def being_signed(
    client: httpx.Client, person: TestPerson, request: int
) -> Iterator[None]:
    """Call firmar, and go on once its activation stands recorded.

    Its workers are to stand still, or to be held up otherwise. The call goes on
    meanwhile: it is answered 200, or 202 after `signing.wait_s`.
    """

    def is_begun() -> bool:
        return call.done() or state_of(client, request) == "en_proceso"

    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(sign, client, person, request)
        until(is_begun)
        assert not call.done(), call.result().text
        yield
        answer = call.result()
    assert answer.status_code in {200, 202}, answer.text


def at_once(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Make calls in parallel; gives what each gave, in order."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def let_in(call: Callable[[], httpx.Response]) -> httpx.Response:
    """Make a call again as long as there is no room for it, when it is told to."""
    deadline = time.monotonic() + CALL_S
    while (answer := call()).status_code == HTTPStatus.SERVICE_UNAVAILABLE:
        assert time.monotonic() < deadline, answer.text
        time.sleep(float(answer.headers["Retry-After"]))
    return answer


def code_of(appliance: Appliance, person: TestPerson) -> str:
    """A person's next unused code, of one that is accepted without a wait."""

    async def ask(front: ServiceRegistry) -> tuple[str, float]:
        return await front.login.next_code(person.id)

    code, wait_s = appliance.do(ask)
    assert wait_s == 0, "this person's codes are used up; take another person"
    return code


def log_in(client: httpx.Client, person: TestPerson) -> str:
    """Show a right password; gives the login token."""
    answer = client.post(
        "/auth/login",
        json={"usuario": person.cuil, "password": person.login_password},
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["loginToken"])


def log_in_whole(
    appliance: Appliance, client: httpx.Client, person: TestPerson
) -> tuple[str, str]:
    """Show a right password and the next code; gives login token and bearer."""
    token = log_in(client, person)
    code = code_of(appliance, person)
    answer = client.post("/auth/otp", json={"loginToken": token, "codigo": code})
    assert answer.status_code == 200, answer.text
    return token, str(answer.json()["access_token"])


def forged(
    appliance: Appliance,
    person: TestPerson,
    *,
    header: dict[str, object] | None = None,
    **claims: object,
) -> str:
    """A token rightly signed with the appliance's own key, changed as asked.

    A claim or header member of `...` is left out.
    """

    async def make(front: ServiceRegistry) -> str:
        token = (
            await front.tokens.issue(person.id, ("pwd", "otp"), front.clock.now())
        ).token
        first, second, _ = token.split(".")
        key = front.tokens._private(await front.tokens._signing_key())
        private = key.private_key
        assert isinstance(private, ec.EllipticCurvePrivateKey)
        signed = ".".join(
            _encoded(_changed(part, changes))
            for part, changes in ((first, header or {}), (second, claims))
        )
        der = private.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        value = b"".join(n.to_bytes(32, "big") for n in decode_dss_signature(der))
        return f"{signed}.{_encoded(value)}"

    return appliance.do(make)


def _changed(part: str, changes: dict[str, object]) -> bytes:
    members = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    merged = {**members, **changes}
    return json.dumps({k: v for k, v in merged.items() if v is not ...}).encode()


def _encoded(raw_bytes: bytes) -> str:
    return base64.urlsafe_b64encode(raw_bytes).rstrip(b"=").decode()


# -- bytes that no client would send ---------------------------------------------


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """One answer on a connection."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """`code` of a problem, or nothing."""
        return str(json.loads(self.body).get("code", "")) if self.body else ""


def raw(
    appliance: Appliance, *pieces: bytes, wait_s: float = _SOCKET_S
) -> list[RawAnswer]:
    """Send bytes as they are; all answers on that connection.

    Where it is kept after the first answer, a call that ends it is sent too; its own
    answer is not among them.

    Raises:
        TimeoutError: nothing happened for `wait_s`.
    """
    address = urlsplit(appliance.base_url)
    assert address.hostname is not None
    assert address.port is not None
    received, last = b"", b""
    with (
        socket.create_connection(
            (address.hostname, address.port), timeout=wait_s
        ) as connection,
        suppress(ConnectionResetError, BrokenPipeError),
    ):
        connection.sendall(b"".join(pieces))
        while chunk := connection.recv(65536):
            received += chunk
            if last or not (answers := _answers(received)):
                continue
            if answers[0].headers.get("connection") == "close":
                # Not where the server was first, and its reset has come.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
            else:
                last = head(appliance, "GET /healthz HTTP/1.1", "Connection: close")
                connection.sendall(last)
    answers = _answers(received)
    return answers[:-1] if last else answers


def _answers(received: bytes) -> list[RawAnswer]:
    """Those that are complete, of answers one after the other."""
    found = []
    while received:
        head, end, rest = received.partition(b"\r\n\r\n")
        if not end:
            break
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            break
        found.append(RawAnswer(int(first.split()[1]), headers, rest[:length]))
        received = rest[length:]
    return found


def head(appliance: Appliance, start: str, *lines: str) -> bytes:
    """The head of a request, with Host."""
    host = urlsplit(appliance.base_url).netloc
    return "\r\n".join([start, f"Host: {host}", *lines, "", ""]).encode("latin-1")


# -- stamps read back --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stamp:
    """The visible signature of a PDF, as the file says it."""

    page: int
    """1-based."""
    x: float
    """Left edge, from the left of an unrotated page."""
    y: float
    """Top edge, from the top of an unrotated page."""
    width: float
    height: float
    font: str
    """Without the prefix of a subset."""
    size: float
    color: tuple[float, float, float]


def read_stamp(pdf: bytes) -> Stamp | None:
    """The one visible signature, or None when there is none to be seen."""
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        for number, page in enumerate(opened.pages, 1):
            box = [float(side) for side in page.cropbox]
            for annotation in page.get("/Annots", []):
                if annotation.get("/FT") != "/Sig" or "/AP" not in annotation:
                    continue
                rect = [float(side) for side in annotation.Rect]
                if rect[2] > rect[0]:
                    return _stamp(number, box, rect, annotation.AP.N)
    return None


def _stamp(
    number: int, box: list[float], rect: list[float], form: pikepdf.Object
) -> Stamp:
    operands = {
        str(instruction.operator): [*instruction.operands]
        for instruction in pikepdf.parse_content_stream(form)
        if str(instruction.operator) in {"Tf", "rg"}
    }
    red, green, blue = (float(str(part)) for part in operands["rg"])
    return Stamp(
        page=number,
        x=rect[0] - box[0],
        y=box[3] - rect[3],
        width=rect[2] - rect[0],
        height=rect[3] - rect[1],
        font=re.sub(r"^/[A-Z]{6}\+", "", str(form.Resources.Font.F1.BaseFont)),
        size=float(str(operands["Tf"][1])),
        color=(red, green, blue),
    )


def docmdp(pdf: bytes) -> int | None:
    """P of the certification signature, or None."""
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        permissions = opened.Root.get("/Perms")
        if permissions is None:
            return None
        return int(permissions.DocMDP.Reference[0].TransformParams.P)
