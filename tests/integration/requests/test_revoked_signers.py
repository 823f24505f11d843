"""Requests whose signer cannot sign any more: administrators and integrators see it."""

import pytest
from sqlalchemy import update

from appliance.api.wire.processes import _obstacle
from appliance.console.health_store import ConsoleHealthStore
from appliance.database.tables import credential, signature_request
from appliance.domain.requests.process import SignerShown
from appliance.domain.requests.signer_bars import Bar
from appliance.domain.vocab import CredentialState, RequestState
from appliance.requests.process_store import ProcessStore
from tests.support.installation.record import CoreFixture

_REVOKED = frozenset({CredentialState.REVOKING, CredentialState.REVOKED})
_WAITING = frozenset({RequestState.PENDING, RequestState.WAITING})


async def shown(core: CoreFixture, request: int) -> tuple[SignerShown, int]:
    """The signer as the integrator sees it, and how many such signers there are."""
    async with core.store.read() as transaction:
        signers = await ProcessStore(transaction).signers([request])  # type: ignore[list-item]
        count = await ConsoleHealthStore(transaction).revoked_signers()
    return next(iter(signers.values())), count


@pytest.mark.parametrize("state", CredentialState)
async def test_revoked_signer_of_a_waiting_request(
    core: CoreFixture, state: CredentialState
) -> None:
    """From the moment that the revocation is asked for; a superseded one is none."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person)
    assert await shown(core, request) == (SignerShown(signer.person, None, None), 0)

    async with core.store.write() as transaction:
        await transaction.connection.execute(
            update(credential).values(state=state.value)
        )

    told, count = await shown(core, request)
    assert (told.bar is Bar.REVOKED, count) == (
        state in _REVOKED,
        int(state in _REVOKED),
    )
    view = await core.view(request)
    is_active = state is CredentialState.ACTIVE
    assert _obstacle(view, told) == (None if is_active else "CERTIFICATE_NOT_USABLE")


@pytest.mark.parametrize("state", RequestState)
async def test_only_what_waits_is_kept_by_it(
    core: CoreFixture, state: RequestState
) -> None:
    """Nothing is said of a request that is signed, or over."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person)
    async with core.store.write() as transaction:
        revoked = CredentialState.REVOKED.value
        await transaction.connection.execute(update(credential).values(state=revoked))
        await transaction.connection.execute(
            update(signature_request).values(state=state.value)
        )

    told, count = await shown(core, request)

    waits = state in _WAITING
    assert count == int(waits)
    view = await core.view(request)
    assert (_obstacle(view, told) is not None) is waits
