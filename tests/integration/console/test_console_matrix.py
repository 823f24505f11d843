"""Every page of the console, in every configuration, asked for in every way.

Each configuration has one console. Its pages are opened while it has one
administrator, and again with more. Then every form is sent with faults, and right.
"""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any, Final

import pyotp
import pytest

import admin_ui
from appliance.domain.vocab import Environment
from appliance.settings import (
    ExternalTsaSettings,
    MailSettings,
    ProfileSettings,
    TimestampSettings,
)
from tests.integration.console.forms import (
    ANA_DIGITS,
    given_up,
    invitation,
    key_form,
    key_id,
    lock,
    open_acme_console,
    sha256,
    upload,
    with_secret,
)
from tests.support.faces.page_forms import FormReader, PageForm
from tests.support.faces.page_matrix import PageMatrix, Way, template_files
from tests.support.factories.fakes import NOON
from tests.support.factories.held_credential import Held, hold
from tests.support.installation.console import NAME, PASSWORD, PDF, Answer, Console
from tests.support.pki.outside_ca import OutsideCa, bundle

_TEMPLATES: Final = Path(admin_ui.__file__).parent / "templates"
LUIS_DIGITS: Final = "20267565393"
OTHER: Final = "otra clave muy larga"
MAIL: Final = {"mail": MailSettings(host="mail.example", from_address="r@m.example")}
TSA: Final = {
    "timestamps": TimestampSettings(
        outside=(ExternalTsaSettings(url="https://tsa.example/"),)
    ),
    "profile": ProfileSettings(tsa=("tsa.example", "internal")),
}
"""Timestamps by an authority outside; without it by the internal one alone."""
PREPROD: Final = {"environment": Environment.PREPROD, "trial": False}
PROD: Final = {"environment": Environment.PROD, "trial": False}
CONFIGURATIONS: Final[dict[str, dict[str, Any]]] = {
    "trial-tsa": TSA,
    "trial-mail": MAIL,
    "preprod": PREPROD,
    "preprod-mail-tsa": {**PREPROD, **MAIL, **TSA},
    "prod-tsa": {**PROD, **TSA},
    "prod-mail": {**PROD, **MAIL},
}
"""Each environment with mail and without, and with each kind of TSA.

Left out: the other half of environment, mail and TSA. Only the list of TSAs in
`profile.html` and `parts/health_outside.html` depends on the TSA, and neither asks
for the environment or for mail. A trial in PROD is refused by the settings.
"""
_BAD: Final = "\u200bno"
"""Refused by every field: invisible character, and a word of no list."""
_RIGHT_IF_EMPTY: Final = frozenset(
    {"integrators.set_mail", "integrators.set_prefix", "profile.change"}
)
_RIGHT_IF_BAD: Final = frozenset({"stamp.show_logo"})
"""The console under test has no sandbox that would refuse the picture."""
_FILES: Final = frozenset(
    {"assets.serve", "authority.download", "requests.original", "requests.signed"}
)
"""Routes without a template."""
_REDIRECTS: Final = frozenset({"root"})
_MORE_PAGES: Final = {
    "domains.ask_allow": "/admin/integrators/acme/domains/allow?origin=https://otro.example",
    "webhooks.one": "{webhook}?state=given_up",
    "integrators.show": "/admin/integrators?q=nadie",
    "people.show": "/admin/people?state=nadie",
    "requests.show": "/admin/requests?since=nunca",
    "audit.show": "/admin/audit?event=request_created&since=nunca",
    "stamp.show": "/admin/integrators/acme/stamp?fontColor=no",
}
"""Pages with a query, by endpoint: filters, and faults of them."""
_RIGHT: Final[dict[str, dict[str, str]]] = {
    "login.choose_language": {"lang": "en"},
    "integrators.create": {"code": "beta", "name": "Beta"},
    "integrators.set_prefix": {"event_prefix": "acme"},
    "integrators.rename": {"name": "ACME"},
    "integrators.set_vouch": {},
    "integrators.set_mail": {"mails_signers": "yes", "reminder_days": "3, 7"},
    "integrators.disable": {},
    "integrators.enable": {},
    "domains.add": {"origin": "https://app.example"},
    "domains.remove": {},
    "keys.create": key_form(label="otra"),
    "keys.rotate": {"overlap": "3600"},
    "keys.revoke": {},
    "profile.change": {"level": "B-B"},
    "stamp.show_logo": {},
    "stamp.drop_logo": {},
    "webhooks.replay_given_up": {},
    "webhooks.replay": {},
    "webhooks.create": {"url": "https://app.example/otro", "label": "otro"},
    "webhooks.change": {"url": "https://app.example/x", "label": "cobros"},
    "webhooks.rotate": {"how": "overlap"},
    "webhooks.test": {},
    "webhooks.disable": {},
    "webhooks.enable": {},
    "webhooks.remove": {},
    "people.create": invitation(cuil="27301234568", email="eva@demo.example"),
    "person.renew": {"by_mail": "yes"},
    "person.unlock": {},
    "person.forget": {"address": "192.0.2.7"},
    "person.reset_totp": {},
    "person.disable": {},
    "person.enable": {},
    "requests.create": {"integrator": "acme", "cuil": ANA_DIGITS, "days": "30"},
    "requests.cancel": {},
    "credentials.renew": {},
    "credentials.import_chain": {},
    "credentials.revoke": {"reason": "superseded"},
    "credentials.new_pin": {},
    "credentials.reissue": {},
    "trust.add": {"purpose": "signers"},
    "trust.remove": {},
    "administrators.end_sessions": {},
    "administrators.forget": {"address": "192.0.2.7"},
    "administrators.reset_totp": {},
    "administrators.set_password": {"password": OTHER, "again": OTHER},
    "administrators.disable": {},
    "administrators.enable": {},
    "account.set_password": {"password": PASSWORD, "again": PASSWORD},
    "account.offer_totp": {},
    "account.take_totp": {},
    "login.leave": {},
    "login.enter": {"name": NAME, "password": PASSWORD},
}
"""Fields of each form that make it right, in the order in which forms are sent.

Forms without an entry of a state that they need come after the one that leads to it.
`_fields` adds codes, the present password and the second officer.
"""


