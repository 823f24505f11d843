"""Two administrators edit one thing: no change is lost, on both databases."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from admin_ui.edits import FORMS, VERSION
from appliance.domain.console.edit_subjects import Subject
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.integrators.integrators import IntegratorView
from appliance.domain.vocab import EventKind, RequestState
from appliance.record.edit_version_store import EditStore
from appliance.record.edit_versions import Precondition
from appliance.record.unit_of_work import demanding
from appliance.requests.request_store import RequestStore
from appliance.webhooks.endpoints import EndpointChange
from tests.integration.console.forms import (
    ANA_DIGITS,
    HERE,
    audited,
    colleague,
    key_id,
    open_acme_console,
    opened,
    with_secret,
)
from tests.support.faces.page_forms import FormReader
from tests.support.installation.console import PASSWORD, Answer, Console

ROUNDS = 5
"""Changes that each of two administrators makes."""


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_console(tmp_path) as made:
        yield made


@pytest.fixture
async def each_console(tmp_path: Path, each_url: str) -> AsyncIterator[Console]:
    """The same on each database."""
    async with open_acme_console(tmp_path, each_url) as made:
        yield made


async def acme(console: Console) -> IntegratorView:
    """Return the integrator as it is stored."""
    return await console.front.integrators.get("acme")


async def webhook(console: Console) -> str:
    """Make a webhook and return its path."""
    view = await acme(console)
    made = await console.front.webhooks.create(
        "operator", view.id, "https://app.example/rubrica", "cobros"
    )
    return f"{HERE}/webhooks/{made.endpoint.id}"


@dataclass(frozen=True)
class Edit:
    """A form that one fills in, and another one's change to the same values."""

    path: str
    mine: Mapping[str, str]
    theirs: Mapping[str, str]
    shown: tuple[str, ...]
    """Text on the page that compares both, mine and theirs."""
    kept: str
    """Text of the form that shows what was typed."""
    stored: Callable[[IntegratorView], object]
    page: str = ""
    """Path of the page with the form, where it is another one."""


