"""What administrators fill in and read in the console's forms."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any

import pyotp
from cryptography.hazmat.primitives import hashes
from werkzeug.datastructures import FileStorage

from appliance.database import tables
from appliance.domain.audit.record import AuditEvent
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.vocab import EventKind, MessageState, RequestState
from appliance.identity.enrolment import Choice
from appliance.people.person_store import PersonStore
from appliance.requests.request_store import RequestStore
from tests.support.faces.page_forms import FormReader
from tests.support.installation.console import NAME, PASSWORD, Answer, Console
from tests.support.installation.installation import Installation
from tests.support.pki.outside_ca import OutsideCa

HERE = "/admin/integrators/acme"
ANA = "20-05536168-2"
ANA_DIGITS = "20055361682"
LUIS = "20-26756539-3"
KEY = re.compile(r"rbk_test_[0-9a-z]{12}_[0-9A-Za-z]{49}")


@asynccontextmanager
async def open_acme_console(
    folder: Path, url: str = "sqlite", **changes: Any
) -> AsyncIterator[Console]:
    """Console with the integrator `acme`, signed in; `changes` as of `Installation`."""
    async with Installation(folder, url).console(**changes) as made:
        await made.sign_in()
        await made.post("/admin/integrators", code="acme", name="ACME S.A.")
        yield made


async def audited(console: Console, kind: EventKind) -> AuditEvent:
    """The one row of a kind, by the administrator signed in."""
    (event,) = await console.services.audited(kind)
    (user,) = [u for u in await console.front.console.users() if u.name == NAME]
    assert event.actor == user.actor
    return event


def sha256(ca: OutsideCa) -> str:
    """The fingerprint that a CA publishes of its root."""
    return ca.root.fingerprint(hashes.SHA256()).hex()


async def upload(console: Console, path: str, content: bytes, **fields: str) -> Answer:
    """Send a form with a file of certificates."""
    file = FileStorage(BytesIO(content), "a.pem", "file", "application/x-pem-file")
    return await console.send_form(
        path, {"csrf": console.csrf, **fields}, {"file": file}
    )


async def enter(console: Console) -> Answer:
    """Sign in, with a code of the moment."""
    return await console.post(
        "/admin/login", name=NAME, password=PASSWORD, code=console.code()
    )


async def failed_request(
    console: Console, reason: str = "TSA_UNAVAILABLE", cuil: str = ANA_DIGITS
) -> RequestId:
    """A request to somebody that failed for good."""
    request = RequestId(await console.request(cuil))
    async with console.services.store.write() as transaction:
        moved = await RequestStore(transaction).move(
            request, RequestState.PENDING, RequestState.FAILED, reason
        )
    assert moved
    return request


async def begin_anew(console: Console, here: str) -> Answer:
    """Revoke and invite anew, with a code of the moment."""
    return await console.post(f"{here}/credentials/reissue", code=console.code())


async def open_session(console: Console, name: str) -> None:
    """Have another administrator, signed in from elsewhere."""
    made = await console.services.console.create_user("operator", name, PASSWORD)
    totp = pyotp.parse_uri(made.totp_uri)
    assert isinstance(totp, pyotp.TOTP)
    guest = replace(console, cookies={}, csrf="", totp=totp)
    await guest.get("/admin/login")
    answer = await guest.post(
        "/admin/login", name=name, password=PASSWORD, code=guest.code()
    )
    assert answer.status == 303


async def colleague(console: Console, name: str = "eva") -> Console:
    """Return the browser of another administrator, signed in."""
    made = await console.services.console.create_user("operator", name, PASSWORD)
    totp = pyotp.parse_uri(made.totp_uri)
    assert isinstance(totp, pyotp.TOTP)
    other = replace(console, cookies={}, csrf="", totp=totp, name=name)
    await other.get("/admin/login")
    answer = await other.post(
        "/admin/login", name=name, password=PASSWORD, code=other.code()
    )
    assert answer.status == 303
    await other.get("/admin/")
    return other


async def opened(console: Console, page: str, path: str) -> dict[str, str]:
    """Open a page and return what it hides in the form that goes to a path."""
    (form,) = [
        form
        for form in FormReader(page, (await console.get(page)).text).forms
        if form.path == path
    ]
    return form.hidden


async def proven(console: Console, path: str, **fields: str) -> Answer:
    """Send a form that wants a code, with one of the moment."""
    return await console.post(path, code=console.code(), **fields)


async def from_page(console: Console, path: str, **fields: str) -> Answer:
    """Open a page with a form, and send that with what the page hides in it."""
    _, _, shown = (await console.get(path)).text.partition("<main")
    hidden = re.findall(r'type="hidden" name="([a-z_]+)" value="([^"]*)"', shown)
    carried = {name: unescape(value) for name, value in hidden}
    return await console.post(path, **{**carried, **fields})


async def new_pin(console: Console, here: str) -> Answer:
    """Make somebody a revocation PIN, with a code of the moment."""
    return await from_page(console, f"{here}/credentials/pin", code=console.code())


async def change_telephone(console: Console) -> Answer:
    """Take another TOTP for one's own account, which signs in from then on."""
    here = "/admin/account/totp"
    shown = await proven(console, here, present=PASSWORD)
    (uri,) = re.findall(r'href="(otpauth://[^"]+)"', shown.text)
    (offer,) = re.findall(r'name="offer" value="([^"]+)"', shown.text)
    totp = pyotp.parse_uri(unescape(uri))
    assert isinstance(totp, pyotp.TOTP)
    console.totp = totp
    return await proven(console, f"{here}/confirm", offer=offer)


