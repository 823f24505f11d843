"""Code in a role: an installation where it has its own user of the database, or none.

    with Installed.made("postgresql") as installed:
        installed.run(Role.EMBED, work)

Code in a role writes what its user may, with the secrets and files that the role has.
On SQLite, which knows no users, it writes every table. The roles of the appliance
itself run as the tables' owner.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

from sqlalchemy import Executable
from sqlalchemy.exc import DBAPIError

from appliance.bootstrap import ServiceRegistry, open_front
from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.database.rights import OWNER, Role
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import RequestId
from appliance.domain.people.identity import Credential, SigningSecret
from appliance.domain.requests.request import Signer
from appliance.domain.requests.signing_batch import SignBatch
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import EventKind, RequestState
from appliance.keys.credential_store import CredentialStore
from appliance.keys.password_attempts import PasswordAttempts, RightPassword
from appliance.keys.signing_password import PasswordCheck, UnlockKeys
from appliance.record.unit_of_work import Transaction
from appliance.settings import Settings
from appliance.signing.sign import Signing, SigningContext, _Found
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.separate_users import SeparateUsers
from tests.support.faults.fault_injection import until
from tests.support.faults.theft import read_rows
from tests.support.processes.event_loops import run_apart
from tests.support.processes.scratch import short_folder

Result = TypeVar("Result")

DATABASES: Final = ("sqlite", "postgresql")
FRONTS: Final = (Role.API, Role.EMBED)
ROLES: Final = (*FRONTS, Role.ADMIN, Role.CHORES)
REFUSALS: Final = ("permission denied", "row-level security policy")
"""Words of PostgreSQL where a right is missing."""
_SIGNING: Final = "workers = 1\nwait_s = 0.1"


@dataclass(frozen=True)
class Installed:
    """An appliance, and a user of its database for each role."""

    appliance: Appliance
    cluster: SeparateUsers | None
    """None: SQLite."""

    @classmethod
    @contextmanager
    def made(cls, database: str, **options: str) -> Iterator["Installed"]:
        """Set one up on `sqlite` or `postgresql`, with one signing worker."""
        options = {"signing": _SIGNING, **options}
        with ExitStack() as stack:
            folder = stack.enter_context(short_folder())
            cluster = None
            if database != "sqlite":
                cluster = stack.enter_context(SeparateUsers.made())
                options["database"] = cluster.url(OWNER)
            made = stack.enter_context(Appliance.made(folder, **options))
            yield cls(made, cluster)

    @property
    def has_users(self) -> bool:
        """True on PostgreSQL."""
        return self.cluster is not None

    def settings(self, role: Role) -> Settings:
        """The settings as a role reads them: with its user of the database."""
        read = self.appliance.settings
        if self.cluster is None:
            return read
        own = {"url": self.cluster.url(role.value)}
        return read.model_copy(
            update={"database": read.database.model_copy(update=own)}
        )

    def run(
        self, role: Role, work: Callable[[ServiceRegistry], Awaitable[Result]]
    ) -> Result:
        """Run code in a role, over what the project's own code makes easy for it."""

        async def run() -> Result:
            name = role.value.removeprefix("rubrica-")
            async with open_front(self.settings(role), SystemClock(), name) as front:
                return await work(front)

        return run_apart(run())

    def attempt(
        self, role: Role, work: Callable[[ServiceRegistry], Awaitable[object]]
    ) -> bool:
        """Run code in a role; False if the database refused it a right."""
        before = self._refusals()
        try:
            self.run(role, work)
        except ApplianceError:
            if self._refusals() == before:
                raise
            return False
        return True

    def _refusals(self) -> int:
        if self.cluster is None:
            return 0
        log = self.cluster.log.read_text("utf-8")
        return sum(log.count(words) for words in REFUSALS)

    def write(self, role: Role, *statements: Executable, keep: bool = True) -> bool:
        """Write as a role's user, in one transaction; False if that was refused.

        Args:
            role: whose user.
            statements: what is written.
            keep: False: the change is undone.
        """

        async def run() -> bool:
            engines = open_engines(self.settings(role))
            try:
                async with engines.writer.connect() as connection:
                    for statement in statements:
                        await connection.execute(statement)
                    if keep:
                        await connection.commit()
            except DBAPIError as exc:
                if not any(words in str(exc) for words in REFUSALS):
                    raise
                return False
            finally:
                await engines.dispose()
            return True

        return run_apart(run())

    # -- what became of it ----------------------------------------------------------

    def state(self, request: int) -> str:
        """How a request stands."""
        rows = read_rows(self.appliance, tables.signature_request)
        return str(next(row.state for row in rows if row.id == request))

    def ended(self, request: int) -> str:
        """The state of a request once no worker signs it."""
        until(lambda: self.state(request) != RequestState.IN_PROGRESS.value)
        return self.state(request)

    def audited(self, kind: EventKind, request: int) -> list[dict[str, Any]]:
        """What was recorded of a kind about a request, oldest first."""
        rows = read_rows(self.appliance, tables.audit_event)
        own = [row for row in rows if (row.event, row.request) == (kind.value, request)]
        return [row.detail for row in sorted(own, key=lambda row: row.at)]

    def findings(self) -> list[str]:
        """Lines of `rubrica audit verify`, one a finding; an honest record has none."""
        done = self.appliance.rubrica("audit", "verify")
        assert done.returncode in {0, 1}, done.stderr
        return [] if done.returncode == 0 else done.stdout.splitlines()