EDITS = {
    "name": Edit(
        f"{HERE}/name",
        {"name": "Mía S.A."},
        {"name": "Suya S.A."},
        ("Mía S.A.", "Suya S.A."),
        'value="Mía S.A."',
        lambda view: view.name,
    ),
    "prefix": Edit(
        f"{HERE}/prefix",
        {"event_prefix": "mia"},
        {"event_prefix": "suya"},
        ("mia", "suya"),
        'value="mia"',
        lambda view: view.event_prefix,
        page=HERE,
    ),
    "mail": Edit(
        f"{HERE}/mail",
        {"mails_signers": "yes", "reminder_days": "3, 7", "sign_url": ""},
        {"mails_signers": "", "reminder_days": "5", "sign_url": "https://b.example"},
        ("3, 7", "5", "https://b.example", "vacío"),
        'value="3, 7"',
        lambda view: (view.mails_signers, view.reminder_days, view.sign_url),
    ),
    "profile": Edit(
        f"{HERE}/profile",
        {"level": "B-B", "policy": "", "digest": ""},
        {"level": "B-T", "policy": "", "digest": "sha512"},
        ("B-B", "B-T", "sha512"),
        'value="B-B" checked',
        lambda view: (view.level, view.digest),
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
async def test_stale_form_shows_both_values_and_goes_on(
    console: Console, edit: Edit
) -> None:
    """Nothing is stored; what was typed stands in the form, which can be sent again."""
    page = edit.page or edit.path
    mine = await opened(console, page, edit.path)
    other = await colleague(console)
    assert (await other.post(edit.path, **edit.theirs)).status == 303
    theirs = edit.stored(await acme(console))

    late = await console.post(edit.path, **{**mine, **edit.mine})

    assert late.status == 412
    assert 'id="changed"' in late.text
    for text in edit.shown:
        assert f"<b>{text}</b>" in late.text, text
    assert edit.kept in late.text
    assert edit.stored(await acme(console)) == theirs

    (form,) = [f for f in FormReader(page, late.text).forms if f.path == edit.path]
    again = await console.post(edit.path, **{**form.hidden, **edit.mine})
    assert again.status == 303
    assert edit.stored(await acme(console)) != theirs


async def test_stale_webhook_keeps_what_was_chosen(console: Console) -> None:
    """Boxes are compared and kept like text."""
    here = await webhook(console)
    mine = await opened(console, f"{here}/change", f"{here}/change")
    other = await colleague(console)
    form = {"url": "https://app.example/otro", "label": "pagos"}
    event = {"event-solicitud.firmada": "yes"}
    assert (await other.post(f"{here}/change", **form)).status == 303

    typed = {"url": "https://app.example/mio", "label": "cobros", **event}
    late = await console.post(f"{here}/change", **{**mine, **typed})

    assert late.status == 412
    assert "<b>https://app.example/mio</b>" in late.text
    assert "<b>https://app.example/otro</b>" in late.text
    assert 'value="https://app.example/mio"' in late.text
    checked = 'name="event-solicitud.firmada" value="yes" checked'
    assert checked in late.text


async def test_edits_of_other_values_do_not_refuse_each_other(
    console: Console,
) -> None:
    """Who renames an integrator loses nothing by somebody who sets its mail."""
    mine = await opened(console, f"{HERE}/name", f"{HERE}/name")
    other = await colleague(console)
    assert (await other.post(f"{HERE}/mail", mails_signers="yes")).status == 303

    answer = await console.post(f"{HERE}/name", **{**mine, "name": "Mía S.A."})

    assert answer.status == 303
    view = await acme(console)
    assert (view.name, view.mails_signers) == ("Mía S.A.", True)


async def test_form_sent_twice_is_answered_as_once(console: Console) -> None:
    """What it would store is stored already: nothing is lost, and nobody is warned."""
    renamed = await opened(console, f"{HERE}/name", f"{HERE}/name")
    disabled = await opened(console, f"{HERE}/disable", f"{HERE}/disable")

    for _ in range(2):
        answer = await console.post(f"{HERE}/name", **{**renamed, "name": "Mía"})
        assert answer.status == 303
    disabled = await opened(console, f"{HERE}/disable", f"{HERE}/disable")
    for _ in range(2):
        answer = await console.post(f"{HERE}/disable", **disabled)
        assert answer.status == 303


async def test_person_is_disabled_and_enabled_by_forms_sent_twice(
    console: Console,
) -> None:
    """The second form is answered as the first, and leaves no row."""
    here = f"/admin/people/{await console.person()}"
    for page, path, kind in (
        (f"{here}/disable", f"{here}/disable", EventKind.PERSON_DISABLED),
        (here, f"{here}/enable", EventKind.PERSON_ENABLED),
    ):
        hidden = await opened(console, page, path)
        for _ in range(2):
            assert (await console.post(path, **hidden)).status == 303
        await audited(console, kind)


async def test_request_is_cancelled_by_a_form_sent_twice(console: Console) -> None:
    """The second form is answered as the first."""
    await console.person()
    path = f"/admin/requests/{await console.request(ANA_DIGITS)}/cancel"
    hidden = await opened(console, path, path)

    for _ in range(2):
        assert (await console.post(path, **hidden)).status == 303

    await audited(console, EventKind.REQUEST_CANCELLED)


@dataclass(frozen=True)
class Once:
    """A form whose secret is shown once, and how to get another secret."""

    path: str
    """With places for a person, key and webhook."""
    remedy: str
    fields: Mapping[str, str] = field(default_factory=dict)
    is_invited: bool = False


_ANOTHER = "volvé a enviar el formulario: se crea otro"
ONCE = {
    "person.renew": Once("{person}/link", _ANOTHER, is_invited=True),
    "person.reset_totp": Once("{person}/totp", _ANOTHER),
    "credentials.new_pin": Once("{person}/credentials/pin", _ANOTHER),
    "credentials.reissue": Once("{person}/credentials/reissue", "creá un enlace"),
    "keys.rotate": Once("{key}/rotate", "rotá esa", {"overlap": "86400"}),
    "webhooks.rotate": Once("{webhook}/rotate", "deja de firmar", {"how": "overlap"}),
    "administrators.reset_totp": Once("/admin/administrators/eva/totp", _ANOTHER),
}


async def once_path(console: Console, once: Once) -> str:
    """Make whom or what a form is about; return its path."""
    if once.is_invited:
        person = await console.person(enrolled=False)
    else:
        person = await with_secret(console)
    await colleague(console)
    return once.path.format(
        person=f"/admin/people/{person}",
        key=f"{HERE}/keys/{await key_id(console)}",
        webhook=await webhook(console),
    )


async def send_once(
    console: Console, path: str, once: Once, hidden: Mapping[str, str]
) -> Answer:
    """Send a form as it was opened, with a code of the moment."""
    fields = {**hidden, **once.fields, "code": console.code()}
    return await console.post(path, **fields)


@pytest.mark.parametrize("once", ONCE.values(), ids=ONCE)
async def test_second_form_says_that_the_secret_was_made_already(
    console: Console, once: Once
) -> None:
    """Its administrator may be the author of both, and has not seen the secret."""
    path = await once_path(console, once)
    hidden = await opened(console, path, path)
    first = await send_once(console, path, once, hidden)
    assert first.status == 200
    # Another language would lose the secret; to leave is asked first.
    assert "data-language" not in first.text
    assert "<body data-unkept" in first.text
    assert first.text.count("data-kept") == 1

    second = await send_once(console, path, once, hidden)

    assert second.status == 412
    _, _, told = second.text.partition('id="changed"')
    assert "Ya se había creado, quizás con este mismo formulario." in told
    assert once.remedy in told
    assert "Alguien lo cambió" not in told
    assert f'href="{path}"' not in told.partition("</div>")[0]


def test_every_secret_that_is_shown_once_has_its_own_sentence() -> None:
    """Each form of `FORMS` that makes one, and no other, is sent twice above."""
    assert {name for name, form in FORMS.items() if form.once} == ONCE.keys()


async def test_secret_that_was_not_made_is_not_said_to_be(console: Console) -> None:
    """A colleague changed something else: the sentence is that of other forms."""
    here = await webhook(console)
    hidden = await opened(console, f"{here}/rotate", f"{here}/rotate")
    other = await colleague(console)
    form = {"url": "https://app.example/otro", "label": "cobros"}
    assert (await other.post(f"{here}/change", **form)).status == 303

    late = await console.post(f"{here}/rotate", **{**hidden, "how": "overlap"})

    assert late.status == 412
    assert "Alguien lo cambió" in late.text
    assert "Ya se había creado" not in late.text


async def test_own_password_by_a_form_sent_twice(console: Console) -> None:
    """The second form does not blame somebody else."""
    path = "/admin/account/password"
    hidden = await opened(console, path, path)
    chosen = "otra clave bien larga"
    typed = {"present": PASSWORD, "password": chosen, "again": chosen}
    first = await console.post(path, **{**hidden, **typed, "code": console.code()})
    assert first.status == 303

    second = await console.post(path, **{**hidden, **typed, "code": console.code()})

    assert second.status == 412
    assert "quizás por este mismo formulario" in second.text
    assert "Alguien lo cambió" not in second.text
    assert '<a href="/admin/account">Ir a mi cuenta</a>' in second.text


async def test_page_without_the_form_does_not_ask_to_send_it(console: Console) -> None:
    """Nothing is left to be sent; the page leads to whom or what it is about."""
    person = await console.person(enrolled=False)
    link = f"/admin/people/{person}/link"
    renewal = await opened(console, link, link)
    await console.enrol(person, ANA_DIGITS, "Ana María Núñez")
    number = await console.request(ANA_DIGITS)
    cancel = f"/admin/requests/{number}/cancel"
    cancelling = await opened(console, cancel, cancel)
    async with console.services.store.write() as transaction:
        assert await RequestStore(transaction).move(
            RequestId(number), RequestState.PENDING, RequestState.REJECTED, "No."
        )

    for path, hidden in ((link, renewal), (cancel, cancelling)):
        late = await console.post(path, **hidden)

        assert late.status == 412
        assert "ya no corresponde" in late.text
        assert "volvé a enviarlo" not in late.text
        assert f'href="{path}"' not in late.text
        subject = path.rpartition("/")[0]
        assert (await console.get(subject)).status == 200
        assert f'data-kind="primary" href="{subject}"' in late.text


async def test_faulty_form_keeps_the_version_that_it_was_opened_with(
    console: Console,
) -> None:
    """A form that is corrected is as old as before: it does not undo a change."""
    mine = await opened(console, f"{HERE}/name", f"{HERE}/name")
    faulty = await console.post(f"{HERE}/name", **{**mine, "name": ""})
    assert faulty.status == 422
    other = await colleague(console)
    assert (await other.post(f"{HERE}/name", name="Suya")).status == 303
    (form,) = [
        f for f in FormReader(f"{HERE}/name", faulty.text).forms if "name" in f.shown
    ]

    answer = await console.post(f"{HERE}/name", **{**form.hidden, "name": "Mía"})

    assert answer.status == 412
    assert (await acme(console)).name == "Suya"


async def test_decision_about_something_else_is_not_carried_out(
    console: Console,
) -> None:
    """A key that was rotated meanwhile is not revoked by the page from before."""
    key = await key_id(console)
    path = f"{HERE}/keys/{key}/revoke"
    mine = await opened(console, path, path)
    other = await colleague(console)
    rotated = await other.post(f"{HERE}/keys/{key}/rotate", overlap="86400")
    assert rotated.status == 200

    late = await console.post(path, **mine)

    assert late.status == 412
    assert "Funciona hasta" in late.text
    assert f'<a href="{HERE}/keys">Ir a las claves de API</a>' in late.text
    assert all(k.revoked is None for k in await console.front.integrators.keys("acme"))
    (form,) = [f for f in FormReader(path, late.text).forms if f.path == path]
    assert (await console.post(path, **form.hidden)).status == 303


async def test_secrets_count_and_are_not_shown(console: Console) -> None:
    """A password that a colleague set meanwhile is told of, without what it is."""
    await colleague(console)
    path = "/admin/administrators/eva/password"
    mine = await opened(console, path, path)
    view = await console.services.console_users.get("eva")
    chosen = "otra clave bien larga"
    await console.services.console_users.set_password(
        "operator", view.user.name, chosen
    )

    typed = {"password": "una tercera clave larga", "again": "una tercera clave larga"}
    late = await console.post(path, **{**mine, **typed, "code": console.code()})

    assert late.status == 412
    assert "Se cambió la contraseña" in late.text
    assert "argon2" not in late.text
    assert typed["password"] not in late.text


@pytest.mark.storage
async def test_administrators_at_once_lose_no_change(each_console: Console) -> None:
    """Each adds a letter to a name as often as it takes: all letters are there."""
    console, path = each_console, f"{HERE}/name"
    other = await colleague(console)
    await console.post(path, name=".")
    refused: list[int] = []

    async def edits(browser: Console, letter: str) -> None:
        for _ in range(ROUNDS):
            while True:
                hidden = await opened(browser, path, path)
                (shown,) = _values((await browser.get(path)).text)
                name = shown + letter
                answer = await browser.post(path, **{**hidden, "name": name})
                if answer.status == 303:
                    break
                assert answer.status == 412, answer
                refused.append(answer.status)

    await asyncio.gather(edits(console, "a"), edits(other, "b"))

    name = (await acme(console)).name
    assert sorted(name) == sorted("." + "a" * ROUNDS + "b" * ROUNDS), refused


def _values(page: str) -> list[str]:
    """Return the values of the field for a name."""
    _, _, rest = page.partition('id="f-name"')
    _, _, value = rest.partition('value="')
    return [value.partition('"')[0]]


@pytest.mark.storage
async def test_of_two_at_once_one_is_refused(each_console: Console) -> None:
    """Both checks may find the version in force; one transaction comes second."""
    console = each_console
    other = await colleague(console)
    for turn in range(ROUNDS):
        mine = await opened(console, f"{HERE}/name", f"{HERE}/name")
        theirs = await opened(other, f"{HERE}/name", f"{HERE}/name")
        answers = await asyncio.gather(
            console.post(f"{HERE}/name", **{**mine, "name": f"Mía {turn}"}),
            other.post(f"{HERE}/name", **{**theirs, "name": f"Suya {turn}"}),
        )

        assert sorted(answer.status for answer in answers) == [303, 412]
        won = "Mía" if answers[0].status == 303 else "Suya"
        assert (await acme(console)).name == f"{won} {turn}"


@pytest.mark.storage
async def test_commands_at_once_lose_no_change(each_console: Console) -> None:
    """Use cases without a version each change what they were given, and keep the rest.

    Commands of operators and backends' calls without `If-Match` are such.
    """
    integrators = each_console.front.integrators
    view = await acme(each_console)
    made = await each_console.front.webhooks.create(
        "operator", view.id, "https://app.example/rubrica", "cobros"
    )
    hook = made.endpoint.id
    change = each_console.front.webhooks.change
    for turn in range(ROUNDS):
        name, url = f"ACME {turn}", f"https://app.example/{turn}"
        await asyncio.gather(
            integrators.change("operator", "acme", name=name),
            integrators.set_mail("operator", "acme", reminder_days=(turn + 1,)),
            integrators.change("operator", "acme", event_prefix=f"p{turn}"),
            change("operator", view.id, hook, EndpointChange(url=url)),
            change("operator", view.id, hook, EndpointChange(label=f"l{turn}")),
        )

        found = await acme(each_console)
        assert (found.name, found.reminder_days) == (name, (turn + 1,))
        assert found.event_prefix == f"p{turn}"
        endpoint = await each_console.front.webhooks.get(view.id, hook)
        assert (endpoint.url, endpoint.label) == (url, f"l{turn}")


@pytest.mark.storage
@pytest.mark.parametrize("subject", list(Subject))
async def test_each_subject_is_locked_and_read(
    each_console: Console, subject: Subject
) -> None:
    """Of what does not exist there are no values: its use case says so."""
    async with each_console.services.store.write() as transaction:
        edits = EditStore(transaction)
        await edits.lock(subject, "7")
        values = await edits.values(subject, "7")

    assert not any(values.values())


async def test_precondition_is_checked_in_the_transaction_of_the_change(
    console: Console,
) -> None:
    """A change between the early check and the transaction is noticed."""
    (values,) = await console.front.edits.read((Subject.INTEGRATOR, "acme"))
    assert values["name"] == "ACME S.A."
    version = (await console.version(f"{HERE}/name"))[VERSION]
    precondition = Precondition(Subject.INTEGRATOR, "acme", ("name",), version)
    await console.front.edits.check(precondition)
    await console.front.integrators.change("operator", "acme", name="Suya")

    with pytest.raises(ApplianceError) as refused, demanding(precondition):
        await console.front.integrators.change("operator", "acme", name="Mía")

    assert refused.value.code is ErrorCode.CHANGED_MEANWHILE
    assert (await acme(console)).name == "Suya"


@pytest.mark.parametrize("number", ["9" * 19, "9" * 5000, "0", "7"])
async def test_request_of_any_number_is_absent(console: Console, number: str) -> None:
    """A number that no request can have is looked for in no table."""
    path = f"/admin/requests/{number}/cancel"

    assert (await console.get(path)).status == 404
    assert (await console.post(path)).status == 404


@pytest.mark.storage
@pytest.mark.parametrize(
    "path",
    [
        "/admin/people/%00/disable",
        "/admin/integrators/%00/name",
        "/admin/integrators/acme/webhooks/%00/change",
        "/admin/administrators/%00/disable",
        "/admin/trust/%00/remove",
    ],
)
async def test_nul_in_an_address_is_absent(each_console: Console, path: str) -> None:
    """No database is asked for a text that it cannot have."""
    assert (await each_console.get(path)).status == 404
    assert (await each_console.post(path)).status == 404
