"""An integrator's page around the real frame, as strict or as odd as a test wants.

    site = FrameSite(appliance, host)
    page = await open_page("desktop")
    await site.open(page, file=site.file(pdf))
    await site.wait(page, "svc.handshake.ack")

The page logs every message that it gets, with origin and source, and does what its
plan says: when it sends init, with what, and to which origin.
"""

import asyncio
import base64
import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import httpx
from playwright.async_api import Frame, Page
from sqlalchemy import select, update

from appliance.bootstrap import ServiceRegistry
from appliance.database.tables import (
    audit_event,
    embed_session,
    login_secret,
    signature_request,
)
from appliance.database.tables import person as person_table
from appliance.domain.ids import RequestId
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.vocab import EventKind, PersonState
from appliance.integrators.integrator_store import IntegratorStore
from appliance.people.person_store import PersonStore
from appliance.requests.intake import IntakeOrder
from appliance.requests.request_store import RequestStore
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.browsers.browsers import PATIENCE_MS
from tests.support.browsers.host_page import HostPage
from tests.support.patience import CALL_S
from tests.support.processes.plain_http import NO_TLS

ALLOW: Final = "clipboard-read; clipboard-write; camera *; microphone"
"""Source: contract, "Iframe embedding"."""
CONTRACT: Final = ("ready", "handshake.ack", "signature.completed", "error")
"""Messages to the host that the contract has, without prefix."""
_PAGE: Final = """<!doctype html>
<html lang="es"><meta charset="utf-8"><title>Sitio del integrador</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { margin: 0 } iframe { width: 100%; height: 100dvh; border: 0; display: block }
</style>
<main id="place"></main>
<script>
const log = [];
const frames = [];
const waiting = new Set();
addEventListener("message", ({ data, origin, source }) => {
  log.push({ type: data?.type, payload: data?.payload, origin,
             frame: frames.findIndex((frame) => frame.contentWindow === source) });
  for (const look of waiting) look();
});
const payloads = (type) => log.filter((m) => m.type === type).map((m) => m.payload);
function arrived(type, count) {
  return new Promise((done) => {
    const look = () => {
      if (payloads(type).length < count) return;
      waiting.delete(look);
      done(payloads(type)[count - 1]);
    };
    waiting.add(look);
    look();
  });
}
function mount(src) {
  const frame = document.createElement("iframe");
  frame.id = `firma${frames.length || ""}`;
  frame.title = "Firma del documento";
  frame.allow = "ALLOW";
  frame.src = src;
  frames.push(frame);
  document.getElementById("place").append(frame);
  return frame;
}
function send(type, payload, target, index = frames.length - 1) {
  frames[index].contentWindow.postMessage({ type, payload }, target);
}
</script></html>
""".replace("ALLOW", ALLOW)


