"""Test mode, on both databases: who is made up, who sees them, and none in PROD."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pyotp
import pytest

from appliance.api.wire import signers_for_tests as wire
from appliance.database import tables
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import PersonId
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.people.identity import Person, cuils_of
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.process import NamedBy, ProcessNote
from appliance.domain.vocab import (
    Environment,
    PersonState,
    TaskKind,
    TaskState,
    VouchedBy,
)
from appliance.identity.signers_for_tests_in_prod import SignersForTestsInProd
from appliance.integration.requests.order import NamedSigner, ProcessOrder
from appliance.integration.signers import VouchOrder
from appliance.integration.test_mode import signers
from appliance.integration.test_mode.signers import (
    MARK,
    SignerForTestsOrder,
    SignersForTests,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.people.person_store import PersonStore
from tests.support.documents import pdfs
from tests.support.installation.api import ApiServices, create_api
from tests.support.installation.installation import Installation
from tests.support.installation.record import new_credential
from worker.signing.document_signer import DocumentSigner

ORDER = SignerForTestsOrder()
ADDRESS = "192.0.2.1"


@pytest.fixture
async def api_services(tmp_path: Path, each_url: str) -> AsyncIterator[ApiServices]:
    """Storage and services, on each database."""
    async with Installation(tmp_path, database={"url": each_url}).api() as made:
        yield made


async def asking(
    services: ApiServices, code: str, *, may_vouch: bool = False
) -> IntegratorCaller:
    """A new integrator, as its backend asks."""
    integrators = services.integrators
    await integrators.create("operator", code, code)
    if may_vouch:
        await integrators.change("operator", code, may_vouch=True)
    key = await integrators.create_key("operator", code, "k", scopes=tuple(ApiKeyScope))
    row = await services.api_keys.demand(key.secret, None, ADDRESS)
    return IntegratorCaller(row.integrator, row.key.id)


def in_prod(services: ApiServices) -> ApiServices:
    """The same installation, once it is PROD."""
    made = services.signers_for_tests
    return replace(
        services,
        settings=services.settings.model_copy(update={"environment": Environment.PROD}),
        signers_for_tests=SignersForTests(
            services.store,
            made._people,
            services.sealer,
            made._tasks,
            services.clock,
            Environment.PROD,
            services.issuing,
        ),
    )


async def code_of(call: Callable[[], Any]) -> ErrorCode:
    """The error that a call ends with."""
    with pytest.raises(ApplianceError) as caught:
        await call()
    return caught.value.code


async def test_made_up_signer_has_all_that_signing_in_takes(
    api_services: ApiServices,
) -> None:
    """Of nothing but a call; the secrets are told again, and stand nowhere in clear."""
    acme = await asking(api_services, "acme")
    made = await api_services.signers_for_tests.create(acme, ORDER)

    challenge = await api_services.login.login(
        made.person.cuil, made.password.encode(), ADDRESS
    )
    code = pyotp.TOTP(made.totp).at(api_services.clock.now())
    await api_services.login.otp(challenge.login_token, code, ADDRESS)

    assert made.person.name.startswith(f"{MARK} · ")
    assert made.email == f"{made.person.cuil}@prueba.invalid"
    again = await api_services.signers_for_tests.get(
        acme.integrator.id, made.person.cuil
    )
    assert replace(again, state=made.state) == made
    assert again.state.state is PersonState.ACTIVE
    async with api_services.store.read() as transaction:
        for table in (tables.test_signer, tables.person, tables.login_secret):
            rows = (await transaction.connection.execute(table.select())).all()
            for secret in (made.password, made.sign_password, made.totp):
                assert secret not in repr(rows)


async def test_what_is_asked_for_is_as_asked(api_services: ApiServices) -> None:
    """Name, CUIL, address and language; a name that the mark leaves no room for not."""
    acme = await asking(api_services, "acme")
    cuil = cuils_of("98000001")[0]
    asked = SignerForTestsOrder("Ana Ruiz", cuil, "ana@a.prueba.invalid", "en")
    made = await api_services.signers_for_tests.create(acme, asked)

    assert made.person.name == f"{MARK} · Ana Ruiz"
    assert (made.person.cuil, made.email) == (asked.cuil, asked.email)
    assert made.person.locale == "en"
    again = await code_of(lambda: api_services.signers_for_tests.create(acme, asked))
    assert again is ErrorCode.ALREADY_EXISTS
    for name in ("x" * 43, "7", "a\u202eb", "Ana 🙂", "משה"):
        with pytest.raises(FieldInvalidError, match="nombre"):
            await api_services.signers_for_tests.create(acme, SignerForTestsOrder(name))


@pytest.mark.parametrize(
    ("field", "order"),
    [
        ("cuil", SignerForTestsOrder(cuil="20055361682")),
        ("email", SignerForTestsOrder(email="ana@example.org")),
        ("email", SignerForTestsOrder(email="ana@prueba.invalid.example")),
        ("email", SignerForTestsOrder(email="ana@xprueba.invalid")),
    ],
)
async def test_nobody_real_is_kept_out_by_a_test_signer(
    api_services: ApiServices, field: str, order: SignerForTestsOrder
) -> None:
    """CUIL and address are of the ranges that nobody real has."""
    acme = await asking(api_services, "acme")

    with pytest.raises(FieldInvalidError, match=field):
        await api_services.signers_for_tests.create(acme, order)

    assert await api_services.signers_for_tests.page(acme.integrator.id, None, 1) == []


async def test_others_see_nobody(api_services: ApiServices) -> None:
    """No state, no request, no vouch: as of somebody who is not there."""
    acme = await asking(api_services, "acme")
    other = await asking(api_services, "other", may_vouch=True)
    made = await api_services.signers_for_tests.create(acme, ORDER)
    cuil, signers = made.person.cuil, api_services.backend_signers

    def order(by: NamedBy, value: str) -> ProcessOrder:
        return ProcessOrder(
            "a.pdf",
            cast("DocumentBytes", pdfs.one_page()),
            (NamedSigner(by, value),),
            ProcessNote(),
        )

    for by, value in (
        (NamedBy.CUIL, cuil),
        (NamedBy.EMAIL, made.email),
        (NamedBy.ID, made.person.id),
    ):
        wanted = order(by, value)
        refused = await code_of(
            partial(api_services.backend_orders.create, other, wanted)
        )
        assert refused is ErrorCode.PERSON_NOT_FOUND
        await api_services.backend_orders.create(acme, wanted)
    word = VouchOrder(
        cuil, "A", "a@example.org", "DNI", "M", datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert (await signers.state(other.integrator.id, cuil)).state is None
    assert (await signers.state(acme.integrator.id, cuil)).state is PersonState.ACTIVE
    vouched = await code_of(lambda: signers.vouch(other, word))
    assert vouched is ErrorCode.PERSON_NOT_FOUND
    for call in (
        lambda: api_services.signers_for_tests.get(other.integrator.id, cuil),
        lambda: api_services.signers_for_tests.acting(other, cuil),
        lambda: api_services.signers_for_tests.remove(other, cuil),
    ):
        assert await code_of(call) is ErrorCode.PERSON_NOT_FOUND
    assert await api_services.signers_for_tests.page(other.integrator.id, None, 9) == []


async def test_integrator_has_so_many_and_no_more(
    api_services: ApiServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have their own; one that is removed makes room, and is gone."""
    monkeypatch.setattr(signers, "SIGNERS_AT_MOST", 2)
    mode = api_services.signers_for_tests
    acme, other = [await asking(api_services, name) for name in ("acme", "other")]
    first, second = [await mode.create(acme, ORDER) for _ in range(2)]

    assert (
        await code_of(lambda: mode.create(acme, ORDER))
        is ErrorCode.TEST_SIGNERS_TOO_MANY
    )
    await mode.create(other, ORDER)
    await mode.remove(acme, first.person.cuil)
    third = await mode.create(acme, ORDER)

    whose = acme.integrator.id
    newest = await mode.page(whose, None, 1)
    after = (newest[0].created, newest[0].person.id)
    assert {each.person.id for each in await mode.page(whose, None, 9)} == {
        second.person.id,
        third.person.id,
    }
    assert len(await mode.page(whose, after, 9)) == 1
    gone = first.person.cuil
    assert await code_of(lambda: mode.get(whose, gone)) is ErrorCode.PERSON_NOT_FOUND
    found = await api_services.backend_signers.state(whose, gone)
    assert found.state is None
    refused = await code_of(
        lambda: api_services.login.login(gone, first.password.encode(), ADDRESS)
    )
    assert refused is ErrorCode.LOGIN_FAILED


