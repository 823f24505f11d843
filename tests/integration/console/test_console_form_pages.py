"""Every form page of the console, opened and sent with faults, by configuration."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.domain.vocab import Environment
from appliance.settings.mail import MailSettings
from tests.integration.console.forms import (
    ANA_DIGITS,
    given_up,
    key_id,
    lock,
    open_acme_console,
    proven,
    sha256,
    upload,
)
from tests.support.factories.fakes import NOON
from tests.support.installation.console import NAME, PASSWORD, Answer, Console
from tests.support.pki.outside_ca import OutsideCa, bundle

LUIS_DIGITS: Final = "20267565393"
MAIL: Final = {"mail": MailSettings(host="mail.example", from_address="r@m.example")}
PROD: Final = {"environment": Environment.PROD, "trial": False}
_CONFIGURATIONS: Final[dict[str, dict[str, Any]]] = {
    "trial": {},
    "trial-mail": MAIL,
    "prod": PROD,
    "prod-mail": {**PROD, **MAIL},
}
_BAD: Final = "\u200bno"
"""Refused by every field: invisible character, and a word of no list."""
_RIGHT_IF_EMPTY: Final = frozenset(
    {"integrators.set_mail", "integrators.set_prefix", "profile.change"}
)
_RIGHT_IF_BAD: Final = frozenset({"stamp.show_logo"})
"""The console under test has no sandbox that would refuse the picture."""
_OTHER_STATES: Final = frozenset(
    {
        "integrators.enable",
        "login.enter",
        "person.enable",
        "stamp.drop_logo",
        "webhooks.enable",
        "webhooks.replay_given_up",
    }
)
"""Forms that the pages of this console do not show: all but the sign-in have no
fields."""
_FILES: Final = frozenset({"assets.serve", "authority.download"})
"""Routes without a template."""


@dataclass
class PageForm:
    """A form that a page posts, and the fields that a browser would send."""

    path: str
    hidden: dict[str, str] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    file: str = ""


class FormReader(HTMLParser):
    """Posted forms of a page.

    Args:
        path: of the page, which forms without an address are sent to.
        page: HTML.
    """

    def __init__(self, path: str, page: str) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self._path = path
        self._open: PageForm | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect a form or a field."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            posted = given.get("method") == "post"
            self._open = PageForm(given.get("action") or self._path) if posted else None
            self.forms += [self._open] if self._open else []
        elif self._open and tag in {"input", "select", "textarea"}:
            self._field(self._open, given)

    def _field(self, form: PageForm, given: dict[str, str]) -> None:
        kind, name = given.get("type"), given["name"]
        if kind == "hidden":
            form.hidden[name] = given["value"]
        elif kind == "file":
            form.file = name
        else:
            form.shown.append(name)

    def handle_endtag(self, tag: str) -> None:
        """Leave a form."""
        if tag == "form":
            self._open = None


@dataclass
class FormPages:
    """A console and the values that addresses of its pages are made of."""

    console: Console
    values: dict[str, list[str]]

    def addresses(self) -> Iterator[str]:
        """Make the address of each page, with each combination of values."""
        routes = self.console.app.url_map
        for rule in routes.iter_rules():
            is_page = "GET" in (rule.methods or ()) and rule.rule.startswith("/admin/")
            if is_page and rule.endpoint not in _FILES:
                names = sorted(rule.arguments)
                for chosen in product(*(self.values[name] for name in names)):
                    of = dict(zip(names, chosen, strict=True))
                    yield routes.bind("").build(rule.endpoint, of)


@pytest.fixture(params=list(_CONFIGURATIONS))
async def pages(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[FormPages]:
    """A console, signed in, with one of everything that a form is about."""
    changes = _CONFIGURATIONS[request.param]
    async with open_acme_console(tmp_path, **changes) as made:
        ana = await made.person(ANA_DIGITS)
        luis = await made.person(LUIS_DIGITS, "Luis Peña", enrolled=False)
        await lock(made, ana)
        number = await made.request(ANA_DIGITS)
        await made.services.console.create_user("operator", "eva", PASSWORD)
        await made.services.sessions.note_blocked("acme", "https://otro.example")
        domain = await made.front.integrators.add_domain(
            "operator", "acme", "https://acme.example"
        )
        endpoint, message = await given_up(made)
        ca = OutsideCa(NOON)
        added = {"fingerprint": sha256(ca), "purpose": "signers"}
        await upload(made, "/admin/trust", bundle(ca.root), **added)
        (anchor,) = await made.front.trust.anchors()
        (credential,) = await made.front.credentials.of(ana)
        async with made.services.store.read() as transaction:
            writers = await transaction.audit.writers()
        values: dict[str, list[str]] = {
            "person_id": [ana, luis],
            "credential_id": [credential.id],
            "number": [str(number)],
            "code": ["acme"],
            "key_id": [await key_id(made)],
            "domain_id": [domain.id],
            "webhook": [endpoint.rpartition("/")[2]],
            "message": [message],
            "anchor_id": [anchor.id],
            "name": ["eva", NAME],
            "writer": writers[:1],
        }
        yield FormPages(made, values)


async def forms_of(pages: FormPages) -> dict[str, PageForm]:
    """Open each page; the forms that it posts, by endpoint."""
    console = pages.console
    routes = console.app.url_map.bind("")
    # The second form of a telephone's change is shown only after the first.
    answers = {"": await proven(console, "/admin/account/totp", present=PASSWORD)}
    for path in pages.addresses():
        answers[path] = await console.get(path)
    forms: dict[str, PageForm] = {}
    for path, answer in answers.items():
        # 404 and 409: a page of something in another state, such as a link for
        # a person who has enrolled.
        assert answer.status in {200, 303, 404, 409}, (path, answer.status)
        if "text/html" in answer.headers.get("Content-Type", ""):
            for form in FormReader(path, answer.text).forms:
                endpoint, _ = routes.match(form.path, method="POST")
                forms.setdefault(str(endpoint), form)
    return forms


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


async def test_form_page_has_all_that_it_reads(pages: FormPages) -> None:
    """GET, an empty form and a wrong one are answered by the page of the form.

    `open_acme_console` also checks the branches that are not rendered here.
    """
    console = pages.console
    forms = await forms_of(pages)

    for endpoint, form in forms.items():
        # A form with nothing to fill in has no faults.
        if form.shown or form.file or "instead_of" in form.hidden:
            empty, wrong = [await send(console, form, value) for value in ("", _BAD)]
            assert empty.status == (303 if endpoint in _RIGHT_IF_EMPTY else 422), form
            assert wrong.status == (303 if endpoint in _RIGHT_IF_BAD else 422), form
    rules = console.app.url_map.iter_rules()
    posted = {rule.endpoint for rule in rules if "POST" in (rule.methods or ())}
    assert posted - forms.keys() == _OTHER_STATES
