"""Persons, integrators and credentials on both databases."""

import pytest

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, PersonId, new_id
from appliance.domain.people.identity import Integrator, NewPerson, Person
from appliance.domain.vocab import CredentialState, PersonState, VouchedBy
from appliance.keys.credential_store import CredentialStore
from appliance.people.person_store import PersonStore
from tests.support.installation.record import CoreFixture, cheap_secret

pytestmark = pytest.mark.storage


def somebody(cuil: str, email_index: str) -> NewPerson:
    """A person to be recorded."""
    person = Person(PersonId(new_id()), cuil, "Ñandú Öz", PersonState.ACTIVE, "en")
    return NewPerson(
        person, b"\0\xff", email_index, VouchedBy.OFFICER, "phc", b"\1", cheap_secret()
    )


async def test_person_found_by_each_name(core: CoreFixture) -> None:
    """Id, CUIL and the HMAC of the address lead to the same person."""
    new = somebody("20267565393", "e" * 64)
    async with core.store.write() as transaction:
        await PersonStore(transaction).add(new)

    async with core.store.read() as transaction:
        found = [
            await PersonStore(transaction).get(new.person.id),
            await PersonStore(transaction).by_cuil("20267565393"),
            await PersonStore(transaction).by_email_index(["e" * 64]),
        ]
        nobody = await PersonStore(transaction).by_cuil("20055361682")
        secret = await PersonStore(transaction).signing_secret(new.person.id)

    assert found == [new.person] * 3
    assert nobody is None
    assert secret == new.signing


@pytest.mark.parametrize(
    ("cuil", "email"), [("20267565393", "f" * 64), ("20055361682", "e" * 64)]
)
async def test_person_refused_when_cuil_or_email_is_taken(
    core: CoreFixture, cuil: str, email: str
) -> None:
    """A CUIL and an address belong to one person, and a refusal leaves no trace."""
    async with core.store.write() as transaction:
        await PersonStore(transaction).add(somebody("20267565393", "e" * 64))

    with pytest.raises(ApplianceError) as caught:
        async with core.store.write() as transaction:
            await PersonStore(transaction).add(somebody(cuil, email))

    assert caught.value.code is ErrorCode.ALREADY_EXISTS


async def test_integrator_code_is_taken_once(core: CoreFixture) -> None:
    """A code names one integrator."""
    integrator = await core.add_integrator("acme")

    with pytest.raises(ApplianceError) as caught:
        await core.add_integrator("acme")

    assert caught.value.code is ErrorCode.ALREADY_EXISTS
    async with core.store.read() as transaction:
        assert await PersonStore(transaction).integrator("acme") == Integrator(
            IntegratorId(integrator), "acme", "Acme"
        )
        assert await PersonStore(transaction).integrator("none") is None


async def test_credential_gives_way_to_its_successor(core: CoreFixture) -> None:
    """A person signs with their newest credential; the one before is kept."""
    signer = await core.add_signer()
    async with core.store.read() as transaction:
        first = await CredentialStore(transaction).active(signer.person)
    assert first is not None

    second = await core.add_credential(signer.person, chain=(b"a", b"", b"bc"))

    async with core.store.read() as transaction:
        active = await CredentialStore(transaction).active(signer.person)
        earlier = await CredentialStore(transaction).get(first.id)
    assert active is not None
    assert (active.id, active.chain) == (second, (b"a", b"", b"bc"))
    assert earlier is not None
    assert earlier.state is CredentialState.SUPERSEDED
