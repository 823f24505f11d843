"""An installation on hosts of their own: two fronts, two signing hosts, PostgreSQL.

What a writer of the database and a holder of the signing PIN try against one host holds
for each of two, and for both together. A consent is sealed to both, and each host has a
journal of its own: that is the one thing that two hosts allow and one does not.

Source: docs/keys.md "Which hosts a front believes", "The journal of a host".
"""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx
import psutil
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from sqlalchemy import Executable, insert, update

from appliance.database import tables
from appliance.domain.signing.activation import ActivationFormat
from appliance.domain.vocab import EventKind, RequestState
from tests.functional.powers.test_k01_thief_with_the_pin import THIEF, forge, plant
from tests.functional.powers.test_k13_one_use import Kept, kept_rows
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import standing_still, until
from tests.support.faults.theft import read_rows, write
from tests.support.hosts.network import can_make_networks
from tests.support.hosts.several_hosts import HostCluster
from tests.support.patience import CALL_S

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not can_make_networks(), reason="it takes root and iproute2"),
]
HOSTS: Final = ("worker-a", "worker-b")
_ITEM: Final = tables.activation_item
_KEY: Final = tables.activation_key
_PATIENT: Final = {"wait_s": 0.1, "claim_s": 300, "key_s": 300}


@pytest.fixture(scope="module")
def site() -> Iterator[HostCluster]:
    """The installation; its calls do not wait."""
    with HostCluster.made(**_PATIENT) as made:
        yield made


@pytest.fixture(scope="module")
def victim(site: HostCluster) -> TestPerson:
    """Somebody who signs."""
    return site.operator.new_person("Ana Ruiz")


@contextmanager
def still(site: HostCluster, *names: str) -> Iterator[None]:
    """Have the signing workers of some hosts stand still."""
    with standing_still(site.operator, [_signing(site, name) for name in names]):
        yield


def _signing(site: HostCluster, name: str) -> psutil.Process:
    """The one signing worker of a host."""
    (host,) = [each for each in site.workers if each.host.name == name]
    return psutil.Process(host.pid_of("signing"))


def other(name: str) -> str:
    """The other signing host."""
    (found,) = [each for each in HOSTS if each != name]
    return found


def consented(site: HostCluster, person: TestPerson, front: int = 0) -> Kept:
    """Have somebody consent by a front while no worker goes on."""
    request = site.operator.new_request(person, pdfs.one_page())
    answer = consent(site, person, request, front)
    assert answer.status_code == 202, answer.text
    return kept_rows(site.operator, request)


def consent(
    site: HostCluster, person: TestPerson, request: int, front: int
) -> httpx.Response:
    """Call firmar from the clients' host."""
    url = f"{site.fronts[front].api}/solicitudes/firmar"
    bearer = {"Authorization": f"Bearer {site.operator.bearer(person)}"}
    body = {"solicitudId": request, "password": person.signing_password}
    return site.client.within(
        lambda: httpx.post(url, json=body, headers=bearer, timeout=CALL_S)
    )


def hosts_of(kept: Kept) -> dict[str, bytes]:
    """Hosts that a consent was sealed to, and the activation key of each."""
    publics = {
        (row.host, row.epoch): row.public for row in read_rows(kept.appliance, _KEY)
    }
    return {seal.host: publics[seal.host, seal.epoch] for seal in kept.seals}


# -- foreign hosts -------------------------------------------------------------------


@pytest.mark.parametrize("front", [0, 1])
def test_foreign_host_is_believed_by_no_front(
    site: HostCluster, victim: TestPerson, front: int
) -> None:
    """With the stolen PIN and a host key of the thief's; both true hosts count."""
    forged = forge(site.operator, f"{THIEF}-{front}", ActivationFormat.WHOLE)
    plant(site.operator, forged)

    with still(site, *HOSTS):
        sealed = hosts_of(consented(site, victim, front))

    assert set(sealed) == set(HOSTS)
    assert forged.public not in sealed.values()


@pytest.mark.parametrize("host", HOSTS)
def test_key_in_the_name_of_one_host_leaves_the_other_alone(
    site: HostCluster, victim: TestPerson, host: str
) -> None:
    """Whoever overwrites a host's keys takes it away, and gets nothing for it."""
    mine = X25519PrivateKey.generate().public_key().public_bytes_raw()
    ours = _KEY.c.host == host
    true = [row for row in read_rows(site.operator, _KEY) if row.host == host]
    with still(site, *HOSTS):
        write(site.operator, update(_KEY).where(ours).values(public=mine))
        try:
            kept = consented(site, victim)
            sealed = hosts_of(kept)
        finally:
            write(site.operator, *(_as_it_was(row) for row in true))

    assert set(sealed) == {other(host)}
    assert mine not in sealed.values()
    until(kept.over)
    assert kept.state == RequestState.SIGNED.value