AGAIN: Final = SignerForTestsOrder(
    "Ana Ruiz", cuils_of("98000001")[0], "ana@a.prueba.invalid", "en"
)


async def _have_key(services: ApiServices, person: PersonId) -> None:
    """Give a person a key that lasts, as the signing worker would."""
    async with services.store.write() as transaction:
        await CredentialStore(transaction).add(new_credential(person))


async def test_removed_signer_comes_back_as_they_were(
    api_services: ApiServices,
) -> None:
    """By CUIL, by address, or by both, as often as a test suite runs."""
    mode, acme = api_services.signers_for_tests, await asking(api_services, "acme")
    made = await mode.create(acme, AGAIN)
    await _have_key(api_services, made.person.id)
    by_cuil = SignerForTestsOrder(cuil=AGAIN.cuil)
    by_email = SignerForTestsOrder(email=" ANA@a.prueba.invalid")

    for order in (AGAIN, by_cuil, by_email):
        await mode.remove(acme, made.person.cuil)
        back = await mode.create(acme, order)
        assert replace(back, state=made.state) == made
        assert back.state.state is PersonState.ACTIVE
        assert await code_of(lambda: mode.create(acme, AGAIN)) is (
            ErrorCode.ALREADY_EXISTS
        )

    await api_services.login.login(made.person.cuil, made.password.encode(), ADDRESS)


