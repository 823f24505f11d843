"""A writer of the database at a running appliance: rows forged, and what is told.

    forged = key_by_rows(appliance, victim, unlock)
    consent_by_rows(appliance, forged, request, unlock)
    assert Check.CERTIFIED_UNASKED in unexplained(appliance, person=victim.id)

The writer has rows and public keys alone: no password, no pepper and no PIN.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Row, Table, insert

from appliance.bootstrap import ServiceRegistry
from appliance.bootstrap.hosts import open_belief
from appliance.database import tables
from appliance.domain.audit.reconciliation import Check
from appliance.domain.ids import (
    ActivationId,
    CredentialId,
    RequestId,
    TaskId,
    new_id,
)
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from appliance.domain.signing.activation import (
    Activation,
    ActivationDocument,
    ActivationKey,
)
from appliance.domain.signing.consent import ConsentSigner, consent_of
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import EventKind, TaskKind, TaskState, VouchedBy
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_tasks import issue_binding
from appliance.keys.key_encryption import seal_to_each
from appliance.keys.signing_hosts import SigningHosts
from appliance.people.person_store import PersonStore
from appliance.requests.request_store import RequestStore
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.consent_seals import seal_consent
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.faults.fault_injection import until
from tests.support.faults.theft import read_rows, write
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer

DATABASES: Final = ("sqlite", "postgresql")
_FACTORS: Final = ("pwd", "otp", "sign-pwd")


@contextmanager
def appliance_on(
    database: str, server: PostgresServer, **options: str
) -> Iterator[Appliance]:
    """An appliance on one kind of database.

    Args:
        database: of `DATABASES`.
        server: of PostgreSQL.
        options: of `Appliance.made`.
    """
    with short_folder() as folder:
        if database == "sqlite":
            with Appliance.made(folder, **options) as made:
                yield made
            return
        name = server.create_database()
        url = server.url(name)
        with Appliance.made(folder, database=url, **options) as made:
            yield made
        server.drop_database(name)


# -- reading ---------------------------------------------------------------------------


def row_of(appliance: Appliance, table: Table, **values: object) -> Row[Any]:
    """The one row of a table with those values."""
    (found,) = rows_of(appliance, table, **values)
    return found


def rows_of(appliance: Appliance, table: Table, **values: object) -> list[Row[Any]]:
    """All rows of a table with those values."""
    return [
        row
        for row in read_rows(appliance, table)
        if all(getattr(row, name) == value for name, value in values.items())
    ]


def state_of(appliance: Appliance, request: int) -> str:
    """State of a request, as the record has it."""
    return str(row_of(appliance, tables.signature_request, id=request).state)


def audited(appliance: Appliance, kind: EventKind, request: int) -> list[Any]:
    """Details of what was recorded of a kind about a request, oldest first."""
    rows = rows_of(appliance, tables.audit_event, event=kind.value, request=request)
    return [row.detail for row in sorted(rows, key=lambda row: row.at)]


def unexplained(appliance: Appliance, **about: object) -> set[Check]:
    """Checks of `audit reconcile` that have a finding about something.

    Args:
        appliance: whose record and audit are compared.
        about: members of the finding, such as `request=7`; none: any finding.
    """
    done = appliance.rubrica("audit", "reconcile", "--json")
    *findings, _ = map(json.loads, done.stdout.splitlines())
    assert done.returncode == (1 if findings else 0), done.stderr
    return {Check(each["check"]) for each in findings if about.items() <= each.items()}


def chains_are_whole(appliance: Appliance) -> bool:
    """Return what `audit verify --chains-only` says."""
    done = appliance.rubrica("audit", "verify", "--chains-only")
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode == 0


# -- a key and a consent by rows alone -------------------------------------------------


@dataclass(frozen=True, slots=True)
class ForgedKey:
    """A credential that a worker made for a row."""

    person: TestPerson
    task: TaskId
    unlock: bytes
    """What its `outer` opens by: of the writer's choice."""

    @property
    def id(self) -> CredentialId:
        """A task's credential has its id."""
        return CredentialId(self.task)


def key_by_rows(appliance: Appliance, victim: TestPerson, unlock: bytes) -> ForgedKey:
    """Have a worker make a key in a person's name, by rows alone.

    Args:
        appliance: whose worker it is.
        victim: whose name the certificate has.
        unlock: 32 bytes.
    """
    task = TaskId(new_id())
    binding = issue_binding(task, victim.id, VouchedBy.OFFICER, KeyAlgorithm.RSA_2048)
    (seal, *_) = seal_to_each(_hosts(appliance), unlock, binding.info())
    given = {
        "person": victim.id,
        "vouchedBy": binding.vouched_by.value,
        "algorithm": binding.algorithm.value,
    }
    write(
        appliance,
        insert(tables.hsm_task).values(
            id=task,
            kind=TaskKind.ISSUE.value,
            person=victim.id,
            input=given,
            state=TaskState.WAITING.value,
            created=datetime.now(UTC),
            fence=0,
            reason="",
        ),
        insert(tables.task_seal).values(
            task=task, host=seal.host, epoch=seal.epoch, sealed=seal.sealed
        ),
    )
    ends = {TaskState.DONE.value, TaskState.FAILED.value}
    until(lambda: row_of(appliance, tables.hsm_task, id=task).state in ends)
    ended = row_of(appliance, tables.hsm_task, id=task)
    assert ended.state == TaskState.DONE.value, ended.reason
    return ForgedKey(victim, task, unlock)


def consent_by_rows(
    appliance: Appliance, key: ForgedKey, request: int, code: str | None = None
) -> ActivationId:
    """Write a consent that nobody gave, sealed to each host as a front would.

    Args:
        appliance: whose workers take it.
        key: that is to sign.
        request: of that key's person, pending.
        code: of the signature's page.
    """
    name = ActivationId(new_id())
    now = datetime.now(UTC)

    async def forge(front: ServiceRegistry) -> None:
        hosts = SigningHosts(front.core.store, open_belief(front.settings), front.clock)
        live = await hosts.live()
        profile = front.settings.signature_profile
        async with front.core.store.write() as transaction:
            person = await PersonStore(transaction).get(key.person.id)
            credential = await CredentialStore(transaction).get(key.id)
            view = await RequestStore(transaction).get(RequestId(request))
            assert person is not None
            assert credential is not None
            assert view is not None
            params = SignParameters()
            fingerprint = params.sha256(view.id)
            document = ActivationDocument(
                0, view.id, view.sha256, params, fingerprint, code=code
            )
            activation = Activation(
                id=name,
                person=person.id,
                credential=key.id,
                documents=(document,),
                factors=_FACTORS,
                created=now,
                claim_by=now + timedelta(minutes=4),
                profile=profile.to_json(),
            )
            consent = consent_of(
                activation,
                ConsentSigner.of(person, credential),
                {0: view},
                lambda each: profile.narrowed(each.wishes),
            )
            seals = seal_consent(live, key.unlock, consent)
            assert await ActivationStore(transaction).begin(activation, seals) == 1

    appliance.do(forge)
    return name


def _hosts(appliance: Appliance) -> tuple[ActivationKey, ...]:
    """Activation keys of the signing hosts, as anybody reads them."""

    async def read(front: ServiceRegistry) -> tuple[ActivationKey, ...]:
        belief = open_belief(front.settings)
        return await SigningHosts(front.core.store, belief, front.clock).live()

    return appliance.do(read)
