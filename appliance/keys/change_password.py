"""Another signing password, typed by its owner, without the HSM.

What is in `outer` of each key is opened with the old password's unlock key and
locked with the new one's. An activation that is on its way to a worker carries
the old unlock key, so that a change is refused while there is one: it is over in
seconds, and the change can be repeated.

Source: design §4 "Password".
"""

from appliance.domain.audit.record import AuditEvent
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.people.new_password import check_new, own_words
from appliance.domain.ports import Sealer
from appliance.domain.requests.request import Signer
from appliance.domain.vocab import EventKind
from appliance.keys.password_attempts import PasswordAttempts, RightPassword
from appliance.keys.password_hashing import Passwords
from appliance.keys.rewrap_user_keys import is_in_use, relock
from appliance.keys.signing_password import NewSecret, SigningPasswords
from appliance.people.login_store import LoginSecretStore
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.system.background import Shielded


class PasswordChange:
    """The use case of `POST /credenciales/clave`.

    Args:
        store: the record.
        attempts: checks the old password, and counts wrong ones.
        signing_passwords: derives from the new one.
        login_passwords: which a signing password must not be.
        installation: the setting of that name.
        shielded: where what is begun goes on.
        sealer: opens e-mail addresses.
    """

    def __init__(
        self,
        store: Database,
        attempts: PasswordAttempts,
        signing_passwords: SigningPasswords,
        login_passwords: Passwords,
        installation: str,
        shielded: Shielded,
        sealer: Sealer,
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._signing_passwords = signing_passwords
        self._login_passwords = login_passwords
        self._installation = installation
        self._shielded = shielded
        self._sealer = sealer

    async def change(self, signer: Signer, old: bytes, new: bytes) -> None:
        """Change a signing password; all or nothing.

        A caller that leaves once the old one is being checked changes nothing in
        what comes of it.

        Args:
            signer: whose, as the front established it.
            old: as `normalize` gives it.
            new: as `normalize` gives it.

        Raises:
            FieldInvalidError: `nueva` is the old one, the login password, or weak
                (`appliance.domain.people.new_password`).
            ApplianceError: those of `PasswordAttempts.check`; `IN_PROGRESS` while
                something is being signed or a key is being made;
                `ACTIVATION_INVALID` for a key that the right password does not open.
        """
        if old == new:
            raise FieldInvalidError("nueva", "another one than before")
        async with self._store.read() as transaction:
            await self._refuse_weak(transaction, signer, new)
            await self._refuse_in_use(transaction, signer)
        await self._shielded.run(self._change(signer, old, new))

    async def _change(self, signer: Signer, old: bytes, new: bytes) -> None:
        right = await self._attempts.check(signer, None, old)
        # Asked only of who knows the old one: nobody can guess at the login
        # password by it.
        refusal = await self._is_login_password(signer, new)
        made = await self._signing_passwords.derive_new(new, tuple(right.found.unlock))
        failure: ApplianceError | None = None
        async with self._store.write() as transaction:
            try:
                await self._store_new(transaction, signer, right, made, refuse=refusal)
            except ApplianceError as exc:
                # The slot is closed as right; nothing else was written.
                failure = exc
        if failure is not None:
            raise failure

    async def _store_new(
        self,
        transaction: Transaction,
        signer: Signer,
        right: RightPassword,
        made: NewSecret,
        *,
        refuse: bool,
    ) -> None:
        """Close the slot and keep the new password, or refuse before writing it.

        Raises:
            FieldInvalidError: see `change`.
            ApplianceError: see `change`.
        """
        unlock = await self._attempts.passed(transaction, signer, right)
        if refuse:
            raise FieldInvalidError("nueva", "not the login password")
        secret = await PersonStore(transaction).signing_secret(signer.person)
        if secret is not None and secret.locked_at is not None:
            raise ApplianceError(ErrorCode.SIGN_LOCKED)
        if unlock is None or not await relock(
            transaction, signer.person, self._installation, unlock, made
        ):
            raise ApplianceError(ErrorCode.IN_PROGRESS)
        transaction.audit.add(AuditEvent(EventKind.SIGN_PASSWORD_CHANGED, signer.actor))

    async def _refuse_in_use(self, transaction: Transaction, signer: Signer) -> None:
        """Refuse before the password is looked at, where it can be known.

        Raises:
            ApplianceError: `IN_PROGRESS`.
        """
        if await is_in_use(transaction, signer.person):
            raise ApplianceError(ErrorCode.IN_PROGRESS)

    async def _refuse_weak(
        self, transaction: Transaction, signer: Signer, new: bytes
    ) -> None:
        """Refuse a weak password of a person.

        Raises:
            FieldInvalidError: `nueva`.
        """
        people = PersonStore(transaction)
        person, contact = (
            await people.get(signer.person),
            await people.contact(signer.person),
        )
        own: tuple[str, ...] = ()
        if person is not None and contact is not None:
            email = self._sealer.open(
                contact.email_sealed,
                table="person",
                row=person.id,
                column="email_sealed",
            )
            own = own_words(person, email.decode())
        check_new(new.decode(), "nueva", own)

    async def _is_login_password(self, signer: Signer, new: bytes) -> bool:
        async with self._store.read() as transaction:
            login = await LoginSecretStore(transaction).secret(signer.person)
        return login is not None and await self._login_passwords.verify(login.phc, new)
