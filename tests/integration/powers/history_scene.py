"""An honest history: a person is invited, enrols, and signs, by processes of all roles.

scene = await Scene.made(core)
request = await scene.sign()
assert await scene.found() == []

What a worker with the HSM does is done by its own transactions; what a front does is
written as a front writes it.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Executable

from appliance.database.engines import open_engines
from appliance.domain.audit.reconciliation import Check, Finding
from appliance.domain.audit.record import AuditEvent
from appliance.domain.ids import CredentialId, PersonId, RequestId, new_id
from appliance.domain.pki.certificates import serial_text
from appliance.domain.requests.levels import Upkeep
from appliance.domain.requests.request import Signer
from appliance.domain.vocab import EventKind, RequestState, SignatureLevel, TaskKind
from appliance.keys.hsm_task_events import task_created
from appliance.keys.key_facts import key_facts
from appliance.reconciliation.reconcile import Reconciliation
from appliance.record.unit_of_work import Database
from appliance.signing.claims import Claims, Publication
from appliance.signing.level_maintenance import UpkeepWork
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from tests.support.factories.held_credential import Held, hold
from tests.support.installation.record import (
    CoreFixture,
    keyed,
    prepared,
    signed_view,
)

SLOT: Final = "signing/h/1"
_E = EventKind


@dataclass
class Scene:
    """A record with a person who signs, and the processes that write in it."""

    core: CoreFixture
    signer: Signer
    stores: dict[str, Database] = field(default_factory=dict)
    held: Held | None = None
    """The newest credential."""

    @classmethod
    async def made(cls, core: CoreFixture) -> "Scene":
        """Invite a person and have them enrol."""
        signer = await core.add_signer(credential=False)
        scene = cls(core, signer)
        await scene.invite()
        await scene.enrol()
        return scene

    async def close(self) -> None:
        """Close the processes' connections."""
        for store in self.stores.values():
            await store.close()

    @property
    def person(self) -> PersonId:
        """Who signs."""
        return self.signer.person

    @property
    def credential(self) -> CredentialId:
        """Their newest one."""
        assert self.held is not None
        return self.held.id

    def store(self, role: str) -> Database:
        """The record as a process of a role has it."""
        if role not in self.stores:
            engines = open_engines(self.core.settings)
            self.stores[role] = Database(engines, self.core.clock, role)
        return self.stores[role]

    async def say(
        self, role: str, kind: EventKind, actor: str = "system", **detail: Any
    ) -> None:
        """Have a process record an event, a second later."""
        self.core.clock.forward(1)
        about = {
            key: detail.pop(key)
            for key in ("request", "activation", "attempt")
            if key in detail
        }
        async with self.store(role).write() as transaction:
            transaction.audit.add(AuditEvent(kind, actor, **about, detail=detail))

    async def execute(self, *statements: Executable) -> None:
        """Change the record as whoever may write to it."""
        async with self.core.store.write() as transaction:
            for statement in statements:
                await transaction.connection.execute(statement)

    # -- people -------------------------------------------------------------------

    async def invite(self) -> None:
        """A registration officer answers for the person."""
        await self.say("admin", _E.PERSON_INVITED, "console:c1", person=self.person)

    async def ask(
        self, kind: TaskKind = TaskKind.ISSUE, role: str = "api", **more: Any
    ) -> str:
        """Have somebody ask for a task; its id."""
        task = new_id()
        await self._ask(task, kind, role, **more)
        return task

    async def _ask(self, task: str, kind: TaskKind, role: str, **more: Any) -> None:
        self.core.clock.forward(1)
        async with self.store(role).write() as transaction:
            transaction.audit.add(
                task_created(
                    task,  # type: ignore[arg-type]  # an id
                    kind,
                    f"person:{self.person}",
                    {"person": self.person, **more},
                )
            )

    async def enrol(self) -> None:
        """The person chooses secrets by the link, and gets a key."""
        task = new_id()
        actor = f"person:{self.person}"
        await self.say("api", _E.PERSON_ENROLLED, actor, person=self.person, task=task)
        await self._ask(task, TaskKind.ISSUE, "api")
        await self.issue(task)

    async def issue(self, task: str) -> None:
        """A worker makes a key, has it certified and commits it."""
        self.core.clock.forward(1)
        cuil = f"20{len(self.stores):09d}"
        self.held = await hold(
            self.core.store, self.person, cuil, self.core.now, id=CredentialId(task)
        )
        await self.say(
            SLOT,
            _E.CREDENTIAL_ISSUED,
            f"worker:{SLOT}",
            attempt=1,
            task=task,
            person=self.person,
            credential=self.held.id,
            spkiSha256=hashlib.sha256(self.held.spki).hexdigest(),
            serial=serial_text(self.held.certificate.serial_number),
        )

    # -- signing ------------------------------------------------------------------

    def worker(self) -> Claims:
        """A signing worker's transactions."""
        return self.core.claiming(SLOT, store=self.store(SLOT))

    async def begin(self, request: RequestId | None = None) -> tuple[RequestId, str]:
        """The person consents to sign: request and activation."""
        self.core.clock.forward(1)
        asked = request or await self.core.add_request(self.person)
        activation = await self.core.begin(self.signer, [asked])
        view = await self.core.view(asked)
        await self.say(
            "api",
            _E.ACTIVATION_CREATED,
            self.signer.actor,
            request=asked,
            activation=activation,
            credential=self.credential,
            documentSha256=view.sha256,
        )
        return asked, activation

    async def use_key(self) -> RequestId:
        """A worker takes what waits, and uses the key for it."""
        worker = self.worker()
        work = await worker.claim_next()
        assert work is not None
        assert work.credential is not None
        (item,) = work.claim.documents
        credential = work.credential
        key = key_facts(credential.spki, credential.certificate)
        ready = prepared(item)
        assert await worker.intend(work.claim, [ready], credential.certificate, key)
        self.core.clock.forward(1)
        assert await worker.record_signatures(work.claim, [keyed(item)], key)
        view = await self.core.view(item.request)
        if view.state is RequestState.IN_PROGRESS:
            made = Publication(keyed(item), signed_view(view))
            assert await worker.publish(work.claim, [made])
        return item.request

    async def sign(self) -> RequestId:
        """Consent, key and publication."""
        request, _ = await self.begin()
        assert await self.use_key() == request
        return request

    async def raise_level(self, request: RequestId) -> None:
        """A worker publishes a later version, as once a server answers again."""
        store, clock = self.store(SLOT), self.core.clock
        integrator = (await self.core.view(request)).integrator
        due = Upkeep(SignatureLevel.B_LT, clock.now())
        async with store.write() as transaction:
            await LevelMaintenanceStore(transaction).add(
                request, integrator, due, clock.now()
            )
        work = UpkeepWork(store, clock, SLOT)
        claim = await work.claim_next()
        assert claim is not None
        before = await work.newest(claim)
        assert await work.raised(
            *(claim, before, "cd" * 32, before.size_bytes + 1),
            SignatureLevel.B_LT,
            None,
        )

    # -- what is found ------------------------------------------------------------

    async def findings(self) -> list[Finding]:
        """What the comparison of record and audit finds."""
        work = Reconciliation(self.core.store)
        return [finding async for finding in work.findings()]

    async def found(self) -> list[Check]:
        """The same, by kind alone."""
        return sorted({finding.check for finding in await self.findings()})
