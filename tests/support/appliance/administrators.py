"""Administrators of a running appliance, and what they find in its console.

marta = new_administrator(appliance)
await marta.sign_in(page)
await page.goto(marta.url("/admin/people"))
"""

import secrets
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import pyotp
from cryptography.hazmat.primitives import hashes
from playwright.async_api import Cookie, Page, expect
from sqlalchemy import update

from appliance.bootstrap import ServiceRegistry
from appliance.database.tables import console_user
from appliance.domain.ids import PersonId
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import FlagReason
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.vocab import HelpTopic, VouchedBy
from appliance.integrators.integrator_store import IntegratorStore
from appliance.people.person_store import PersonStore
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.webhooks_shown import show_webhooks
from tests.support.documents import pdfs
from tests.support.faults.password_guessing import guess_at_person
from tests.support.pki.outside_ca import OutsideCa, der

ACTOR: Final = "operator"
_BLOCKED: Final = ("https://otro.example", "https://clientes.estudio-sur.example")


@dataclass
class Administrator:
    """Somebody who administers, and what only they would know."""

    appliance: Appliance
    name: str
    password: str
    totp: pyotp.TOTP
    _cookies: list[Cookie] = field(default_factory=list, repr=False)

    def url(self, path: str = "/admin/") -> str:
        """An address of the console."""
        return self.appliance.admin_url + path

    def code(self) -> str:
        """A code that is taken, also where an earlier one of its step was used."""

        async def forget(front: ServiceRegistry) -> None:
            async with front.core.store.write() as transaction:
                await transaction.connection.execute(
                    update(console_user)
                    .where(console_user.c.name == self.name)
                    .values(last_step=0)
                )

        self.appliance.do(forget)
        return self.totp.now()

    async def sign_in(self, page: Page, then: str = "/admin/") -> None:
        """Sign in as a person does, and be where it leads."""
        await page.goto(self.url(then))
        await page.get_by_label("Nombre").fill(self.name)
        await page.get_by_label("Contraseña").fill(self.password)
        await page.get_by_label("Código").fill(self.code())
        await page.get_by_role("button", name="Ingresar").click()
        await page.wait_for_url(self.url(then))

    async def be_signed_in(self, page: Page, then: str = "/admin/") -> None:
        """Be where a sign-in leads: by that of an earlier page, if there was one."""
        if not self._cookies:
            await self.sign_in(page, then)
            self._cookies = await page.context.cookies(self.url())
            return
        await page.context.add_cookies(
            [
                {
                    "name": cookie["name"],
                    "value": cookie["value"],
                    "domain": cookie["domain"],
                    "path": cookie["path"],
                    "httpOnly": cookie["httpOnly"],
                    "secure": cookie["secure"],
                    "sameSite": cookie["sameSite"],
                }
                for cookie in self._cookies
            ]
        )
        await page.goto(self.url(then))
        await page.wait_for_url(self.url(then))


async def enrol(page: Page) -> None:
    """Choose both passwords and give a code, as an invited person does.

    Args:
        page: that their link leads to; at the end it shows their revocation PIN.
    """
    seed = await page.locator("#seed").text_content()
    assert seed is not None
    words = {"login": "contraseña de ingreso", "signing": "contraseña de firma"}
    for kind, password in words.items():
        for again in ("", "_again"):
            await page.locator(f"#{kind}_password{again}").fill(password)
    await page.locator("#totp_code").fill(pyotp.TOTP("".join(seed.split())).now())
    await page.locator("button[type=submit]").click()
    await expect(page.locator("#pin")).to_be_visible()


def new_administrator(appliance: Appliance) -> Administrator:
    """Somebody new, whose codes nobody else uses."""
    name, password = f"marta.{uuid.uuid4().hex[:6]}", secrets.token_urlsafe(12)

    async def create(front: ServiceRegistry) -> str:
        made = await front.console.create_user(ACTOR, name, password)
        return made.totp_uri

    totp = pyotp.parse_uri(appliance.do(create))
    assert isinstance(totp, pyotp.TOTP)
    return Administrator(appliance, name, password, totp)