@dataclass
class FormPages:
    """A console and the values that addresses of its pages are made of."""

    console: Console
    matrix: PageMatrix
    values: dict[str, list[str]]
    webhook: str
    """Path of the page of a webhook."""
    held: Held
    """Credential of the first person."""
    outside: OutsideCa
    """CA whose root is in the trust store."""
    later: OutsideCa
    """CA whose root is not in the trust store yet."""
    witness: pyotp.TOTP
    """Authenticator of the second officer, `olga`."""
    offered: pyotp.TOTP
    """Authenticator that the account's page offered last."""

    @property
    def endpoints(self) -> dict[str, set[str]]:
        """Endpoints with a template, by method."""
        rules = list(self.console.app.url_map.iter_rules())
        return {
            method: {r.endpoint for r in rules if method in (r.methods or ())}
            - _FILES
            - {"static"}
            for method in ("GET", "POST")
        }

    def addresses(self) -> Iterator[tuple[str, str]]:
        """Make endpoint and address of each page, with each combination of values."""
        routes = self.console.app.url_map
        for rule in routes.iter_rules():
            if rule.endpoint in self.endpoints["GET"] and "GET" in (rule.methods or ()):
                names = sorted(rule.arguments)
                for chosen in product(*(self.values[name] for name in names)):
                    of = dict(zip(names, chosen, strict=True))
                    yield rule.endpoint, routes.bind("").build(rule.endpoint, of)
        for endpoint, path in _MORE_PAGES.items():
            yield endpoint, path.format(webhook=self.webhook)


