"""Power: who writes to the database of two signing hosts puts a consent's rows back.

Each host has a journal of its own, and no way to know what the other one did. So a
consent that was sealed to both opens once on each, for the same document; the audit
tells of it. A third time it opens nowhere.

Source: docs/keys.md "The journal of a host".
"""

from collections.abc import Iterator

import psutil
import pytest

from appliance.database import tables
from appliance.domain.audit.reconciliation import Check
from appliance.domain.signing.hsm_tasks import slot_host
from appliance.domain.vocab import EventKind, RequestState
from appliance.secrets.own_host import own_name
from tests.functional.powers.test_k13_one_use import Kept, consented
from tests.functional.powers.writer_scene import (
    appliance_on,
    chains_are_whole,
    rows_of,
    unexplained,
)
from tests.support.appliance.appliance import Appliance
from tests.support.faults.fault_injection import held, standing_still, until
from tests.support.faults.theft import write
from tests.support.hosts.second_signing_host import (
    SECOND,
    can_name_hosts,
    second_signing_host,
)
from tests.support.services.postgres import PostgresServer

pytestmark = pytest.mark.skipif(
    not can_name_hosts(), reason="it takes root to name a host"
)


@pytest.fixture(scope="module")
def appliance(postgres_server: PostgresServer) -> Iterator[Appliance]:
    """An appliance with one signing worker, whose calls do not wait."""
    signing = "workers = 1\nwait_s = 0.1"
    with appliance_on("postgresql", postgres_server, signing=signing) as made:
        yield made


@pytest.fixture(scope="module")
def second(appliance: Appliance) -> Iterator[psutil.Process]:
    """The signing worker of another host."""
    with second_signing_host(appliance) as worker:
        yield worker


def users(kept: Kept) -> list[str]:
    """Hosts that used the key for the consent, in their order."""
    rows = rows_of(
        kept.appliance,
        tables.audit_event,
        event=EventKind.KEY_USED.value,
        activation=kept.activation.id,
    )
    actors = [row.actor for row in sorted(rows, key=lambda row: row.at)]
    return [slot_host(actor.removeprefix("worker:")) for actor in actors]


def test_consent_opens_once_on_each_host_and_is_told_of(
    appliance: Appliance, second: psutil.Process
) -> None:
    """The second host signs; rows put back, the first one signs the same again."""
    person = appliance.new_person()
    with held(appliance):
        with standing_still(appliance, [second]):
            kept = consented(appliance, person)
        assert {seal.host for seal in kept.seals} == {own_name(), SECOND}
        until(kept.over)
    assert kept.state == RequestState.SIGNED.value
    assert unexplained(appliance, request=kept.request) == set()

    with standing_still(appliance, [second]):
        write(appliance, *kept.put_back())
        until(kept.over)
    assert kept.state == RequestState.SIGNED.value
    assert users(kept) == [SECOND, own_name()]
    (one, other) = kept.audited(EventKind.KEY_USED)
    assert one["item"] == other["item"] == 0
    assert chains_are_whole(appliance)
    assert Check.USED_TWICE in unexplained(appliance, request=kept.request)

    # Neither of them opens it again.
    write(appliance, *kept.put_back())
    until(kept.over)
    assert kept.state == RequestState.PENDING.value
    back = kept.audited(EventKind.REQUEST_RETURNED)[-1]
    assert (back["reason"], back["layer"]) == ("ACTIVATION_INVALID", "journal")
    assert len(users(kept)) == 2