def _as_it_was(row: Any) -> Executable:
    return (
        update(_KEY)
        .where((_KEY.c.host == row.host) & (_KEY.c.epoch == row.epoch))
        .values(public=row.public)
    )


# -- swaps ---------------------------------------------------------------------------

SWAPS: Final = ("document", "parameters", "code", "an extra document")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("swap", SWAPS)
def test_swap_is_refused_on_each_host(
    site: HostCluster, victim: TestPerson, host: str, swap: str
) -> None:
    """The other host stands still: this one decides alone, and opens nothing."""
    appliance = site.operator
    with still(site, other(host)):
        with still(site, host):
            kept = consented(site, victim)
            write(appliance, *swapped(appliance, kept, victim, swap))
        until(kept.over)

        assert set(hosts_of(kept)) == set(HOSTS)
        assert kept.state == RequestState.PENDING.value
        assert kept.audited(EventKind.KEY_INTENDED) == []
        back = kept.audited(EventKind.REQUEST_RETURNED)[-1]
        assert (back["reason"], back["layer"]) == ("ACTIVATION_INVALID", "seal")


def swapped(
    appliance: Appliance, kept: Kept, person: TestPerson, swap: str
) -> list[Executable]:
    """Rows that say something else than was consented to."""
    (item,) = kept.items
    mine = update(_ITEM).where(_ITEM.c.activation == item.activation)
    if swap == "parameters":
        return [mine.values(params={**item.params, "page": 2})]
    if swap == "code":
        return [mine.values(code=_new_code())]
    more = appliance.new_request(person, pdfs.one_page("Otro importe"))
    (request,) = [
        row for row in read_rows(appliance, tables.signature_request) if row.id == more
    ]
    (document,) = [
        row
        for row in read_rows(appliance, tables.document)
        if row.id == request.document
    ]
    if swap == "document":
        return [mine.values(document_sha256=document.sha256)]
    added = {
        **item._mapping,
        "seq": 1,
        "request": more,
        "document_sha256": document.sha256,
        "code": _new_code(),
    }
    return [
        insert(_ITEM).values(added),
        update(tables.signature_request)
        .where(tables.signature_request.c.id == more)
        .values(state=RequestState.IN_PROGRESS.value),
    ]


def _new_code() -> str:
    """A verification code that nobody was given."""
    return secrets.token_hex(13).upper()


# -- twice ---------------------------------------------------------------------------


@pytest.mark.parametrize("first", HOSTS)
def test_consent_that_is_put_back_is_used_once_by_each_host(
    site: HostCluster, victim: TestPerson, first: str
) -> None:
    """For the same document, no third time, and the comparison of records tells."""
    appliance = site.operator
    with still(site, other(first)):
        with still(site, first):
            kept = consented(site, victim)
        until(kept.over)
        assert kept.state == RequestState.SIGNED.value
        assert len(kept.audited(EventKind.KEY_USED)) == 1

        # The host that used the key knows it.
        write(appliance, *kept.put_back())
        until(kept.over)
        assert journal_refused(kept)
        assert len(kept.audited(EventKind.KEY_USED)) == 1
        honest = findings(appliance, kept)

    # The other one does not.
    with still(site, first):
        write(appliance, *kept.put_back())
        until(kept.over)
    assert kept.state == RequestState.SIGNED.value
    assert len(kept.audited(EventKind.KEY_USED)) == 2
    intended = kept.audited(EventKind.KEY_INTENDED)
    assert {each["documentSha256"] for each in intended} == {
        item.document_sha256 for item in kept.items
    }
    assert "used_twice" not in honest
    assert "used_twice" in findings(appliance, kept)

    # Nobody is left who does not.
    for rows in ({}, {"fence": 1000, "progress": 1000}):
        write(appliance, *kept.put_back(**rows))
        until(kept.over)
        assert journal_refused(kept)
    assert len(kept.audited(EventKind.KEY_USED)) == 2


def journal_refused(kept: Kept) -> bool:
    """True if the last attempt ended at a journal."""
    back = kept.audited(EventKind.REQUEST_RETURNED)[-1]
    told = (back["reason"], back.get("layer")) == ("ACTIVATION_INVALID", "journal")
    return told and kept.state == RequestState.PENDING.value


def findings(appliance: Appliance, kept: Kept) -> set[str]:
    """What `rubrica audit reconcile` says of the request."""
    done = appliance.rubrica("audit", "reconcile", "--json")
    *lines, counts = map(json.loads, done.stdout.splitlines())
    assert counts["findings"] == len(lines), done.stderr
    return {line["check"] for line in lines if line.get("request") == kept.request}
