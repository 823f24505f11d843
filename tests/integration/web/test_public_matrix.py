"""Every public page, in every configuration, asked for in every way.

Pages at the address of the API: enrolment, revocation, verification, the home page,
the documentation for developers, and errors.
"""

import inspect
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyotp
import pytest
from quart.typing import TestClientProtocol as HttpClient

from appliance.api import pages as api_pages
from appliance.database import tables
from appliance.developer_docs.pages import PAGES
from appliance.documents.document_store import DocumentStore
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.integrators.integrators import Invitation
from appliance.domain.mail.mails import MailKind
from appliance.domain.vocab import Environment, HelpTopic, VouchedBy
from appliance.identity.help_requests import HelpDesk, HelpRequests
from appliance.keys.hsm_tasks import HsmTasks
from appliance.mail.invitation_mail import LINK
from appliance.people.person_store import PersonStore
from appliance.settings import MailSettings, StampSettings, TimestampSettings
from appliance.signing.claims import Publication
from appliance.web import i18n
from tests.support.faces.enrolment_page import opening_of, seed_of
from tests.support.faces.page_matrix import PageMatrix, Way, template_files
from tests.support.factories.fake_sandbox import NamedSignatures
from tests.support.factories.held_credential import hold
from tests.support.installation.api import API, CUIL, ApiServices, create_api, open_api
from tests.support.installation.installation import Installation
from tests.support.installation.record import (
    CERTIFICATE,
    keyed,
    prepared,
    signed_view,
)

_TEMPLATES: Final = Path(api_pages.__file__).parent / "templates"
_DOCS: Final = "https://docs.example/rubrica"
_ASKS: Final = 40
"""More than one address may ask for help in a minute."""
_LOOKS: Final = 12
"""Pages of signatures that one address may open in a minute."""
_CONFIGURATIONS: Final[dict[str, dict[str, Any]]] = {
    "trial": {"trial": True, "contact": "firma@demo.example"},
    "preprod-tsa": {"timestamps": TimestampSettings(public=True)},
    "prod": {
        "environment": Environment.PROD,
        "contact": "Mesa de ayuda, interno 12",
        "mail": MailSettings(host="mail.example", from_address="a@b.example"),
    },
}
"""Settings that these pages ask for.

The page of help alone asks for mail, and none for who is an administrator. The address
of the documentation is set in `trial` alone. `timestamps.public` is read by the
reference.
"""
_BROWSER: Final = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
_CODE: Final = "0123456789ABCDEFGHJKMNPQRS"
_LOGIN, _SIGNING = "una clave de ingreso", "una clave de firma"
_FILES: Final = frozenset({"developer_docs.file", "developer_docs.choose_language"})
"""Routes without a template in modules that have pages."""


_CALLS: Final = re.compile(r"\bpages\.(show|render)\(")
"""Found in the source of each module with a page."""


@dataclass
class PublicPages:
    """A browser at the public address, and what it saw."""

    services: ApiServices
    client: HttpClient
    matrix: PageMatrix

    async def get(self, page: str, path: str, status: int) -> str:
        """Open a page in both languages; its Spanish text.

        Args:
            page: endpoint, and the state of the page.
            path: address.
            status: expected of each answer.
        """
        text = ""
        for lang in ("en", "es"):
            more = "&" if "?" in path else "?"
            answer = await self.client.get(f"{path}{more}lang={lang}", headers=_BROWSER)
            assert answer.status_code == status, (page, answer.status_code)
            assert answer.mimetype == "text/html"
            self.matrix.cell(f"{page} {lang}", Way.GET, answer.status_code)
            text = str(await answer.get_data(as_text=True))
        return text

    async def post(
        self, page: str, path: str, form: dict[str, str], status: int
    ) -> None:
        """Send a form, and check the status of the answer."""
        answer = await self.client.post(path, form=form, headers=_BROWSER)
        assert answer.status_code == status, (page, answer.status_code)
        way = Way.RIGHT if status == 200 else Way.FAULTS
        self.matrix.cell(page, way, answer.status_code)

    async def invite(self, cuil: str) -> Invitation:
        """Invite a person."""
        invite = self.services.invitations.invite
        email = f"{cuil}@demo.example"
        return await invite("console:c1", cuil, "Ana", email, VouchedBy.OFFICER)

    async def filled_in(self, path: str) -> dict[str, str]:
        """Open an enrolment link, and fill its form in."""
        text = await self.get("enrolment.enrol form", path, 200)
        self.services.clock.forward(30)
        await self.services.host.beat(self.services.store, self.services.clock.now())
        return {
            "login_password": _LOGIN,
            "login_password_again": _LOGIN,
            "signing_password": _SIGNING,
            "signing_password_again": _SIGNING,
            "totp_code": pyotp.TOTP(seed_of(text)).at(self.services.clock.now()),
            "opening": opening_of(text),
        }