def test_language_that_is_left_out_is_left_as_it_was() -> None:
    """A body without `idioma` asks for none, though a new signer has Spanish."""
    assert wire.order({"cuil": str(AGAIN.cuil)}).locale is None
    assert wire.order({"idioma": "es"}).locale == "es"


async def test_removed_signer_is_nobody_elses(api_services: ApiServices) -> None:
    """Nor do they come back under another name, address or language."""
    mode = api_services.signers_for_tests
    acme, other = [await asking(api_services, name) for name in ("acme", "other")]
    made = await mode.create(acme, AGAIN)
    await mode.remove(acme, made.person.cuil)

    for whose, order in (
        (other, AGAIN),
        (acme, replace(AGAIN, name="Ana Paz")),
        (acme, replace(AGAIN, email="eva@prueba.invalid")),
        (acme, replace(AGAIN, locale="es")),
        (acme, replace(AGAIN, cuil=cuils_of("98000002")[0])),
    ):
        refused = await code_of(partial(mode.create, whose, order))
        assert refused is ErrorCode.ALREADY_EXISTS, order
    assert await mode.page(acme.integrator.id, None, 9) == []


async def test_removed_signer_who_comes_back_can_sign(
    api_services: ApiServices,
) -> None:
    """Without a lock, and with another key where the last one is over."""
    mode, acme = api_services.signers_for_tests, await asking(api_services, "acme")
    made = await mode.create(acme, AGAIN)
    person = made.person.id
    async with api_services.store.write() as transaction:
        await PersonStore(transaction).set_counted(person, 10, api_services.clock.now())
        failed = tables.hsm_task.update().values(state=TaskState.FAILED.value)
        await transaction.connection.execute(failed)
    await mode.remove(acme, made.person.cuil)

    await mode.create(acme, AGAIN)

    async with api_services.store.read() as transaction:
        secret = await PersonStore(transaction).signing_secret(person)
        asked = await HsmTaskStore(transaction).open_for(person, TaskKind.ISSUE)
    assert secret is not None
    assert (secret.counted, secret.locked_at) == (0, None)
    assert asked


