"""A face's part of signing, over real storage, the worker's part played by hand.

async with open_front(core) as front:
    request = await front.new_request()
    outcome = await front.signed(front.command(request))
"""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from appliance.documents.document_bytes import sha256_of
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ActivationId, RequestId
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.people.identity import SigningSecret
from appliance.domain.requests.request import SignCommand, Signer, SignOutcome
from appliance.domain.signing.activation import Claim
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.keys.password_attempt_store import PasswordAttemptStore
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords
from appliance.keys.worker_store import WorkerStore
from appliance.people.person_store import PersonStore
from appliance.record.idempotency_store import IdempotencyStore
from appliance.settings import SigningSettings
from appliance.signing.claims import Publication
from appliance.signing.reexamination import Reexamination
from appliance.signing.sign import Signing
from appliance.system.background import Shielded
from tests.support.factories.signing_host import SigningHost, signing_front
from tests.support.installation.record import (
    CERTIFICATE,
    PASSWORD,
    CoreFixture,
    keyed,
    password_secret,
    prepared,
    signed_view,
)

WRONG = b"otra palabra"
RED = SignParameters(font_color="RED")


@dataclass
class SigningFront:
    """A face's part of signing, and a worker to be told what to do."""

    core: CoreFixture
    signing: Signing
    hashing: HashSlots
    signer: Signer
    secret: SigningSecret
    host: SigningHost
    shielded: Shielded
    _tasks: list[asyncio.Task[SignOutcome]] = field(default_factory=list)

    def command(
        self,
        request: RequestId,
        params: SignParameters | None = None,
        password: bytes = PASSWORD,
        *,
        if_match: str | None = None,
        key: str | None = None,
    ) -> SignCommand:
        """A call of firmar."""
        given = GivenParameters.all_of(params or SignParameters())
        return SignCommand(request, given, password, if_match, key)

    async def new_request(self, **changes: object) -> RequestId:
        """A request of this front's person."""
        return await self.core.add_request(self.signer.person, **changes)

    async def sign(
        self, command: SignCommand, document: bytes | None = None
    ) -> SignOutcome:
        """Sign, to the end."""
        sent = None if document is None else await sha256_of(document)
        return await self.signing.sign(command, self.signer, sent)

    async def code(
        self, command: SignCommand, document: bytes | None = None
    ) -> ErrorCode | None:
        """How a call is refused."""
        try:
            await self.sign(command, document)
        except ApplianceError as exc:
            return exc.code
        return None

    def start(self, command: SignCommand) -> asyncio.Task[SignOutcome]:
        """Begin a call and go on."""
        return asyncio.create_task(self.sign(command))

    async def notified(self, times: int = 1) -> ActivationId:
        """Wait until it was notified that often; the last activation."""
        async with asyncio.timeout(60):
            await self.core.work_notifier.heard(times)
        return self.core.work_notifier.notified[-1]

    async def awaited(self, calls: int = 1) -> None:
        """Wait until so many calls wait for news at the same time."""
        async with asyncio.timeout(60):
            await self.core.completion_notifier.awaited(calls)

    @asynccontextmanager
    async def busy_hashing(self) -> AsyncIterator[None]:
        """Have the one core that hashes be busy for the time of the block."""
        begun, over = threading.Event(), threading.Event()

        def hold() -> None:
            begun.set()
            over.wait()

        hashing = asyncio.create_task(self.hashing.run(hold))
        await asyncio.to_thread(begun.wait)
        try:
            yield
        finally:
            over.set()
            await hashing

    async def work_off(self) -> None:
        """A worker claims what there is and signs it."""
        while await sign_next(self.core) is not None:
            pass

    async def hand_back(self, code: ErrorCode) -> None:
        """A worker claims what there is and gives it back."""
        worker = self.core.claiming()
        work = await worker.claim_next()
        assert work is not None
        await worker.returned(work.claim, list(work.claim.documents), code)

    async def signed(self, command: SignCommand) -> SignOutcome:
        """Sign, a worker doing its part."""
        before = len(self.core.work_notifier.notified)
        call = self.start(command)
        await self.notified(before + 1)
        await self.work_off()
        return await call

    async def checking(self) -> None:
        """Wait until a check of the password is going on."""
        running = 0
        while not running:
            await asyncio.sleep(0.01)
            async with self.core.store.read() as transaction:
                running = await PasswordAttemptStore(transaction).running(
                    self.signer.person, self.core.now - timedelta(seconds=60)
                )

    async def remembered(self, key: str) -> None:
        """Wait until an idempotency key stands for something."""
        found = None
        async with asyncio.timeout(60):
            while found is None:
                await asyncio.sleep(0.01)
                async with self.core.store.read() as transaction:
                    found = await IdempotencyStore(transaction).remembered(
                        self.signer.person, key
                    )

    async def counted(self) -> int:
        """Wrong passwords that were counted."""
        async with self.core.store.read() as transaction:
            secret = await PersonStore(transaction).signing_secret(self.signer.person)
        assert secret is not None
        return secret.counted

    async def activations(self) -> list[str]:
        """Every activation that was ever made, by the audit."""
        return [
            str(row.event.activation)
            for row in await self.core.audit()
            if row.event.event.value == "activation.created"
        ]


async def beat(
    core: CoreFixture, slot: str = "signing/h/1", hsm: str = "ready"
) -> None:
    """A worker says that it is alive."""
    async with core.store.write() as transaction:
        await WorkerStore(transaction).beat(WorkerStatus(slot, "p", core.now, hsm, ""))


async def sign_next(core: CoreFixture, refuse: int | None = None) -> Claim | None:
    """A worker claims the oldest activation and signs it; None where there is none.

    Args:
        core: the record.
        refuse: the item that the worker gives back instead, if any.
    """
    worker = core.claiming()
    work = await worker.claim_next()
    if work is None:
        return None
    for item in work.claim.documents:
        if item.seq == refuse:
            await worker.returned(work.claim, [item], ErrorCode.HSM_UNAVAILABLE)
            continue
        await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
        await worker.record_signatures(work.claim, [keyed(item)])
        view = await core.view(item.request)
        await worker.publish(work.claim, [Publication(item, signed_view(view))])
    await worker.announce(work.claim)
    return work.claim


async def front_of(
    core: CoreFixture,
    hashing: HashSlots,
    again: Reexamination | None = None,
    /,
    **settings: float,
) -> SigningFront:
    """With a person who can sign, and a worker alive.

    Args:
        core: the record.
        hashing: where passwords are checked.
        again: examines documents again; see `signing_front`.
        settings: of signing.
    """
    passwords = SigningPasswords(KeyRing.of(b"p" * 32), hashing)
    secret = await password_secret(passwords)
    signer = await core.add_signer(secret)
    limits = SigningSettings.model_validate({"wait_s": 60, **settings})
    shielded = Shielded()
    host = SigningHost(core.settings.data_dir)
    await host.beat(core.store, core.now)
    signing = signing_front(core, host, passwords, limits, shielded, again)
    return SigningFront(core, signing, hashing, signer, secret, host, shielded)


@asynccontextmanager
async def open_front(
    core: CoreFixture, again: Reexamination | None = None, /, **settings: float
) -> AsyncIterator[SigningFront]:
    """The same, and what it began is waited for at the end."""
    front = await front_of(core, HashSlots(1), again, **settings)
    try:
        yield front
    finally:
        await front.shielded.close()
