"""Under attack somebody else signs, lists and uploads nearly as fast as ever.

The attackers are known by nothing, or have a session of another integrator's frame;
they come from other addresses. `-rP` shows the table. What one machine cannot show:
attackers share its cores, so they run at the lowest priority.

Source: research "bad inputs", "faults"; decisions "size of bodies", "attempts".
"""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from tests.support.appliance.appliance import Appliance
from tests.support.documents import hostile_pdfs
from tests.support.documents.slow_pdfs import transparent_groups
from tests.support.faults.attackers import Attack, attacking
from tests.support.faults.bystander import Bystander, Integrator, watched_memory
from tests.support.processes.scratch import short_folder

pytestmark = pytest.mark.alone

MOST: Final = 2.0
"""How many times its quiet time somebody else's work may take."""
_ROUNDS: Final = 6
_LIST_S: Final = 0.006
"""What a list takes, with nobody else there, where floods come at their full rate: so
many calls a second are a larger part of what a slower machine can do."""
RECOVERY_S: Final = 5.0
"""Until signing takes at most twice its quiet time, where a list takes `_LIST_S`."""
GROWTH_MIB: Final = 160
"""More than a role holds of bodies in flight, and a page's picture."""
ADDRESSES: Final = tuple(f"127.0.0.{n}" for n in range(2, 42))
EVER_NEW: Final = tuple(
    f"127.{a}.{b}.{c}" for a in range(1, 3) for b in range(32) for c in range(1, 255)
)
"""More than are used up while an attack lasts: no address calls twice."""
MANY: Final = tuple(f"127.0.1.{n}" for n in range(1, 41))
LARGE: Final = 48 << 20
JSON: Final = "application/json"
PUBLIC: Final = (
    "GET /",
    "GET /verificar",
    "GET /verificar/AAAA-BBBB-CCCC-DDDD",
    "GET /.well-known/jwks.json",
    "GET /healthz",
    "GET /readyz",
    "GET /pki/root.cer",
    "GET /pki/ca.crl",
    "GET /pki/ocsp/MEUwQzBB",
    "POST /pki/ocsp application/ocsp-request",
    "POST /tsa application/timestamp-query",
    "POST /auth/login application/json",
    "POST /auth/otp application/json",
    "POST /api/integration/session/new?id=demo application/json",
    "POST /alta/x application/x-www-form-urlencoded",
    "POST /revocar application/x-www-form-urlencoded",
    "POST /ayuda application/x-www-form-urlencoded",
    "GET /solicitudes",
    "POST /solicitudes/firmar multipart/form-data;boundary=b",
)
"""Routes of the API, as somebody calls them who is known by nothing."""
FRAME: Final = (
    "GET /embed/?sessionToken=x",
    "POST /embed/api/init application/json",
    "POST /embed/api/legacy application/json",
    "POST /embed/api/renew application/json",
    "POST /embed/api/document application/pdf",
)
"""Routes of the frame, called so."""
SESSION: Final = (
    "GET /embed/api/state",
    "GET /embed/api/document",
    "GET /embed/api/page/1",
    "GET /embed/api/requests",
    "POST /embed/api/document application/pdf",
    "POST /embed/api/identify application/json",
    "POST /embed/api/otp application/json",
    "POST /embed/api/choose application/json",
    "POST /embed/api/place application/json",
    "POST /embed/api/sign application/json",
    "POST /embed/api/cancel application/json",
)
"""Routes of the frame that its session calls."""
QUADRATIC: Final = b'{"usuario":"' + b'\\"' * 8000 + b"[" * 33


class Target:
    """The appliance under attack, its bystander and its attacker."""

    def __init__(self, appliance: Appliance) -> None:
        self.appliance = appliance
        self.bystander = Bystander.of(appliance)
        self.attacker = Integrator.of(appliance, "atacante")
        self.api = urlsplit(appliance.base_url).port or 0
        self.embed = urlsplit(appliance.iframe_url).port or 0
        self.bystander.prepare()
        self.bystander.times()
        self.quiet = self.bystander.times()
        self._speed = min(1.0, _LIST_S / self.quiet.list)

    def rate(self, per_s: float) -> float:
        """Calls a second of a flood, or fewer where the machine does fewer.

        Args:
            per_s: of them.
        """
        return per_s * self._speed

    @property
    def recovery_s(self) -> float:
        """The longest recovery that is let pass, in seconds of this machine."""
        return RECOVERY_S / self._speed


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    """An appliance with the limits that it has by itself."""
    with (
        short_folder() as folder,
        # Executed: its memory is measured.
        Appliance.made(Path(folder), tries="10", execute=True) as made,
    ):
        target = Target(made)
        try:
            yield target
        finally:
            target.bystander.client.close()