async def test_signers_who_come_back_are_no_more_than_others(
    api_services: ApiServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two calls at once one brings them back; beyond the bound none does."""
    mode, acme = api_services.signers_for_tests, await asking(api_services, "acme")
    made = await mode.create(acme, AGAIN)
    await _have_key(api_services, made.person.id)
    await mode.remove(acme, made.person.cuil)

    done = await asyncio.gather(
        *(mode.create(acme, AGAIN) for _ in range(3)), return_exceptions=True
    )
    refused = [each.code for each in done if isinstance(each, ApplianceError)]
    assert refused == [ErrorCode.ALREADY_EXISTS] * 2

    await mode.remove(acme, made.person.cuil)
    monkeypatch.setattr(signers, "SIGNERS_AT_MOST", 0)
    full = await code_of(lambda: mode.create(acme, AGAIN))
    assert full is ErrorCode.TEST_SIGNERS_TOO_MANY


async def test_in_prod_no_address_is_there(api_services: ApiServices) -> None:
    """As one that never was."""
    served = [
        [
            rule.rule
            for rule in create_api(services).url_map.iter_rules()
            if "/test/" in rule.rule
        ]
        for services in (api_services, in_prod(api_services))
    ]
    client = create_api(in_prod(api_services)).test_client()
    answer = await client.post("/api/integration/test/signers", json={})

    assert (bool(served[0]), served[1]) == (True, [])
    assert answer.status_code == 404


async def test_in_prod_the_use_case_refuses(api_services: ApiServices) -> None:
    """Whatever is asked of it, also about somebody of before."""
    acme = await asking(api_services, "acme")
    made = await api_services.signers_for_tests.create(acme, ORDER)
    mode, cuil = in_prod(api_services).signers_for_tests, made.person.cuil
    whose = acme.integrator.id

    for call in (
        lambda: mode.create(acme, ORDER),
        lambda: mode.get(whose, cuil),
        lambda: mode.page(whose, None, 9),
        lambda: mode.acting(acme, cuil),
        lambda: mode.remove(acme, cuil),
    ):
        assert await code_of(call) is ErrorCode.NOT_FOUND


async def test_who_was_made_up_is_disabled_in_prod(api_services: ApiServices) -> None:
    """Whoever enables them; in PREPROD nothing of the kind is done."""
    acme = await asking(api_services, "acme")
    made = await api_services.signers_for_tests.create(acme, ORDER)
    person, _ = await api_services.add_person()
    store = api_services.store

    async def states() -> list[PersonState]:
        async with store.read() as transaction:
            found = [
                await PersonStore(transaction).get(one)
                for one in (made.person.id, person)
            ]
        return [one.state for one in found if one is not None]

    assert await SignersForTestsInProd(store, Environment.PREPROD).disable() == 0
    assert await states() == [PersonState.ACTIVE, PersonState.ACTIVE]
    for _ in range(2):
        assert await SignersForTestsInProd(store, Environment.PROD).disable() == 1
        assert await states() == [PersonState.DISABLED, PersonState.ACTIVE]
        assert await SignersForTestsInProd(store, Environment.PROD).disable() == 0
        refused = await code_of(
            lambda: api_services.login.login(
                made.person.cuil, made.password.encode(), ADDRESS
            )
        )
        assert refused is ErrorCode.LOGIN_FAILED
        async with store.write() as transaction:
            await PersonStore(transaction).move(
                made.person.id, PersonState.DISABLED, PersonState.ACTIVE
            )


@pytest.mark.parametrize("environment", Environment)
async def test_worker_opens_no_key_of_theirs_in_prod(environment: Environment) -> None:
    """Before anything else is looked at, whatever state the person is in."""
    person = Person(cast("Any", "p"), "20055361682", "A", PersonState.ACTIVE, "es")
    now = datetime.now(UTC)
    work = SimpleNamespace(
        person=person,
        credential=new_credential(
            person.id,
            vouched_by=VouchedBy.TEST,
            not_before=now,
            not_after=now + timedelta(days=1),
        ),
        claim=None,
    )
    parts = dict.fromkeys(
        ("claims", "documents", "completion", "levels", "session", "keys", "fonts")
    )
    signer = DocumentSigner(
        **cast("Any", parts),
        clock=SystemClock(),
        installation="x",
        served=cast("Any", None),
        inspections=cast("Any", None),
        statements=cast("Any", None),
        journal=cast("Any", None),
        refuses_tests=environment is Environment.PROD,
    )

    # In PREPROD it goes on to the certificate, which nobody checks here.
    expected = ApplianceError if environment is Environment.PROD else AttributeError
    with pytest.raises(expected) as caught:
        await signer.unlock(cast("Any", work))
    told = getattr(caught.value, "code", None)
    assert told in {None, ErrorCode.CERTIFICATE_NOT_USABLE}