@dataclass
class FrameSite:
    """An integrator with a key, a registered origin and a page there."""

    appliance: Appliance
    host: HostPage
    host_name: str = "127.0.0.1"
    code: str = field(default_factory=lambda: f"sitio-{uuid.uuid4().hex[:8]}")
    register: bool = True
    """Whether the page's origin is an allowed domain."""
    prefix: str = "svc"
    iframe_url: str = ""
    """Where the frame is; the appliance's own when empty."""
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Make integrator, key and domain, and serve the page."""

        async def make(front: ServiceRegistry) -> str:
            await front.integrators.create(
                "operator", self.code, "Estudio Contable Sur"
            )
            if self.register:
                await front.integrators.add_domain("operator", self.code, self.origin)
            made = await front.integrators.create_key(
                "operator", self.code, "pruebas", None
            )
            return made.secret

        self.iframe_url = self.iframe_url or self.appliance.iframe_url
        self.key = self.appliance.do(make)
        self.host.put("/", _PAGE)

    @property
    def origin(self) -> str:
        """Of the host page."""
        return self.host.origin(self.host_name)

    def page(self) -> str:
        """The host page, to be served somewhere else too."""
        return _PAGE

    def rename(self, name: str) -> None:
        """Call the integrator otherwise."""

        async def change(front: ServiceRegistry) -> None:
            await front.integrators.change("operator", self.code, name=name)

        self.appliance.do(change)

    def seen(self) -> list[str]:
        """Registered origins whose page showed the frame."""

        async def read(front: ServiceRegistry) -> list[str]:
            listed = await front.integrators.domains(self.code)
            return [view.origin for view in listed if view.seen is not None]

        return self.appliance.do(read)

    def token(self) -> str:
        """A session token, as the integrator's backend gets it."""
        answer = httpx.post(
            f"{self.appliance.base_url}/api/integration/session/new",
            params={"id": self.code},
            headers={"X-Api-Key": self.key},
            verify=NO_TLS,
            timeout=CALL_S,
        )
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["tokenSession"]
        return token

    def src(self, token: str) -> str:
        """The iframe's address for a token."""
        return f"{self.iframe_url}/embed/?sessionToken={token}"

    def init(
        self, token: str, person: TestPerson | None, **changes: Any
    ) -> dict[str, Any]:
        """An init payload, as the contract has it."""
        payload: dict[str, Any] = {
            "nonce": str(uuid.uuid4()),
            "idemKey": str(uuid.uuid4()),
            "sessionToken": token,
            "userData": {} if person is None else user_data(person),
        }
        payload |= changes
        return {name: value for name, value in payload.items() if value is not None}

    async def visit(self, page: Page) -> None:
        """Go to the host's page."""
        await page.goto(self.host.url("/", self.host_name))

    async def mount(self, page: Page, token: str) -> None:
        """Embed the frame."""
        await page.evaluate("(src) => void mount(src)", self.src(token))

    async def send(
        self, page: Page, name: str, payload: Any, target: str | None = None
    ) -> None:
        """Send the frame a message."""
        await page.evaluate(
            "([type, payload, target]) => send(type, payload, target)",
            [f"{self.prefix}.{name}", payload, target or self.iframe_url],
        )

    async def ready(self, page: Page) -> str:
        """Visit, mount, wait for ready; the token of the frame, which knows no init."""
        token = self.token()
        await self.visit(page)
        await self.mount(page, token)
        await self.wait(page, "ready")
        return token

    async def open(
        self, page: Page, person: TestPerson | None, **changes: Any
    ) -> dict[str, Any]:
        """Have a frame that is ready, send init, wait for the ack; the init."""
        token = await self.ready(page)
        init = self.init(token, person, **changes)
        await self.send(page, "init", init)
        await self.wait(page, "handshake.ack")
        return init

    async def errors(self, page: Page) -> list[str]:
        """Codes of the errors that the page got, in order."""
        return [payload["code"] for payload in await self.payloads(page, "error")]

    async def types(self, page: Page) -> list[str]:
        """Types of the contract's messages that the page got, in order."""
        found = [message["type"] for message in await self.log(page)]
        return [kind for kind in found if kind.partition(".")[2] in CONTRACT]

    async def log(self, page: Page) -> list[dict[str, Any]]:
        """Messages that the page got, in order."""
        found: list[dict[str, Any]] = await page.evaluate("log")
        return found

    async def payloads(self, page: Page, name: str) -> list[dict[str, Any]]:
        """Payloads of one type, in order."""
        found: list[dict[str, Any]] = await page.evaluate(
            "(type) => payloads(type)", f"{self.prefix}.{name}"
        )
        return found

    async def wait(
        self, page: Page, name: str, count: int = 1, timeout_ms: float = PATIENCE_MS
    ) -> dict[str, Any]:
        """Wait until so many messages of a type came; the last one's payload."""
        wanted = [f"{self.prefix}.{name}", count]
        coming = page.evaluate("([type, count]) => arrived(type, count)", wanted)
        try:
            payload: dict[str, Any] = await asyncio.wait_for(coming, timeout_ms / 1000)
        except TimeoutError as exc:
            told = json.dumps(await self.log(page), ensure_ascii=False)[:3000]
            msg = f"no {name} x{count}; got {told}"
            raise AssertionError(msg) from exc
        return payload

    def frame(self, page: Page, index: int = -1) -> Frame:
        """The frame's content."""
        inside = [f for f in page.frames if f.url.startswith(self.iframe_url)]
        return inside[index]

    def requests(self, person: TestPerson) -> list[tuple[int, str]]:
        """Every request of this integrator's for a person, by id: its state."""

        async def read(front: ServiceRegistry) -> list[tuple[int, str]]:
            async with front.core.store.read() as transaction:
                whose = await IntegratorStore(transaction).get(self.code)
                views = await RequestStore(transaction).all(200)
            assert whose is not None
            mine = [view for view in views if view.integrator == whose.id]
            return [(v.id, v.state.value) for v in mine if v.person == person.id]

        return self.appliance.do(read)

    def states(self, person: TestPerson) -> list[str]:
        """The states of every request of this integrator's for a person, by id."""
        return [state for _, state in self.requests(person)]

    def seen_requests(self, person: TestPerson) -> list[int]:
        """Requests of `requests` whose document, as the audit says, the person saw."""

        async def read(front: ServiceRegistry) -> list[int]:
            query = select(audit_event.c.request).where(
                audit_event.c.event == EventKind.REQUEST_VIEWED.value,
                audit_event.c.actor == f"person:{person.id}",
            )
            async with front.core.store.read() as transaction:
                rows = await transaction.connection.execute(query)
                return [int(row.request) for row in rows]

        mine = {request for request, _ in self.requests(person)}
        return [request for request in self.appliance.do(read) if request in mine]

    def expire(self, token: str, seconds_left: float = -1) -> None:
        """Have a session end that many seconds from now."""

        async def change(front: ServiceRegistry) -> None:
            index = front.lookup.index(
                f"session-token/{front.settings.environment.value}", token
            )
            until = front.clock.now() + timedelta(seconds=seconds_left)
            async with front.core.store.write() as transaction:
                await transaction.connection.execute(
                    update(embed_session)
                    .where(embed_session.c.token_index == index)
                    .values(until=until)
                )

        self.appliance.do(change)

    def deliver_inline_up_to(self, limit_bytes: int) -> None:
        """Set the integrator's limit of inline delivery."""

        async def change(front: ServiceRegistry) -> None:
            await front.integrators.change(
                "operator", self.code, delivery_limit_bytes=limit_bytes
            )

        self.appliance.do(change)

    def set_prefix(self, prefix: str) -> None:
        """Have this integrator's messages begin with a word of its own."""

        async def change(front: ServiceRegistry) -> None:
            await front.integrators.change("operator", self.code, event_prefix=prefix)

        self.appliance.do(change)

    def new_request(
        self,
        person: TestPerson,
        pdf: bytes,
        name: str,
        preset: SignaturePreset | None = None,
    ) -> int:
        """A document of this integrator for somebody to sign."""
        order = IntakeOrder(self.code, person.cuil, name, None, "operador", "operator")

        async def make(front: ServiceRegistry) -> int:
            request = await front.intake.create_request(order, pdf)
            if preset is not None:
                async with front.core.store.write() as transaction:
                    await transaction.connection.execute(
                        update(signature_request)
                        .where(signature_request.c.id == request)
                        .values(preset=preset.to_json())
                    )
            return request

        return self.appliance.do(make)

    def lock(self, person: TestPerson) -> datetime:
        """Have a person's signing password be locked; since when."""

        async def change(front: ServiceRegistry) -> datetime:
            now = front.clock.now()
            async with front.core.store.write() as transaction:
                await PersonStore(transaction).set_counted(person.id, 10, now)
            return now

        return self.appliance.do(change)

    def disable(self, person: TestPerson) -> None:
        """Have a person be disabled."""

        async def change(front: ServiceRegistry) -> None:
            async with front.core.store.write() as transaction:
                await transaction.connection.execute(
                    update(person_table)
                    .where(person_table.c.id == person.id)
                    .values(state=PersonState.DISABLED.value)
                )

        self.appliance.do(change)

    def fetch(self, url: str) -> bytes:
        """Fetch a download address, as the integrator's backend would."""
        answer = httpx.get(url, verify=NO_TLS, timeout=CALL_S)
        assert answer.status_code == 200, answer.text
        return answer.content

    def call_as_browser(self) -> int:
        """Ask for a session with the marks of a browser; the status."""
        answer = httpx.post(
            f"{self.appliance.base_url}/api/integration/session/new",
            params={"id": self.code},
            headers={
                "X-Api-Key": self.key,
                "Origin": self.origin,
                "Sec-Fetch-Site": "cross-site",
            },
            timeout=CALL_S,
        )
        return answer.status_code

    def flagged(self) -> list[str]:
        """Why keys of this integrator are flagged."""

        async def read(front: ServiceRegistry) -> list[str]:
            keys = await front.integrators.keys(self.code)
            return [key.flag_reason.value for key in keys if key.flag_reason]

        return self.appliance.do(read)

    def end_request(self, request: int) -> None:
        """Have the time of a request be over."""

        async def change(front: ServiceRegistry) -> None:
            async with front.core.store.write() as transaction:
                await RequestStore(transaction).prolong(
                    RequestId(request), front.clock.now()
                )

        self.appliance.do(change)

    def revoke(self) -> None:
        """Revoke the integrator's API key."""

        async def change(front: ServiceRegistry) -> None:
            for key in await front.integrators.keys(self.code):
                await front.integrators.revoke_key("operator", key.id)

        self.appliance.do(change)

    async def next_code(self, person: TestPerson) -> None:
        """Have the person's code be one that was not used yet, without waiting."""

        async def forget(front: ServiceRegistry) -> None:
            async with front.core.store.write() as transaction:
                await transaction.connection.execute(
                    update(login_secret)
                    .where(login_secret.c.person == person.id)
                    .values(last_step=0)
                )

        await asyncio.to_thread(self.appliance.do, forget)

    def audit(self) -> list[str]:
        """What the audit says of this integrator, newest last."""

        async def read(front: ServiceRegistry) -> list[str]:
            async with front.core.store.read() as transaction:
                whose = await IntegratorStore(transaction).get(self.code)
                assert whose is not None
                rows = await transaction.connection.execute(
                    select(audit_event.c.event)
                    .where(audit_event.c.integrator == whose.id)
                    .order_by(audit_event.c.at)
                )
                return [row.event for row in rows]

        return self.appliance.do(read)

    def blocked(self) -> list[str]:
        """Origins that tried to show this integrator's frame and may not."""

        async def read(front: ServiceRegistry) -> list[str]:
            listed = await front.integrators.blocked_origins(self.code)
            return [view.origin for view in listed]

        return self.appliance.do(read)


def user_data(person: TestPerson) -> dict[str, str]:
    """What a host says of a person."""
    cuil = person.cuil
    return {
        "cuil": f"{cuil[:2]}-{cuil[2:10]}-{cuil[10:]}",
        "email": person.email,
        "gender": "X",
        "phone": "1123456789",
        "name": person.name,
        "address": "Av. de Mayo 1370, Buenos Aires",
    }


def file_of(pdf: bytes, name: str = "contrato.pdf") -> dict[str, str]:
    """A document object. Source: contract, "Document object"."""
    return {
        "fileName": name,
        "mime": "application/pdf",
        "base64": base64.b64encode(pdf).decode(),
    }
