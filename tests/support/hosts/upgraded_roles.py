"""An installation with many credentials that is upgraded while people sign.

    upgrade = Upgrade.prepared(roles, earlier, people)
    upgrade.under_load()

Two hosts have fronts: one of them, which also signs, is upgraded role by role. The
other one stays at the release before.
"""

import hashlib
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
from sqlalchemy import Table, select, update

from appliance.bootstrap import open_core
from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.domain.clock import SystemClock
from appliance.domain.vocab import StatementFault
from appliance.settings import load_settings
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import until
from tests.support.hosts.earlier_tree import Tree
from tests.support.hosts.many_credentials import Enrolled
from tests.support.hosts.steady_load import SteadyLoad
from tests.support.hosts.tree_roles import (
    API,
    CHORES,
    SANDBOX,
    SIGNING,
    TreeHost,
    TreeRoles,
)
from tests.support.patience import CALL_S
from tests.support.processes.event_loops import run_apart
from tests.support.processes.plain_http import NO_TLS

NOW: Final = Tree.present()
_OTHER: Final = "front-b"
_FEW: Final = 10
"""Signatures before, between and after the steps of an upgrade."""
_REQUESTS: Final = 60
"""Of each signer of the load."""
_AT_ONCE: Final = 4
_GENEROUS: Final = {"commands_per_minute": 1_000_000, "lists_per_minute": 1_000_000}


class _AnyPlace:
    """Where this process is."""

    def enter(self) -> None:
        """Stay."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that waits for somebody."""

    person: Enrolled
    request: int
    token: str