def key_form(**fields: str) -> dict[str, str]:
    """The form of a key that opens sessions, as it is but for what is given."""
    return {"label": "backend", "life": "365", "scope-sessions:write": "yes", **fields}


async def key_id(console: Console, label: str = "backend") -> str:
    """A new key's id."""
    made = await console.front.integrators.create_key("operator", "acme", label)
    return made.key.id


async def lock(console: Console, person: PersonId) -> None:
    """Lock somebody's signing password."""
    async with console.services.store.write() as transaction:
        await PersonStore(transaction).set_counted(person, 10, console.clock.now())


def shown_once(answer: Answer) -> str:
    """The secret on a page, which has it once."""
    (secret,) = {str(found) for found in KEY.findall(answer.text)}
    return secret


def invitation(**fields: str) -> dict[str, str]:
    """A form that is right, but for what is given."""
    return {
        "cuil": ANA,
        "name": "Ana María Núñez",
        "email": "ana@demo.example",
        "vouched_by": "officer",
        "locale": "es",
        "checked": "yes",
        **fields,
    }


async def with_secret(console: Console) -> PersonId:
    """Somebody who has chosen their passwords."""
    vouched_by = "demo" if console.services.settings.trial else "officer"
    made = await console.post("/admin/people", **invitation(vouched_by=vouched_by))
    (code,) = set(re.findall(r"/alta/([A-Za-z0-9_-]{43})", made.text))
    view = await console.services.enrolment.look(code)
    console.clock.forward(30)
    await console.services.host.beat(console.services.store, console.clock.now())
    choice = Choice(
        "contraseña de ingreso",
        "contraseña de firma",
        pyotp.TOTP(view.totp_secret).at(console.clock.now()),
        view.opening,
    )
    await console.services.enrolment.complete(code, choice)
    return view.person


async def given_up(console: Console) -> tuple[str, str]:
    """Address of a new webhook's page, and the id of what was given up there."""
    whose = (await console.front.integrators.get("acme")).id
    webhooks = console.front.webhooks
    url = "https://app.example/rubrica"
    made = (await webhooks.create("operator", whose, url, "")).endpoint.id
    message = (await webhooks.test("operator", whose, made)).id
    async with console.front.core.store.write() as transaction:
        row = tables.webhook_message.c.id == message
        await transaction.connection.execute(
            tables.webhook_message.update()
            .where(row)
            .values(state=MessageState.GIVEN_UP, tries=10)
        )
        await transaction.connection.execute(
            tables.webhook_attempt.insert().values(
                message=message,
                at=console.clock.now(),
                status=503,
                failure="status",
                took_ms=12,
                answer="Service Unavailable",
            )
        )
    return f"{HERE}/webhooks/{made}", message