def head(line: str, length: int = 0, bearer: str = "") -> bytes:
    """The head of a request: `METHOD path [content type]`."""
    method, path, *kind = line.split(" ")
    lines = [f"{method} {path} HTTP/1.1", "Host: a", "Connection: close"]
    if kind:
        lines.append(f"Content-Type: {kind[0]}")
    if length:
        lines.append(f"Content-Length: {length}")
    if bearer:
        lines += [f"Authorization: Bearer {bearer}", "X-File-Name: a.pdf"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def heads(lines: tuple[str, ...], length: int, bearer: str = "") -> tuple[bytes, ...]:
    """Heads of requests that announce a body, whatever the route says of bodies."""
    kind = "multipart/form-data;boundary=b"
    typed = [line if line.count(" ") > 1 else f"{line} {kind}" for line in lines]
    return tuple(head(line, length, bearer) for line in typed)


def whole(line: str, body: bytes = b"", bearer: str = "") -> bytes:
    """A whole request."""
    return head(line, len(body), bearer) + body


def half_requests(target: Target) -> list[Attack]:
    """A thousand connections at each face that never finish a head."""
    return [
        Attack("half", port, 1000, (head("GET /readyz"),), addresses=MANY)
        for port in (target.api, target.embed)
    ]


def half_requests_of_one(target: Target) -> list[Attack]:
    """The same from one address."""
    return [Attack("half", target.api, 1000, (head("GET /readyz"),))]


def slow_bodies(target: Target) -> list[Attack]:
    """A hundred bodies at each face that come byte by byte."""
    return [
        Attack("slow", target.api, 100, heads(PUBLIC, 4000), addresses=ADDRESSES),
        Attack("slow", target.embed, 100, heads(FRAME, 4000), addresses=ADDRESSES),
    ]


def huge_bodies(target: Target) -> list[Attack]:
    """Forty bodies of 48 MiB at each face, on every route, again and again."""
    return [
        Attack(
            "huge", target.api, 40, heads(PUBLIC, LARGE), LARGE, addresses=ADDRESSES
        ),
        Attack(
            "huge", target.embed, 40, heads(FRAME, LARGE), LARGE, addresses=ADDRESSES
        ),
    ]


def huge_bodies_of_a_get(target: Target) -> list[Attack]:
    """Forty `GET /readyz` that bring 48 MiB."""
    one = heads(("GET /readyz",), LARGE)
    return [Attack("huge", target.api, 40, one, LARGE)]


def huge_bodies_of_a_session(target: Target) -> list[Attack]:
    """Twelve uploads of one session that do not end."""
    bearer, _ = target.attacker.session()
    one = heads(("POST /embed/api/document application/pdf",), LARGE, bearer)
    return [Attack("slow", target.embed, 12, one)]


def quadratic_bodies(target: Target) -> list[Attack]:
    """Twenty bodies a second of the largest size that is let in, of the worst kind."""
    login = tuple(
        whole(f"POST {path} {JSON}", QUADRATIC[:16_384])
        for path in ("/auth/login", "/auth/otp")
    )
    frame = tuple(
        whole(f"POST /embed/api/{path} {JSON}", QUADRATIC[:16_384])
        for path in ("init", "legacy", "renew")
    )
    return [
        Attack(
            "flood", target.api, 20, login, rate=target.rate(20), addresses=ADDRESSES
        ),
        Attack(
            "flood", target.embed, 20, frame, rate=target.rate(20), addresses=ADDRESSES
        ),
    ]


def quadratic_bearers(target: Target) -> list[Attack]:
    """The same in the header of a JWT."""
    part = base64.urlsafe_b64encode(QUADRATIC[:5600]).decode().rstrip("=")
    requests = (whole("GET /solicitudes", bearer=f"{part}.e30.AA"),)
    return [
        Attack(
            "flood", target.api, 20, requests, rate=target.rate(40), addresses=ADDRESSES
        )
    ]


def ready_questions(target: Target) -> list[Attack]:
    """Eighty at once ask whether the service is ready."""
    return [
        Attack("flood", target.api, 80, (whole("GET /readyz"),), rate=target.rate(80))
    ]


def sign_ins(target: Target) -> list[Attack]:
    """Guesses at passwords of people who are there and who are not."""
    users = (target.bystander.person.cuil, "20-00000000-1", "a@b.example")
    bodies = [json.dumps({"usuario": u, "password": "x" * 12}).encode() for u in users]
    requests = tuple(whole(f"POST /auth/login {JSON}", body) for body in bodies)
    return [
        Attack(
            "flood", target.api, 40, requests, rate=target.rate(40), addresses=ADDRESSES
        )
    ]


def sign_ins_of_ever_new_addresses(target: Target) -> list[Attack]:
    """Forty guesses at a time, each from an address that never called before."""
    body = json.dumps({"usuario": "a@b.example", "password": "x" * 12}).encode()
    requests = (whole(f"POST /auth/login {JSON}", body),)
    return [Attack("flood", target.api, 40, requests, addresses=EVER_NEW)]


def public_routes_of_ever_new_addresses(target: Target) -> list[Attack]:
    """Each route that anybody may call, from addresses that never called before."""
    api = tuple(
        whole(line, b"{}" * 8 if line.startswith("P") else b"") for line in PUBLIC
    )
    frame = tuple(whole(line, b"{}") for line in FRAME if line.startswith("P"))
    return [
        Attack("flood", target.api, 40, api, rate=target.rate(60), addresses=EVER_NEW),
        Attack(
            "flood", target.embed, 40, frame, rate=target.rate(40), addresses=EVER_NEW
        ),
    ]


def codes(target: Target) -> list[Attack]:
    """Guesses at one-time codes of a session of the frame, from many addresses."""
    bearer, _ = target.attacker.session()
    body = json.dumps({"code": "000000"}).encode()
    requests = (whole(f"POST /embed/api/otp {JSON}", body, bearer),)
    return [
        Attack(
            "flood",
            target.embed,
            40,
            requests,
            rate=target.rate(50),
            addresses=ADDRESSES,
        )
    ]


def every_public_route(target: Target) -> list[Attack]:
    """Each route that anybody may call, with what it reads."""
    api = tuple(
        whole(line, b"{}" * 8 if line.startswith("P") else b"") for line in PUBLIC
    )
    frame = tuple(whole(line, b"{}") for line in FRAME if line.startswith("P"))
    return [
        Attack("flood", target.api, 40, api, rate=target.rate(60), addresses=ADDRESSES),
        Attack(
            "flood", target.embed, 40, frame, rate=target.rate(40), addresses=ADDRESSES
        ),
    ]


def every_route_of_a_session(target: Target) -> list[Attack]:
    """Each route that a session of the frame may call."""
    bearer = _session_with(target, hostile_pdfs.plain())
    requests = tuple(
        whole(line, b"{}" if line.startswith("P") else b"", bearer)
        for line in SESSION
        if "cancel" not in line
    )
    return [Attack("flood", target.embed, 40, requests, rate=target.rate(60))]


def pictures(number: int) -> Callable[[Target], list[Attack]]:
    """Pictures of a page that nobody can draw in time, so many in flight."""

    def attack(target: Target) -> list[Attack]:
        bearer = _session_with(target, transparent_groups(pages=4))
        pages = tuple(
            whole(f"GET /embed/api/page/{n}", bearer=bearer) for n in range(1, 5)
        )
        return [Attack("flood", target.embed, number, pages, rate=target.rate(40))]

    attack.__doc__ = f"{number} pictures in flight of a page that cannot be drawn."
    return attack


def uploads(target: Target) -> list[Attack]:
    """Documents that take long to look at, from sessions of one integrator."""
    bearers = [target.attacker.session()[0] for _ in range(20)]
    pdf = transparent_groups(pages=4)
    line = "POST /embed/api/document application/pdf"
    requests = tuple(whole(line, pdf, bearer) for bearer in bearers)
    return [Attack("flood", target.embed, 20, requests, rate=target.rate(20))]


def _session_with(target: Target, pdf: bytes) -> str:
    """A session of the attacker's with a document."""
    bearer, _ = target.attacker.session()
    target.bystander.upload(bearer, pdf)
    return bearer


ATTACKS: Final = {
    "half requests, 40 addresses": half_requests,
    "half requests, 1 address": half_requests_of_one,
    "slow bodies": slow_bodies,
    "huge bodies": huge_bodies,
    "huge bodies of a GET": huge_bodies_of_a_get,
    "uploads of a session that do not end": huge_bodies_of_a_session,
    "quadratic bodies": quadratic_bodies,
    "quadratic bearers": quadratic_bearers,
    "readiness": ready_questions,
    "sign-ins": sign_ins,
    "sign-ins of ever-new addresses": sign_ins_of_ever_new_addresses,
    "public routes, ever-new addresses": public_routes_of_ever_new_addresses,
    "codes": codes,
    "every public route": every_public_route,
    "every route of a session": every_route_of_a_session,
    "16 pictures": pictures(16),
    "40 pictures": pictures(40),
    "uploads": uploads,
}


@pytest.mark.parametrize("name", ATTACKS)
def test_others_work_on_under_attack(target: Target, name: str) -> None:
    """Signing, listing, uploading and a login take at most twice as long."""
    bystander = target.bystander
    bystander.prepare()
    attacks = ATTACKS[name](target)
    roles = [*target.appliance.children("api"), *target.appliance.children("embed")]
    with watched_memory(roles) as memory:
        with attacking(*attacks):
            times = bystander.times()
            # What else the machine does makes it slower, never quicker: the best of
            # some rounds says what the attack costs, and quiet is at most that.
            for _ in range(_ROUNDS):
                if max(times.ratios(target.quiet).values()) <= MOST:
                    break
                times = times.least(bystander.times())
        if max(times.ratios(target.quiet).values()) > MOST:
            # The machine may have become slower meanwhile.
            target.quiet = bystander.times()
        recovery_s = bystander.recovery_s(target.quiet)
    ratios = times.ratios(target.quiet)
    target.quiet = target.quiet.least(times)

    answers = {k: n for attack in attacks for k, n in attack.answers.items()}
    told = " ".join(f"{key} {ratio:.2f}" for key, ratio in ratios.items())
    print(  # noqa: T201 (the table that -rP shows)
        f"{name}: {told}, {memory.before} to {memory.peak} MiB, "
        f"{recovery_s:.1f} s, answered {answers}"
    )
    assert max(ratios.values()) <= MOST, ratios
    assert memory.peak - memory.before <= GROWTH_MIB
    assert recovery_s <= target.recovery_s