@dataclass(slots=True)
class Upgrade:
    """An installation before, during and after its upgrade.

    Args:
        own: the host that signs, and is upgraded.
        other: a host with a front alone, which stays at the release before.
        earlier: the tree of the release before.
        people: everybody.
    """

    own: TreeHost
    other: TreeHost
    earlier: Tree
    people: Sequence[Enrolled]
    planted: dict[str, StatementFault] = field(default_factory=dict)
    """Faults of credentials that were altered, by id."""
    migration_s: float = 0.0
    load: SteadyLoad = field(init=False)

    @classmethod
    def prepared(
        cls, roles: TreeRoles, earlier: Tree, people: Sequence[Enrolled]
    ) -> "Upgrade":
        """Start both hosts with the release before."""
        own = roles.host(signing=_GENEROUS)
        other = roles.host(_OTHER, signing=_GENEROUS)
        own.start(earlier, SANDBOX, *SIGNING, CHORES, API)
        other.start(earlier, SANDBOX, API)
        made = cls(own, other, earlier, people)
        (own.site.folder / "asked.pdf").write_bytes(pdfs.one_page())
        return made

    @property
    def fronts(self) -> Sequence[TreeHost]:
        """Both; callers turn to the other one where one fails."""
        return (self.own, self.other)

    @property
    def client(self) -> _AnyPlace:
        """Where callers are."""
        return _AnyPlace()

    # -- what somebody alters who can write to the database --------------------------

    def plant(self) -> None:
        """Alter three people's rows, each in another way."""
        resident = next(each for each in self.people if each.is_resident)
        victim, one, two, three = self.people[-4:]
        held = self._row(tables.credential, victim.credential)
        self._alter(
            tables.credential,
            one.credential,
            certificate=held.certificate,
            chain=held.chain,
        )
        theirs = self._row(tables.credential, resident.credential)
        self._alter(
            tables.credential,
            two.credential,
            key_mode=theirs.key_mode,
            key_token=theirs.key_token,
            cka_id=theirs.cka_id,
        )
        self._alter(tables.person, three.id, name=victim.name)
        self.planted = {
            one.credential: StatementFault.KEY,
            two.credential: StatementFault.RESIDENT,
            three.credential: StatementFault.NAME,
        }

    def _row(self, table: Table, name: str) -> Any:
        async def read() -> Any:
            engines = open_engines(load_settings(self.own.settings))
            async with engines.reader.connect() as connection:
                query = select(table).where(table.c.id == name)
                found = (await connection.execute(query)).one()
            await engines.dispose()
            return found

        return run_apart(read())

    def _alter(self, table: Table, row: str, **values: Any) -> None:
        async def change() -> None:
            engines = open_engines(load_settings(self.own.settings))
            async with engines.writer.begin() as connection:
                statement = update(table).where(table.c.id == row).values(values)
                assert (await connection.execute(statement)).rowcount == 1
            await engines.dispose()

        run_apart(change())

    # -- the upgrade -----------------------------------------------------------------

    def under_load(self) -> None:
        """Migrate, make the host's key, and replace its roles, while people sign."""
        # Of each way to enrol; none whose row was altered.
        signers = [*self.people[:2], *self.people[4:7], *self.people[-6:-4]]
        asked = self.ask(self.earlier, signers * _REQUESTS)
        self.load = SteadyLoad(
            self,
            [
                (
                    each,
                    next(one.token for one in asked if one.person == each),
                    [one.request for one in asked if one.person == each],
                )
                for each in signers
            ],
        )
        with self.load.calling():
            self._signed_meanwhile()
            begun = time.monotonic()
            self.own.site.run(NOW, "migrate")
            self.migration_s = time.monotonic() - begun
            self._signed_meanwhile()
            self.own.site.run(NOW, "hsm", "host-key", "--here")
            for role in (CHORES, *SIGNING, SANDBOX, API):
                self.own.replace(NOW, role)
            self._signed_meanwhile()

    def _signed_meanwhile(self) -> None:
        """Wait until some more have their document, whoever is running."""
        before = len(self.load.wishes)
        until(lambda: len(self.load.wishes) >= before + _FEW, CALL_S)

    # -- what people do --------------------------------------------------------------

    def ask(self, tree: Tree, people: Iterable[Enrolled]) -> list[Asked]:
        """Have a document wait for each, once for each time that they are named."""
        by_id = {each.id: each for each in self.people}
        file = str(self.own.site.folder / "asked.pdf")
        orders = [{"id": one.id, "cuil": one.cuil, "file": file} for one in people]
        return [
            Asked(by_id[one["id"]], one["request"], one["token"])
            for one in self.own.run(tree, "ask", orders)
        ]

    def sign(self, host: TreeHost, asked: Asked) -> httpx.Response:
        """Call firmar at a host's front, and again while it is answered 202."""
        body = {
            "solicitudId": asked.request,
            "password": asked.person.signing_password,
        }
        headers = {"Authorization": f"Bearer {asked.token}"}
        url = f"{host.api}/solicitudes/firmar"
        with httpx.Client(verify=NO_TLS, timeout=CALL_S, headers=headers) as client:
            while (answer := client.post(url, json=body)).status_code == 202:
                pass
        return answer

    def sign_all(self, host: TreeHost, asked: Sequence[Asked]) -> list[httpx.Response]:
        """Call firmar for each, a few at a time."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(lambda one: self.sign(host, one), asked))

    def document(self, asked: Asked) -> bytes:
        """What was signed, by the front of the upgraded host."""
        url = f"{self.own.api}/solicitudes/{asked.request}/documento"
        headers = {"Authorization": f"Bearer {asked.token}"}
        answer = httpx.get(url, headers=headers, timeout=CALL_S, verify=NO_TLS)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.content

    def sample(self, count: int, seed: int) -> list[Enrolled]:
        """Draw people whose rows nobody altered."""
        sound = [one for one in self.people if one.credential not in self.planted]
        drawn = {one.id: hashlib.sha256(f"{seed} {one.id}".encode()) for one in sound}
        return sorted(sound, key=lambda one: drawn[one.id].digest())[:count]

    def audited(self, request: int) -> dict[str, dict[str, Any]]:
        """The last event of each kind about a request."""

        async def read() -> dict[str, dict[str, Any]]:
            settings = load_settings(self.own.settings)
            async with (
                open_core(settings, SystemClock(), "operator") as core,
                core.store.read() as transaction,
            ):
                rows = await transaction.audit.of_request(request)
            return {row.event.event.value: dict(row.event.detail) for row in rows}

        return run_apart(read())