# -- a front whose code is somebody else's ------------------------------------------


@dataclass
class ReplacedCheck:
    """A password check that takes any password and gives these unlock keys."""

    unlock: UnlockKeys

    async def check(self, *_: object) -> RightPassword:
        """Find a password right."""
        nothing = SigningSecret(b"", {}, 0, "")
        return RightPassword("", nothing, PasswordCheck(right=True, verifier_sha256=""))

    async def passed(self, *_: object) -> UnlockKeys:
        """Give the keys."""
        return self.unlock


@dataclass
class ReplacedSigning(Signing):
    """Signing with another check of passwords, and a credential of one's choice."""

    origin: Signing
    unlock: UnlockKeys
    credential: Credential | None = field(default=None)
    """None: the signer's own."""

    def __post_init__(self) -> None:
        """Take everything else as it is."""
        vars(self).update(vars(self.origin))
        self._attempts = cast("PasswordAttempts", ReplacedCheck(self.unlock))

    async def _context(
        self, transaction: Transaction, signer: Signer, found: _Found
    ) -> SigningContext:
        context = await super()._context(transaction, signer, found)
        if self.credential is None:
            return context
        return replace(context, credential=self.credential)


async def credential_of(front: ServiceRegistry, person: TestPerson) -> Credential:
    """Somebody's key in force."""
    async with front.core.store.read() as transaction:
        found = await CredentialStore(transaction).active(person.id)
    assert found is not None
    return found


def forged_consent(
    person: TestPerson,
    requests: Sequence[int],
    unlock: UnlockKeys,
    credential: Credential | None = None,
) -> Callable[[ServiceRegistry], Awaitable[None]]:
    """Code of a front that records somebody's consent to what nobody consented to.

    Args:
        person: in whose name.
        requests: to be signed.
        unlock: keys that are sealed for it, by credential.
        credential: that is to sign, in the place of the person's own.
    """
    ids = tuple(RequestId(each) for each in requests)
    signer = Signer(person.id, f"person:{person.id}", ("pwd", "otp"), datetime.now(UTC))

    async def work(front: ServiceRegistry) -> None:
        signing = ReplacedSigning(front.signing, unlock, credential)
        command = SignBatch(ids, GivenParameters(), b"")
        async with signing.begin(ids, command, signer) as begun:
            assert begun.refused == {}

    return work
