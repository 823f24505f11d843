"""What administrators fill in and read in the console's forms."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from html import unescape
from io import BytesIO
from pathlib import Path

import pyotp
from cryptography.hazmat.primitives import hashes
from werkzeug.datastructures import FileStorage

from appliance.domain.audit import AuditEvent
from appliance.domain.ids import PersonId
from appliance.domain.vocab import EventKind
from appliance.identity.enrolment import Choice
from appliance.people.person_store import PersonStore
from tests.support.faces.console import NAME, PASSWORD, Answer, Site, open_site
from tests.support.pki.outside_ca import OutsideCa

HERE = "/admin/integrators/acme"
ANA = "20-05536168-2"
ANA_DIGITS = "20055361682"
LUIS = "20-26756539-3"
KEY = re.compile(r"rbk_test_[0-9a-z]{12}_[0-9A-Za-z]{49}")


@asynccontextmanager
async def open_acme_site(folder: Path, url: str = "sqlite") -> AsyncIterator[Site]:
    """A console with the integrator `acme`, signed in."""
    async with open_site(folder, url) as made:
        await made.sign_in()
        await made.post("/admin/integrators", code="acme", name="ACME S.A.")
        yield made


async def audited(site: Site, kind: EventKind) -> AuditEvent:
    """The one row of a kind, by the administrator signed in."""
    (event,) = await site.desk.audited(kind)
    (user,) = [u for u in await site.front.console.users() if u.name == NAME]
    assert event.actor == user.actor
    return event


def sha256(ca: OutsideCa) -> str:
    """The fingerprint that a CA publishes of its root."""
    return ca.root.fingerprint(hashes.SHA256()).hex()


async def upload(site: Site, path: str, content: bytes, **fields: str) -> Answer:
    """Send a form with a file of certificates."""
    file = FileStorage(BytesIO(content), "a.pem", "file", "application/x-pem-file")
    return await site.send_form(path, {"csrf": site.csrf, **fields}, {"file": file})


async def enter(site: Site) -> Answer:
    """Sign in, with a code of the moment."""
    return await site.post(
        "/admin/login", name=NAME, password=PASSWORD, code=site.code()
    )


async def begin_anew(site: Site, here: str) -> Answer:
    """Revoke and invite anew, with a code of the moment."""
    return await site.post(f"{here}/credentials/reissue", code=site.code())


async def open_session(site: Site, name: str) -> None:
    """Have another administrator, signed in from elsewhere."""
    made = await site.desk.console.create_user("operator", name, PASSWORD)
    totp = pyotp.parse_uri(made.totp_uri)
    assert isinstance(totp, pyotp.TOTP)
    guest = replace(site, cookies={}, csrf="", totp=totp)
    await guest.get("/admin/login")
    answer = await guest.post(
        "/admin/login", name=name, password=PASSWORD, code=guest.code()
    )
    assert answer.status == 303


async def proven(site: Site, path: str, **fields: str) -> Answer:
    """Send a form that wants a code, with one of the moment."""
    return await site.post(path, code=site.code(), **fields)


async def change_telephone(site: Site) -> Answer:
    """Take another TOTP for one's own account, which signs in from then on."""
    here = "/admin/account/totp"
    shown = await proven(site, here, present=PASSWORD)
    (uri,) = re.findall(r'href="(otpauth://[^"]+)"', shown.text)
    (offer,) = re.findall(r'name="offer" value="([^"]+)"', shown.text)
    totp = pyotp.parse_uri(unescape(uri))
    assert isinstance(totp, pyotp.TOTP)
    site.totp = totp
    return await proven(site, f"{here}/confirm", offer=offer)


async def key_id(site: Site, label: str = "backend") -> str:
    """A new key's id."""
    made = await site.front.integrators.create_key("operator", "acme", label)
    return made.key.id


async def lock(site: Site, person: PersonId) -> None:
    """Lock somebody's signing password."""
    async with site.desk.store.write() as transaction:
        await PersonStore(transaction).set_counted(person, 10, site.clock.now())


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


async def with_secret(site: Site) -> PersonId:
    """Somebody who has chosen their passwords."""
    made = await site.post("/admin/people", **invitation(vouched_by="demo"))
    (code,) = set(re.findall(r"/alta/([A-Za-z0-9_-]{43})", made.text))
    view = await site.desk.enrolment.look(code)
    site.clock.forward(30)
    await site.desk.host.beat(site.desk.store, site.clock.now())
    choice = Choice(
        "contraseña de ingreso",
        "contraseña de firma",
        pyotp.TOTP(view.totp_secret).at(site.clock.now()),
        view.opening,
    )
    await site.desk.enrolment.complete(code, choice)
    return view.person