@pytest.fixture(params=list(_CONFIGURATIONS))
async def pages(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[PublicPages]:
    """A browser without cookies, at the API of one configuration."""
    settings = Installation(tmp_path).settings(API)
    docs = _DOCS if request.param == "trial" else ""
    changes = {
        "web": settings.web.model_copy(update={"documentation_url": docs}),
        "auth": settings.auth.model_copy(update={"login_per_minute_address": _ASKS}),
        "stamp": StampSettings(looks_per_minute_address=_LOOKS),
        **_CONFIGURATIONS[request.param],
    }
    sandbox = NamedSignatures()
    async with open_api(settings.model_copy(update=changes), sandbox) as services:
        client = create_api(services).test_client(use_cookies=False)
        matrix = PageMatrix(f"public {request.param}")
        with matrix.watching():
            yield PublicPages(services, client, matrix)


async def enrolment(pages: PublicPages) -> None:
    """Open and send the page of an enrolment link, in each of its states."""
    services = pages.services
    page = "enrolment.enrol"
    await pages.get(f"{page} unknown", "/alta/nada", 404)
    first = f"/alta/{(await pages.invite('20055361682')).code}"
    form = await pages.filled_in(first)
    await pages.post(page, first, {}, 400)
    await pages.post(page, first, dict.fromkeys(form, ""), 422)
    await pages.post(page, first, {**form, "totp_code": "000000"}, 422)
    await pages.post(page, first, {**form, "signing_password": _LOGIN}, 422)

    # The HSM cannot make the key; the link asks for the signing password again.
    services.tasks.failure = ApplianceError(ErrorCode.TASK_FAILED)
    await pages.post(f"{page} failed", first, form, 200)
    worker = HsmTasks(services.store, services.clock, "signing/h/1", "p")
    claim = await worker.claim_next()
    assert claim is not None
    await worker.failed(claim, "ACTIVATION_EXPIRED")
    await pages.get(f"{page} again", first, 200)
    await pages.post(f"{page} again", first, {}, 400)
    await pages.post(f"{page} again", first, {"signing_password": ""}, 422)
    await pages.post(f"{page} again", first, {"signing_password": "no es la mía"}, 422)
    services.tasks.failure = ApplianceError(ErrorCode.HSM_UNAVAILABLE)
    await pages.post(f"{page} again", first, {"signing_password": _SIGNING}, 200)
    await pages.get(f"{page} pending", first, 200)

    services.tasks.failure = None
    second = await pages.invite(CUIL)
    path = f"/alta/{second.code}"
    await pages.post(page, path, await pages.filled_in(path), 200)
    await hold(services.store, second.person, CUIL, services.clock.now())
    await pages.get(f"{page} done", path, 200)
    await pages.post("enrolment.keep", f"{path}/guardado", {}, 303)

    late = f"/alta/{(await pages.invite('27301234568')).code}"
    form = await pages.filled_in(late)
    services.clock.forward(16)
    # No host is alive that could make the key.
    await pages.post(page, late, form, 503)
    services.clock.forward(259_200)
    await pages.get(f"{page} expired", late, 409)


async def revocation(pages: PublicPages) -> None:
    """Open and send the form that revokes."""
    services = pages.services
    page, path = "revocar.revoke", "/revocar"
    cuil = "20123456786"
    person, _ = await services.add_person(cuil, "eva@demo.example")
    await hold(services.store, person, cuil, services.clock.now())
    pin = await services.revocation_pins.renew(person, "operator")
    form = {"cuil": cuil, "pin": pin, "motivo": "cese_de_uso", "confirmo": "si"}
    await pages.get(page, path, 200)
    await pages.post(page, path, {}, 422)
    await pages.post(page, path, {**form, "motivo": "no"}, 422)
    await pages.post(page, path, {**form, "pin": "ABCD-EFGH-JKMN"}, 403)
    await pages.post(f"{page} revoked", path, form, 200)
    await pages.post(f"{page} nothing left", path, form, 200)


async def help_for_signers(pages: PublicPages) -> None:
    """Ask for help, follow the link of the mail, withdraw, and ask too often."""
    services = pages.services
    page, path = "ayuda.ask", "/ayuda"
    cuil, email = "27301234991", "luz@demo.example"
    person, _ = await services.add_person(cuil, email)
    form = {"motivo": "telefono", "cuil": cuil, "correo": email}
    await pages.get(page, path, 200)
    await pages.get(f"{page} chosen", f"{path}?motivo=contrasena", 200)
    await pages.post(page, path, {}, 422)
    await pages.post(page, path, {**form, "correo": "luz"}, 422)
    await pages.post(f"{page} filed", path, form, 200)
    await pages.post(f"{page} nobody", path, {**form, "correo": "no@b.example"}, 200)
    page = "ayuda.withdraw"
    code = await withdrawal_code(services, person)
    link = f"{path}/retirar/{code}"
    await pages.get(page, link, 200)
    await pages.post(page, link, {}, 200)
    await pages.get(f"{page} over", link, 404)
    for _ in range(_ASKS):
        await pages.client.post(path, form=form)
    await pages.post(f"{page} too often", path, form, 429)


async def withdrawal_code(services: ApiServices, person: PersonId) -> str:
    """Open a person's request once more, with mail on; the code of its link."""
    (asked,) = await HelpDesk(services.store, services.clock).newest(9)
    assert asked.person == person
    await HelpDesk(services.store, services.clock).close("console:c1", person, asked.id)
    mail = MailSettings(host="mail.example", from_address="firma@rubrica.example")
    settings = services.settings.model_copy(update={"mail": mail})
    filing = HelpRequests(
        services.store, services.lookup, services.sealer, services.clock, settings
    )
    services.clock.forward(1)
    await filing.ask("27301234991", "luz@demo.example", HelpTopic.OTHER)
    mail_message = tables.mail_message
    newest = (
        mail_message.select()
        .where(mail_message.c.kind == MailKind.HELP_ASKED.value)
        .order_by(mail_message.c.created.desc())
        .limit(1)
    )
    async with services.store.read() as transaction:
        row = (await transaction.connection.execute(newest)).one()
    url = services.sealer.open(
        row.link_sealed, table=LINK.table, row=row.id, column=LINK.column
    )
    return url.decode().rpartition("/")[2]


async def signature(pages: PublicPages) -> None:
    """Open the page of a signature, and the form that looks for one."""
    record = pages.services.record
    signer = await record.add_signer()
    await record.add_activation(signer)
    worker = record.claiming()
    work = await worker.claim_next()
    assert work is not None
    (item,) = work.claim.documents
    view = signed_view(await record.view(item.request))
    assert await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
    assert await worker.record_signatures(work.claim, [keyed(item)])
    assert await worker.publish(work.claim, [Publication(item, view)])
    row = tables.activation_item.c.request == item.request
    async with record.store.write() as transaction:
        await transaction.connection.execute(
            tables.activation_item.update().where(row).values(code=_CODE)
        )
        person = await PersonStore(transaction).get(signer.person)
    assert person is not None
    known = f"/verificar/{_CODE}"
    # What is not kept cannot be checked; what is kept has the signature, or lacks it.
    await pages.get("verificar.verify unchecked", known, 200)
    for state, field in (("signed", f"Firma-{item.request}"), ("refuted", "otro")):
        content = f"%PDF-1.7 {person.cuil} {field}".encode()
        kept = await pages.services.core.documents.put(view.integrator, content)
        of_it = tables.signed_document.c.request == item.request
        async with record.store.write() as transaction:
            await transaction.connection.execute(
                tables.signed_document.update().where(of_it).values(sha256=kept)
            )
        await pages.get(f"verificar.verify {state}", known, 200)
    raised = replace(view, level="B-T", version=2)
    async with record.store.write() as transaction:
        await DocumentStore(transaction).sealed(item.request, raised, record.now)
    await pages.get("verificar.verify raised", known, 200)
    await pages.get("verificar.verify unknown", f"/verificar/{_CODE[:-1]}0", 404)
    await pages.get("home.find", "/verificar", 200)
    await pages.get("home.find fault", "/verificar?codigo=1", 422)
    for _ in range(_LOOKS):
        await pages.client.get(known)
    await pages.get("verificar.verify too often", known, 429)


async def errors(pages: PublicPages) -> None:
    """Open addresses of nothing, of programs, and of a document."""
    await pages.get("error nothing", "/nada", 404)
    await pages.get("error programs", "/solicitudes", 401)
    path = f"/solicitudes/1/documento?clave={'x' * 43}"
    await pages.get("error link over", path, 401)


async def documentation(pages: PublicPages) -> None:
    """Open the home page and the documentation, in both languages."""
    await pages.get("home.home", "/", 200)
    for lang in i18n.LANGUAGES:
        for page in PAGES:
            path = f"/docs/{lang}/{page.name}"
            answer = await pages.client.get(path, headers=_BROWSER)
            endpoint = "page" if page.name else "index"
            name = f"developer_docs.{endpoint} {page.name} {lang}"
            pages.matrix.cell(name, Way.GET, answer.status_code)
            assert answer.status_code == 200, path


async def test_each_page_in_each_way(pages: PublicPages) -> None:
    """No page lacks a value or fails, and no page or template is left out."""
    await documentation(pages)
    await enrolment(pages)
    await revocation(pages)
    await help_for_signers(pages)
    await signature(pages)
    await errors(pages)

    matrix = pages.matrix
    print(matrix.table())  # noqa: T201 (for a reader of the run)
    app = pages.client.app
    with_pages = {
        name
        for name, view in app.view_functions.items()
        if _CALLS.search(
            inspect.getsource(sys.modules[inspect.unwrap(view).__module__])
        )
    }
    # It leads back to the page of the link, whatever is sent to it.
    leading_back = {"enrolment.keep"}
    seen = {page.split()[0] for page in matrix.pages(Way.GET, 200)}
    assert seen == with_pages - _FILES - leading_back
    posted = {"enrolment.enrol", "revocar.revoke", "ayuda.ask", "ayuda.withdraw"}
    # A link is followed: there is nothing to fill in.
    filled_in = posted - {"ayuda.withdraw"}
    for way, status, expected in (
        (Way.FAULTS, 422, filled_in),
        (Way.RIGHT, 200, posted),
    ):
        assert {page.split()[0] for page in matrix.pages(way, status)} == expected
    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint in with_pages]
    sent_to = {r.endpoint for r in rules if "POST" in (r.methods or ())}
    assert sent_to == posted | leading_back
    assert matrix.templates == template_files(_TEMPLATES)