@dataclass(frozen=True)
class Town:
    """A console with something on every page."""

    code: str
    """Of an integrator with keys and domains in every state."""
    keys: tuple[str, str]
    """Ids of a key in use and of one being replaced."""
    domain: str
    """Id of an allowed domain."""
    blocked: str
    """An origin that tried and is not allowed."""
    invited: PersonId
    locked: TestPerson
    """At whose account strangers guess, besides."""
    signer: PersonId
    """Somebody with a certificate."""
    credential: str
    """Id of it."""
    anchor: str
    """Id of a root of the trust store."""
    administrator: str
    """Name of one who does nothing."""
    pending: int
    """A request with something to be told about its document."""
    signed: int
    webhook: tuple[str, str]
    """Id of one, and of what was given up there."""


def build_town(appliance: Appliance) -> Town:
    """Make integrators, people and requests in every state."""
    code = f"estudio-{uuid.uuid4().hex[:6]}"
    locked = appliance.new_person("María Belén Fernández Ocampo")
    signer = appliance.new_person("Joaquín Ibáñez")

    async def integrators(front: ServiceRegistry) -> tuple[tuple[str, str], str]:
        services = front.integrators
        await services.create(ACTOR, code, "Estudio Contable Sur")
        used = await services.create_key(
            ACTOR, code, "Backend de facturación", scopes=tuple(ApiKeyScope)
        )
        until = front.clock.now() + timedelta(days=90)
        old = await services.create_key(
            ACTOR,
            code,
            "Portal de clientes",
            until,
            scopes=(ApiKeyScope.REQUESTS_READ, ApiKeyScope.SESSIONS_WRITE),
            networks=("192.0.2.0/24", "2001:db8:5678:9abc:def0:1234:5678:9abc"),
        )
        await services.rotate_key(ACTOR, old.key.id, 86_400)
        gone = await services.create_key(ACTOR, code, "Prueba", None)
        await front.sessions.open(code, used.secret)
        async with front.core.store.write() as transaction:
            await IntegratorStore(transaction).flag_key(
                old.key.id, FlagReason.BROWSER, front.clock.now()
            )
        await services.revoke_key(ACTOR, gone.key.id)
        domain = await services.add_domain(
            ACTOR, code, "https://clientes.estudiosur.example"
        )
        await services.add_domain(ACTOR, code, "http://localhost:3000")
        await front.sessions.note_seen(code, domain.origin)
        for origin in _BLOCKED:
            for _ in range(3):
                await front.sessions.note_blocked(code, origin)
        return (used.key.id, old.key.id), domain.id

    async def people(front: ServiceRegistry) -> PersonId:
        async with front.core.store.write() as transaction:
            await PersonStore(transaction).set_counted(locked.id, 10, front.clock.now())
        await guess_at_person(
            front.core.store, front, locked.id, locked.cuil, locked.email
        )
        whose = (await front.integrators.get(code)).id
        ask = front.help_requests.ask_in_frame
        await ask(locked.id, HelpTopic.BOTH, whose, proven=False)
        made = await front.invitations.invite(
            ACTOR,
            appliance.next_cuil(),
            "Tomás Agustín Etcheverry",
            f"{uuid.uuid4().hex}@demo.example",
            VouchedBy.DEMO,
        )
        return made.person

    async def certificates(front: ServiceRegistry) -> tuple[str, str]:
        (held,) = await front.credentials.of(signer.id)
        outside = OutsideCa(
            datetime.now(UTC).replace(microsecond=0),
            "Autoridad Certificante de la Provincia",
        )
        sha256 = outside.root.fingerprint(hashes.SHA256()).hex()
        anchor = await front.trust.add(
            ACTOR, der(outside.root), AnchorPurpose.SIGNERS, sha256
        )
        return str(held.id), anchor.id

    keys, domain = appliance.do(integrators)
    credential, anchor = appliance.do(certificates)
    invited = appliance.do(people)
    pending = appliance.new_request(signer, pdfs.javascript(), "Poder especial.pdf")
    signed = appliance.new_request(signer, pdfs.one_page(), "Contrato de locación.pdf")
    with appliance.client(signer) as client:
        order = {"solicitudId": signed, "password": signer.signing_password}
        answer = client.post("/solicitudes/firmar", json=order)
        assert answer.status_code == 200, answer.text
    return Town(
        code,
        keys,
        domain,
        _BLOCKED[0],
        invited,
        locked,
        signer.id,
        credential,
        anchor,
        new_administrator(appliance).name,
        pending,
        signed,
        appliance.do(lambda front: show_webhooks(front, code)),
    )
