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
from admin_ui.edits import FORMS, VERSION
from admin_ui.proof import RECENT, RECENT_FOR
from appliance.domain.ids import PersonId
from appliance.domain.vocab import Environment, StampDesign
from appliance.settings import (
    ExternalTsaSettings,
    MailSettings,
    ProfileSettings,
    StampSettings,
    TimestampSettings,
)
from tests.integration.console.forms import (
    ANA_DIGITS,
    HERE,
    invitation,
    key_form,
    lock,
    sha256,
)
from tests.integration.console.populated import populate
from tests.support.faces.page_forms import FormReader, PageForm
from tests.support.faces.page_matrix import PageMatrix, Way, template_files
from tests.support.factories.fakes import NOON
from tests.support.installation.console import NAME, PASSWORD, PDF, Answer, Console
from tests.support.installation.installation import Installation
from tests.support.pki.outside_ca import OutsideCa, bundle

_TEMPLATES: Final = Path(admin_ui.__file__).parent / "templates"
OTHER: Final = "otra clave muy larga"
MAIL: Final = {"mail": MailSettings(host="mail.example", from_address="r@m.example")}
TSA: Final = {
    "timestamps": TimestampSettings(
        outside=(ExternalTsaSettings(url="https://tsa.example/"),)
    ),
    "profile": ProfileSettings(tsa=("tsa.example", "internal")),
}
"""Timestamps by an authority outside; without it by the internal one alone."""
CARD: Final = {"stamp": StampSettings(design=StampDesign.CARD, qr=True)}
"""Stamps as a trial has them; without it as the contract has them."""
PREPROD: Final = {"environment": Environment.PREPROD, "trial": False}
PROD: Final = {"environment": Environment.PROD, "trial": False}
CONFIGURATIONS: Final[dict[str, dict[str, Any]]] = {
    "trial-tsa": {**TSA, **CARD},
    "trial-mail": {**MAIL, **CARD},
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
_EVERY_RUN: Final = ("trial-tsa", "prod-mail")
"""Differ in all three; the others are behind `./check --full`. What a branch reads is
checked in every run, rendered or not."""
_BAD: Final = "\u200bno"
"""Refused by every field: invisible character, and a word of no list."""
_RIGHT_IF_EMPTY: Final = frozenset(
    {"integrators.set_mail", "integrators.set_prefix", "profile.change"}
)
_NEVER_MARKED: Final = frozenset({"again", "by_mail", "checked", "mails_signers"})
"""Fields in which nothing is wrong by itself: boxes, and what is typed twice."""
_TRIED_WITH_ANOTHER: Final = frozenset({"present", "witness", "witness_password"})
"""Fields whose text only the use of a code says to be wrong."""
_ONE_ANSWER: Final = "login.enter"
"""A stranger is not told which of the three is wrong."""
_RIGHT_IF_BAD: Final = frozenset({"stamp.show_logo"})
"""The console under test has no sandbox that would refuse the picture."""
_FILES: Final = frozenset(
    {
        "assets.serve",
        "authority.download",
        "requests.original",
        "requests.received",
        "requests.signed",
    }
)
"""Routes without a template."""
_REDIRECTS: Final = frozenset({"root"})
_MORE_PAGES: Final = (
    ("domains.ask_allow", f"{HERE}/domains/allow?origin=https://otro.example"),
    ("webhooks.one", "{webhook}?state=given_up"),
    ("webhooks.one", "{webhook}?state=pending"),
    ("integrators.show", "/admin/integrators?q=acme&only=blocked"),
    ("integrators.show", "/admin/integrators?q=nadie"),
    ("integrators.options", "/admin/integrators/options?integrator=ac"),
    ("people.show", "/admin/people?state=active"),
    ("people.show", "/admin/people?q=nadie"),
    ("people.show", "/admin/people?help=yes"),
    ("certificates.show", "/admin/certificates?q=Ana"),
    ("certificates.show", "/admin/certificates?q=nadie"),
    ("requests.show", "/admin/requests?batch={batch}&person={person}"),
    ("requests.show", "/admin/requests?q=en curso"),
    ("requests.show", "/admin/requests?state=rechazada&q=nadie"),
    ("requests.show", "/admin/requests?since=nunca"),
    ("audit.show", "/admin/audit?event=person.created&actor=person:{person}"),
    ("audit.show", "/admin/audit?since=nunca"),
    ("stamp.show", f"{HERE}/stamp?fontColor=no"),
    ("stamp.show", f"{HERE}/stamp?qr=yes&motivo=Conforme"),
    ("stamp.show", f"{HERE}/stamp?design=classic"),
)
"""Pages with a query: filters that find something, that find nothing, and faults."""
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
    "person.close_help": {},
    "person.unlock": {},
    "person.forget": {"address": "192.0.2.7"},
    "person.reset_totp": {},
    "person.disable": {},
    "person.enable": {},
    "requests.create": {"integrator": "acme", "cuil": ANA_DIGITS, "days": "30"},
    "requests.cancel": {},
    "requests.ask_again": {},
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
    """A console in one configuration, and what is known of its record."""

    console: Console
    matrix: PageMatrix
    values: dict[str, list[str]]
    """Values for addresses of pages, by the name of the route's argument."""
    more: dict[str, str]
    """Values for `_MORE_PAGES`."""
    later: OutsideCa
    """CA whose root is not in the trust store yet."""
    chain: bytes
    """Of an outside CA, for the credential of the first person."""
    witness: pyotp.TOTP
    """Authenticator of the second officer, `olga`."""
    offered: pyotp.TOTP
    """Authenticator that the account's page offered last."""

    @property
    def endpoints(self) -> dict[str, set[str]]:
        """Endpoints with a template, by method."""
        rules = list(self.console.app.url_map.iter_rules())
        return {
            method: {r.endpoint for r in rules if method in (r.methods or ())} - _FILES
            for method in ("GET", "POST")
        }

    def addresses(self) -> Iterator[tuple[str, str]]:
        """Make endpoint and address of each page, with each combination of values.

        Pages whose address has an argument without a value are left out.
        """
        routes = self.console.app.url_map
        for rule in routes.iter_rules():
            if rule.endpoint in self.endpoints["GET"] and "GET" in (rule.methods or ()):
                names = sorted(rule.arguments)
                for chosen in product(*(self.values.get(name, []) for name in names)):
                    of = dict(zip(names, chosen, strict=True))
                    yield rule.endpoint, routes.bind("").build(rule.endpoint, of)
        if self.more:
            for endpoint, path in _MORE_PAGES:
                yield endpoint, path.format(**self.more)

    async def populate(self) -> None:
        """Have one of everything that a page is about, and two more administrators."""
        await self.console.post("/admin/integrators", code="acme", name="ACME S.A.")
        made = await populate(self.console)
        self.values |= made.values | {"name": ["eva", NAME]}
        person = made.values["person_id"][0]
        self.more = {"webhook": made.webhook, "batch": made.batch, "person": person}
        certified = made.outside.certify(made.held.spki, ANA_DIGITS)
        self.chain = bundle(certified, made.outside.issuing)
        create = self.console.services.console.create_user
        await create("operator", "eva", PASSWORD)
        second = await create("operator", "olga", PASSWORD)
        totp = pyotp.parse_uri(second.totp_uri)
        assert isinstance(totp, pyotp.TOTP)
        self.witness = totp


@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name in _EVERY_RUN else pytest.mark.full)
        for name in CONFIGURATIONS
    ]
)
async def pages(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[FormPages]:
    """An empty console with one administrator, signed in."""
    changes = CONFIGURATIONS[request.param]
    matrix = PageMatrix(f"console {request.param}")
    async with Installation(tmp_path).console(**changes) as made:
        with matrix.watching():
            await made.sign_in()
            later = OutsideCa(NOON, "b")
            values = {"name": [NAME]}
            yield FormPages(made, matrix, values, {}, later, b"", made.totp, made.totp)


async def opened(pages: FormPages) -> dict[str, PageForm]:
    """Open each page; the forms that it posts, by endpoint."""
    forms: dict[str, PageForm] = {}
    for endpoint, path in pages.addresses():
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
    """Send a form with one value in every field, and all that its page hides in it."""
    console.clock.forward(60)
    fields = dict.fromkeys(form.shown, value)
    hidden = {**form.hidden, "csrf": console.csrf}
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
        if form.shown or form.file:
            empty, wrong = [await send(console, form, value) for value in ("", _BAD)]
            assert empty.status == (303 if endpoint in _RIGHT_IF_EMPTY else 422), form
            assert wrong.status == (303 if endpoint in _RIGHT_IF_BAD else 422), form
            if endpoint != _ONE_ANSWER:
                # A page that asks for a code comes first, and keeps what was typed.
                asked = set() if endpoint in RECENT else set(form.shown)
                assert _unmarked(form.required & asked, empty) == set(), endpoint
                bad = asked - _NEVER_MARKED - _TRIED_WITH_ANOTHER
                assert _unmarked(bad, wrong) == set(), endpoint
            matrix.cell(endpoint, Way.FAULTS, empty.status)
            matrix.cell(endpoint, Way.FAULTS, wrong.status)


def _unmarked(names: set[str], answer: Answer) -> set[str]:
    """Return the fields at which a refused form says nothing."""
    if answer.status != 422:
        return set()
    return {
        name
        for name in names - _NEVER_MARKED
        if not name.startswith(("scope-", "event-")) and not answer.fault_of(name)
    }


async def sent_stale(pages: FormPages, endpoint: str, form: PageForm) -> None:
    """Send a form as from a page that was opened before a change, and without version.

    Nothing of it is done, and the page that comes back says so and can go on.
    """
    console, matrix = pages.console, pages.matrix
    for version in ("old", ""):
        fields = dict.fromkeys(form.shown, _BAD) | form.hidden
        fields |= {"csrf": console.csrf, VERSION: version}
        if form.file:
            del fields["csrf"]
            stale = await console.upload(form.path, b"no", "a.txt", **fields)
        else:
            stale = await console.send_form(form.path, fields)
        matrix.cell(endpoint, Way.STALE, stale.status)
        assert stale.status == 412, (endpoint, version, stale.text)
        assert 'id="changed"' in stale.text, (endpoint, version)
        fresh: dict[str, PageForm] = {}
        note_forms(pages, form.path, stale, fresh)
        # A new telephone begins with the password again.
        if endpoint != "account.take_totp":
            assert fresh[endpoint].hidden[VERSION] not in {"old", ""}, endpoint


async def sent_without_a_page(pages: FormPages, forms: dict[str, PageForm]) -> None:
    """Send a stale form about a credential whose page has no such form any more."""
    renewal = forms["credentials.renew"].path
    stale = await pages.console.post(renewal, **{VERSION: "old"})
    pages.matrix.cell("credentials.renew", Way.STALE, stale.status)
    assert stale.status == 412, stale
    assert "send the form again" not in stale.text
    assert f'href="{renewal}"' not in stale.text


async def sent_without_a_code(pages: FormPages) -> None:
    """Send a form that cannot be undone when the last code is too old."""
    pages.console.clock.forward(RECENT_FOR.total_seconds())
    asked = await pages.console.post(f"{HERE}/vouch", allow="yes")
    pages.matrix.cell("integrators.set_vouch", Way.FAULTS, asked.status)
    assert 'name="code"' in asked.text, asked


async def sent_right(
    pages: FormPages, endpoint: str, forms: dict[str, PageForm]
) -> None:
    """Fill a form in, send it, and open the page that it leads to.

    Forms that are shown from then on are sent with faults and added.
    """
    console = pages.console
    form = forms[endpoint]
    if endpoint == "person.unlock":
        await lock(console, PersonId(pages.values["person_id"][0]))
    fresh: dict[str, PageForm] = {}
    note_forms(pages, form.page, await console.get(form.page), fresh)
    form = fresh.get(endpoint, form)
    assert (VERSION in form.hidden) == (endpoint in FORMS), (endpoint, form)
    if endpoint in FORMS:
        await sent_stale(pages, endpoint, form)
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
    return {
        "stamp.show_logo": b"picture",
        "requests.create": PDF,
        "credentials.import_chain": pages.chain,
        "trust.add": bundle(pages.later.root),
    }


async def test_each_page_in_each_way(pages: FormPages) -> None:
    """No page lacks a value or fails, and no page or template is left out.

    The run also checks the branches that are not rendered (`checked_inputs`).
    """
    matrix = pages.matrix
    # Lists without rows, and one administrator.
    await opened(pages)
    await pages.populate()
    forms = await opened(pages)
    await opened_in_part(pages)
    await sent_with_faults(pages, forms)
    for endpoint in _RIGHT:
        await sent_right(pages, endpoint, forms)
    await opened(pages)
    await sent_without_a_page(pages, forms)
    await sent_without_a_code(pages)

    print(matrix.table())  # noqa: T201 (for a reader of the run)
    gets, posts = pages.endpoints["GET"], pages.endpoints["POST"]
    assert matrix.pages(Way.GET, 200) == gets - _REDIRECTS
    assert matrix.pages(Way.FAULTS, 403, 422) == posts
    assert matrix.pages(Way.RIGHT, 200, 303) == posts
    assert matrix.pages(Way.STALE, 412) == FORMS.keys()
    assert matrix.templates == template_files(_TEMPLATES)