@pytest.fixture(params=list(CONFIGURATIONS))
async def pages(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[FormPages]:
    """A console, signed in, with one of everything that a form is about."""
    async with open_acme_console(tmp_path, **CONFIGURATIONS[request.param]) as made:
        ana = await with_secret(made)
        now = made.clock.now()
        held = await hold(made.services.store, ana, ANA_DIGITS, now)
        luis = await made.person(LUIS_DIGITS, "Luis Peña", enrolled=False)
        await lock(made, ana)
        number = await made.request(ANA_DIGITS)
        await made.services.sessions.note_blocked("acme", "https://otro.example")
        domain = await made.front.integrators.add_domain(
            "operator", "acme", "https://acme.example"
        )
        endpoint, message = await given_up(made)
        ca, later = OutsideCa(NOON, "a"), OutsideCa(NOON, "b")
        added = {"fingerprint": sha256(ca), "purpose": "signers"}
        await upload(made, "/admin/trust", bundle(ca.root), **added)
        (anchor,) = await made.front.trust.anchors()
        async with made.services.store.read() as transaction:
            writers = await transaction.audit.writers()
        values: dict[str, list[str]] = {
            "person_id": [ana, luis],
            "credential_id": [held.id],
            "number": [str(number)],
            "code": ["acme"],
            "key_id": [await key_id(made)],
            "domain_id": [domain.id],
            "webhook": [endpoint.rpartition("/")[2]],
            "message": [message],
            "anchor_id": [anchor.id],
            "name": [NAME],
            "writer": writers[:1],
        }
        matrix = PageMatrix(f"console {request.param}")
        with matrix.watching():
            yield FormPages(
                made, matrix, values, endpoint, held, ca, later, made.totp, made.totp
            )


async def opened(pages: FormPages, *of: str) -> dict[str, PageForm]:
    """Open each page; the forms that it posts, by endpoint.

    Args:
        pages: of the console.
        of: blueprints; empty for all.
    """
    forms: dict[str, PageForm] = {}
    for endpoint, path in pages.addresses():
        if not of or endpoint.partition(".")[0] in of:
            answer = await pages.console.get(path)
            pages.matrix.cell(endpoint, Way.GET, answer.status)
            note_forms(pages, path, answer, forms)
    return forms


async def opened_in_part(pages: FormPages) -> None:
    """Ask for each page as the console's script does, which replaces a part of it."""
    for endpoint, path in pages.addresses():
        answer = await pages.console.get(path, **{"HX-Request": "true"})
        pages.matrix.cell(endpoint, Way.PART, answer.status)


def note_forms(
    pages: FormPages, path: str, answer: Answer, forms: dict[str, PageForm]
) -> None:
    """Keep the forms of a page, if no earlier page had them."""
    routes = pages.console.app.url_map.bind("")
    if "text/html" in answer.headers.get("Content-Type", ""):
        for form in FormReader(path, answer.text).forms:
            endpoint, _ = routes.match(form.path, method="POST")
            forms.setdefault(str(endpoint), form)


async def send(console: Console, form: PageForm, value: str) -> Answer:
    """Send a form with one value in every field, and as if it were an old tab's."""
    console.clock.forward(60)
    fields = dict.fromkeys(form.shown, value)
    hidden = {**form.hidden, "csrf": console.csrf}
    if "instead_of" in hidden:
        hidden["instead_of"] = "old"
    if form.file and value:
        del hidden["csrf"]
        return await console.upload(form.path, b"no", "a.txt", **hidden, **fields)
    return await console.send_form(form.path, {**hidden, **fields})


async def sent_with_faults(pages: FormPages, forms: dict[str, PageForm]) -> None:
    """Send every form without its token, empty and wrong."""
    console, matrix = pages.console, pages.matrix
    for endpoint, form in forms.items():
        stranger = await console.send_form(form.path, {"csrf": "no"})
        matrix.cell(endpoint, Way.FAULTS, stranger.status)
        # The sign-in has no token yet: it is refused for its empty fields.
        refused = 422 if endpoint == "login.enter" else 403
        assert stranger.status == refused, (endpoint, stranger)
        # A form with nothing to fill in has no other faults.
        if form.shown or form.file or "instead_of" in form.hidden:
            empty, wrong = [await send(console, form, value) for value in ("", _BAD)]
            assert empty.status == (303 if endpoint in _RIGHT_IF_EMPTY else 422), form
            assert wrong.status == (303 if endpoint in _RIGHT_IF_BAD else 422), form
            matrix.cell(endpoint, Way.FAULTS, empty.status)
            matrix.cell(endpoint, Way.FAULTS, wrong.status)


async def sent_right(
    pages: FormPages, endpoint: str, forms: dict[str, PageForm]
) -> None:
    """Fill a form in, send it, and open the page that it leads to.

    Forms that are shown from then on are sent with faults and added.
    """
    console = pages.console
    form = forms[endpoint]
    fresh: dict[str, PageForm] = {}
    note_forms(pages, form.page, await console.get(form.page), fresh)
    form = fresh.get(endpoint, form)
    fields = {**form.hidden, "csrf": console.csrf, **_fields(pages, endpoint, form)}
    if form.file:
        del fields["csrf"]
        content = _files(pages)[endpoint]
        answer = await console.upload(form.path, content, "a.pdf", **fields)
    else:
        answer = await console.send_form(form.path, fields)
    pages.matrix.cell(endpoint, Way.RIGHT, answer.status)
    assert answer.status in {200, 303}, (endpoint, answer.text)
    path = form.path
    if answer.status == 303:
        path = answer.location
        answer = await console.get(path)
        assert answer.status == 200, (endpoint, path, answer.status)
        routes = console.app.url_map.bind("")
        page, _ = routes.match(path.partition("?")[0], method="GET")
        pages.matrix.cell(str(page), Way.GET, answer.status)
    if endpoint == "account.offer_totp":
        pages.offered = offered(answer)
    shown: dict[str, PageForm] = {}
    note_forms(pages, path, answer, shown)
    new = {name: form for name, form in shown.items() if name not in forms}
    await sent_with_faults(pages, new)
    forms |= new


def offered(answer: Answer) -> pyotp.TOTP:
    """Return the authenticator that a page offers."""
    (uri,) = set(re.findall(r'href="(otpauth://[^"]+)"', answer.text))
    totp = pyotp.parse_uri(unescape(uri))
    assert isinstance(totp, pyotp.TOTP)
    return totp


def _fields(pages: FormPages, endpoint: str, form: PageForm) -> dict[str, str]:
    """Return the fields that make a form right, codes of the moment among them."""
    console = pages.console
    fields = {name: text for name, text in _RIGHT[endpoint].items() if text}
    if "by_mail" not in form.shown:
        # Mail is off.
        fields.pop("by_mail", None)
    if "present" in form.shown:
        fields["present"] = PASSWORD
    if endpoint == "trust.add":
        fields["fingerprint"] = sha256(pages.later)
    if endpoint == "account.take_totp":
        console.totp = pages.offered
    if "code" in form.shown and "code" not in fields:
        fields["code"] = console.code()
    if "witness" in form.shown:
        code = pages.witness.at(console.clock.now())
        fields |= {"witness": "olga", "witness_password": PASSWORD}
        fields["witness_code"] = code
    return fields


def _files(pages: FormPages) -> dict[str, bytes]:
    """Return the content of the file that each form takes."""
    held = pages.held
    chain = bundle(pages.outside.certify(held.spki, ANA_DIGITS), pages.outside.issuing)
    return {
        "stamp.show_logo": b"picture",
        "requests.create": PDF,
        "credentials.import_chain": chain,
        "trust.add": bundle(pages.later.root),
    }


async def second_officer(pages: FormPages) -> None:
    """Have two more administrators: one to change, one to agree."""
    create = pages.console.services.console.create_user
    await create("operator", "eva", PASSWORD)
    made = await create("operator", "olga", PASSWORD)
    totp = pyotp.parse_uri(made.totp_uri)
    assert isinstance(totp, pyotp.TOTP)
    pages.witness = totp
    pages.values["name"] = ["eva", NAME]


async def test_each_page_in_each_way(pages: FormPages) -> None:
    """No page lacks a value or fails, and no page or template is left out.

    The run also checks the branches that are not rendered (`checked_inputs`).
    """
    matrix = pages.matrix
    # No other page asks how many administrators there are.
    await opened(pages, "account", "administrators")
    await second_officer(pages)
    forms = await opened(pages)
    await opened_in_part(pages)
    await sent_with_faults(pages, forms)
    for endpoint in _RIGHT:
        await sent_right(pages, endpoint, forms)
    await opened(pages)

    print(matrix.table())  # noqa: T201 (for a reader of the run)
    gets, posts = pages.endpoints["GET"], pages.endpoints["POST"]
    assert matrix.pages(Way.GET, 200) == gets - _REDIRECTS
    assert matrix.pages(Way.FAULTS, 403, 422) == posts
    assert matrix.pages(Way.RIGHT, 200, 303) == posts
    assert matrix.templates == template_files(_TEMPLATES)
