"""The console over real services on a fresh database, without browsers.

    async with open_console(settings) as console:
        await console.sign_in()
        answer = await console.get("/admin/")
        answer = await console.post("/admin/integrators", code="acme", name="ACME")

Workers and the sandbox are not there: what they would have done is put into the
record, and PDFs are looked at by a fake.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any, Final

import pyotp
from cryptography.hazmat.primitives.serialization import Encoding
from jinja2.bccache import Bucket, BytecodeCache
from quart import Quart
from werkzeug.datastructures import FileStorage
from werkzeug.exceptions import HTTPException

from admin_ui.app import create_console
from admin_ui.edits import FORMS, VERSION
from admin_ui.session import COOKIE
from appliance.admission.known_addresses import KnownAddresses
from appliance.bootstrap import AdminServiceRegistry, open_admin
from appliance.domain.ids import PersonId
from appliance.domain.vocab import PersonState, VouchedBy
from appliance.identity.console_login import ConsoleLogin
from appliance.keys.password_hashing import HashSlots
from appliance.people.person_store import PersonStore
from appliance.record.edit_versions import version_of
from appliance.requests.intake import IntakeOrder
from appliance.settings import Settings
from tests.support.factories.cached_hashes import CachedHashes
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.factories.fakes import NOON, MovingClock
from tests.support.factories.held_credential import hold
from tests.support.installation.services import (
    Services,
    open_services,
    playing,
)
from tests.support.pki.outside_ca import OutsideCa

ADMIN_URL: Final = "http://127.0.0.1:8082"
NAME: Final = "marta"
PASSWORD: Final = "una clave muy larga"
PDF: Final = b"%PDF-1.7\n%fake\n%%EOF\n"
ACTOR: Final = "console:test"
CONSOLE: Final[dict[str, Any]] = {
    "trial": True,
    "web": {"admin_url": ADMIN_URL},
    "auth": {"login_per_minute_address": 1000, "login_per_minute_account": 100},
}
"""Usual settings."""
_CSRF: Final = re.compile(r'name="csrf" value="([0-9a-f]+)"')


class _Compiled(BytecodeCache):
    """Templates that were compiled for an earlier console of this process."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give what is kept."""
        if code := self._kept.get(bucket.key):
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled."""
        self._kept[bucket.key] = bucket.bytecode_to_string()


_COMPILED: Final = _Compiled()


@dataclass
class Answer:
    """What the console answered."""

    status: int
    headers: Any
    text: str = field(repr=False)

    @property
    def location(self) -> str:
        """Where it sends the browser."""
        return str(self.headers.get("Location", ""))

    def fault_of(self, name: str) -> str:
        """What is said of a field; empty for nothing."""
        found = re.search(
            rf'<p class="fault" id="e-{name}">(?:<svg.*?</svg>)?(.*?)</p>',
            self.text,
            re.DOTALL,
        )
        return found[1].strip() if found else ""


@dataclass
class Console:
    """A browser without scripts at a console, and the services behind."""

    app: Quart
    front: AdminServiceRegistry
    services: Services
    totp: pyotp.TOTP
    clock: MovingClock
    known: KnownAddresses
    """Whoever signed in is no stranger afterwards, whose tries have a small part."""
    cookies: dict[str, str] = field(default_factory=dict)
    csrf: str = ""
    name: str = NAME
    """Of the administrator at the browser."""

    # -- what a browser does -----------------------------------------------

    async def get(self, path: str, **headers: str) -> Answer:
        """Look at a page."""
        return await self.send("GET", path, headers=headers)

    async def post(self, path: str, /, **fields: str) -> Answer:
        """Send a form as the console's own page does."""
        return await self.send_form(path, {"csrf": self.csrf, **fields})

    async def send_form(
        self,
        path: str,
        fields: dict[str, str],
        files: dict[str, FileStorage] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a form as from a page that was opened just now.

        Headers override those of the console's own pages, and fields the version.
        """
        fields = {**await self.version(path), **fields}
        own = {"Origin": ADMIN_URL, "Sec-Fetch-Site": "same-origin"}
        merged = {**own, **(headers or {})}
        sent = {name: value for name, value in merged.items() if value}
        return await self.send(
            "POST", path, headers=sent, form=fields, files=files or {}
        )

    async def upload(self, path: str, content: bytes, name: str, **f: str) -> Answer:
        """Send a form with a file."""
        from io import BytesIO  # noqa: PLC0415 (only here)

        file = FileStorage(BytesIO(content), name, "file", "application/pdf")
        return await self.send_form(path, {"csrf": self.csrf, **f}, {"file": file})

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        **body: Any,
    ) -> Answer:
        """Send any request with this browser's cookies."""
        headers = headers or {}
        client = self.app.test_client(use_cookies=False)
        if self.cookies:
            pairs = (f"{name}={value}" for name, value in self.cookies.items())
            headers = {**headers, "Cookie": "; ".join(pairs)}
        if not body.get("files"):
            body.pop("files", None)
        response = await client.open(path, method=method, headers=headers, **body)
        for line in response.headers.getlist("Set-Cookie"):
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
                if not morsel.value:
                    del self.cookies[name]
        # A page, or a file of any bytes.
        raw: Any = await response.get_data()
        text = raw.decode(errors="replace")
        found = _CSRF.search(text)
        if found:
            self.csrf = found[1]
        return Answer(response.status_code, response.headers, text)

    async def version(self, path: str) -> dict[str, str]:
        """Return the field that says what a form was opened with, if it has one."""
        try:
            endpoint, named = self.app.url_map.bind("").match(path, method="POST")
        except HTTPException:
            return {}
        form = FORMS.get(str(endpoint))
        if form is None:
            return {}
        subject = (form.subject, str(named.get(form.key, self.name)))
        (values,) = await self.front.edits.read(subject)
        return {VERSION: version_of(values, form.values)}

    def code(self) -> str:
        """A code that was not used yet; the clock goes on by a step."""
        self.clock.forward(30)
        return self.totp.at(self.clock.now())

    async def sign_in(self) -> Answer:
        """Sign in, and read the token of the forms."""
        answer = await self.post(
            "/admin/login", name=NAME, password=PASSWORD, code=self.code()
        )
        assert answer.status == 303, answer.text
        assert COOKIE in self.cookies
        await self.known.refresh()
        return await self.get("/admin/")

    async def rows_of(self, actor: str) -> int:
        """How many audit rows somebody left."""
        rows = await self.services.record.audit()
        return sum(row.event.actor == actor for row in rows)

    # -- what is there ------------------------------------------------------

    async def person(
        self,
        cuil: str = "20055361682",
        name: str = "Ana María Núñez",
        *,
        enrolled: bool = True,
    ) -> PersonId:
        """Somebody invited, or enrolled with a certificate."""
        trial = self.services.settings.trial
        vouched_by = VouchedBy.DEMO if trial else VouchedBy.OFFICER
        made = await self.services.invitations.invite(
            ACTOR, cuil, name, f"{cuil}@demo.example", vouched_by
        )
        self.clock.forward(1)
        if enrolled:
            await self.enrol(made.person, cuil, name)
        return made.person

    async def enrol(self, person: PersonId, cuil: str, name: str) -> None:
        """Do what the person and the worker would."""
        async with self.services.store.write() as transaction:
            await PersonStore(transaction).move(
                person, PersonState.INVITED, PersonState.ACTIVE
            )
        await hold(self.services.store, person, cuil, self.clock.now(), name=name)

    async def request(
        self,
        cuil: str,
        name: str = "contrato.pdf",
        code: str = "acme",
        pdf: bytes = PDF,
    ) -> int:
        """A document for somebody to sign."""
        order = IntakeOrder(code, cuil, name, None, "operador", ACTOR)
        self.clock.forward(1)
        return await self.front.intake.create_request(order, pdf)


def _users(services: Services) -> ConsoleLogin:
    """Administrators, which need not hash everybody's password anew."""
    hashes = CachedHashes(HashSlots())
    return ConsoleLogin(
        services.store,
        services.lookup,
        services.sealer,
        services.clock,
        hashes,
        services.settings,
    )


@asynccontextmanager
async def open_console(settings: Settings) -> AsyncIterator[Console]:
    """Open the console with one administrator, whose clock the test moves."""
    opens = playing(FakeInspector(pages=1))
    async with (
        open_services(settings) as services,
        open_admin(settings, services.clock, opens) as front,
    ):
        made = await _users(services).create_user("operator", NAME, PASSWORD)
        totp = pyotp.parse_uri(made.totp_uri)
        assert isinstance(totp, pyotp.TOTP)
        days = settings.auth.known_address_days
        known = KnownAddresses(services.store, services.lookup, services.clock, days)
        app = create_console(front, known)
        app.jinja_env.bytecode_cache = _COMPILED
        yield Console(app, front, services, totp, services.clock, known)


def write_pki(console: Console) -> OutsideCa:
    """Put the files of an internal CA where `hsm init` would."""
    ca = OutsideCa(NOON, "Rúbrica CA interna")
    settings = console.front.settings
    settings.root_file.parent.mkdir(parents=True, exist_ok=True)
    settings.root_file.write_bytes(ca.root.public_bytes(Encoding.PEM))
    settings.ca_file.write_bytes(ca.issuing.public_bytes(Encoding.PEM))
    return ca
