"""A person whose key is locked with their signing password, and a front for them.

services = await locked_key_services(core)
await services.sign(request)          # sealed to `services.host`, not yet claimed
await services.change.change(services.signer, PASSWORD, b"otra clave de firma")
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Final

from appliance.domain.errors import ErrorCode
from appliance.domain.ids import ActivationId, CredentialId, RequestId, new_id
from appliance.domain.keys.hsm_keys import KeyMode, WrapMethod
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.people.identity import Credential, SigningSecret
from appliance.domain.requests.request import SignCommand, Signer
from appliance.domain.signing_command import GivenParameters
from appliance.keys.change_password import PasswordChange
from appliance.keys.credential_store import CredentialStore
from appliance.keys.key_encryption import lock_outer, open_outer
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.password_hashing import HashSlots, Passwords
from appliance.keys.signing_password import SigningPasswords
from appliance.people.person_store import PersonStore
from appliance.pki.issuance import Issuance
from appliance.settings import SigningSettings
from appliance.signing.sign import Signing
from appliance.system.background import Shielded
from tests.support.factories.fakes import error_code
from tests.support.factories.signing_host import (
    INSTALLATION,
    SigningHost,
    issuing,
    password_attempts,
    signing_front,
)
from tests.support.installation.record import (
    DATA_KEY,
    PASSWORD,
    CoreFixture,
    new_credential,
)

INNER: Final = b"a private key, wrapped by an HSM"
LOGIN: Final = b"una clave de ingreso"
FIRST, SECOND = b"p" * 32, b"q" * 32
"""Peppers."""


@dataclass
class LockedKeyServices:
    """Services of a face, over one person."""

    core: CoreFixture
    host: SigningHost
    signer: Signer
    attempts: PasswordAttempts
    signing: Signing
    change: PasswordChange
    issuing: Issuance
    passwords: SigningPasswords
    logins: Passwords

    async def sign(
        self, request: RequestId, password: bytes = PASSWORD
    ) -> ActivationId:
        """Call firmar and leave; gives the activation that it made."""
        notified = len(self.core.work_notifier.notified)
        command = SignCommand(request, GivenParameters(), password)
        call = asyncio.create_task(self.signing.sign(command, self.signer))
        heard = asyncio.create_task(self.core.work_notifier.heard(notified + 1))
        await asyncio.wait({call, heard}, return_when=asyncio.FIRST_COMPLETED)
        if call.done():
            heard.cancel()
            call.result()
        call.cancel()
        await asyncio.wait({call})
        return self.core.work_notifier.notified[-1]

    async def request(self) -> RequestId:
        """One more document to sign."""
        return await self.core.add_request(self.signer.person)

    async def code(self, call: Awaitable[object]) -> ErrorCode | None:
        """How a call is refused."""
        return await error_code(call)

    async def secret(self) -> SigningSecret:
        """What is kept of the signing password."""
        async with self.core.store.read() as transaction:
            found = await PersonStore(transaction).signing_secret(self.signer.person)
        assert found is not None
        return found

    async def credential(self) -> Credential:
        """The person's key as it stands."""
        async with self.core.store.read() as transaction:
            found = await CredentialStore(transaction).active(self.signer.person)
        assert found is not None
        return found

    async def opened(
        self, password: bytes = PASSWORD, passwords: SigningPasswords | None = None
    ) -> bytes:
        """What is in `outer`, by the password."""
        credential = await self.credential()
        found = await (passwords or self.passwords).check(
            password, await self.secret(), (credential.id,)
        )
        unlock = found.unlock[credential.id]
        return open_outer(unlock, credential.outer, credential.aad(INSTALLATION))


async def locked_key_services(
    core: CoreFixture, peppers: KeyRing | None = None, cuil: str | None = None
) -> LockedKeyServices:
    """A face whose host is alive, and a person with a wrapped key.

    Args:
        core: the record.
        peppers: of the face; the person's password is kept under the first.
        cuil: theirs, where a CA is to read it.
    """
    slots = HashSlots(1)
    first = SigningPasswords(KeyRing.of(FIRST), slots)
    passwords = SigningPasswords(peppers or KeyRing.of(FIRST), slots)
    logins = Passwords(slots)
    name = CredentialId(new_id())
    made = await first.derive_new(PASSWORD, (name,))
    signer = await core.add_signer(
        made.secret,
        credential=False,
        login_phc=await logins.hash(LOGIN),
        cuil=cuil,
    )
    await add_key(core, signer, name, made.unlock[name])
    host = SigningHost(core.settings.data_dir)
    await host.beat(core.store, core.now)
    limits = SigningSettings(wrong_passwords=3)
    attempts = password_attempts(core.store, passwords, core.clock, limits)
    hosts, shielded = host.hosts(core.store, core.clock), Shielded()
    signing = signing_front(core, host, passwords, limits, shielded)
    change = PasswordChange(
        core.store, attempts, passwords, logins, INSTALLATION, shielded, DATA_KEY
    )
    asks = issuing(core.store, core.clock, hosts, passwords)
    return LockedKeyServices(
        core, host, signer, attempts, signing, change, asks, passwords, logins
    )


async def add_key(
    core: CoreFixture, signer: Signer, name: CredentialId, unlock: bytes
) -> None:
    """A wrapped key, locked with an unlock key."""
    blank = new_credential(
        signer.person,
        id=name,
        key_mode=KeyMode.WRAPPED,
        cka_id=None,
        master=1,
        blob_w=b"a wrapping key, wrapped",
        method_w=WrapMethod.AES_KWP,
        method_k=WrapMethod.AES_KWP,
    )
    outer = lock_outer(unlock, INNER, blank.aad(INSTALLATION))
    async with core.store.write() as transaction:
        await CredentialStore(transaction).add(replace(blank, outer=outer))
