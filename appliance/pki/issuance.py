"""Asking the HSM for a person's key and certificate.

The request carries the unlock key of the credential to come, sealed to the
signing hosts: the worker locks the new key with it and forgets it. So a key can
be asked for only where its owner types the signing password.

Source: design §4 "Enrolment", "Password".
"""

from dataclasses import dataclass

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId, TaskId, new_id
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from appliance.domain.people.identity import SigningSecret
from appliance.domain.requests.request import Signer
from appliance.domain.signing.activation import ActivationKey
from appliance.domain.vocab import (
    PersonState,
    TaskKind,
    VouchedBy,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import issue_binding, submit_issue
from appliance.keys.key_encryption import seal_to_each
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.signing_hosts import SigningHosts
from appliance.keys.signing_password import (
    UnlockKeys,
    normalize,
)
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.system.background import Shielded


@dataclass(frozen=True, slots=True)
class IssuePlan:
    """A task to come, and the hosts that may do it."""

    task: TaskId
    hosts: tuple[ActivationKey, ...]

    @property
    def credential(self) -> CredentialId:
        """The credential to come."""
        return CredentialId(self.task)


class Issuance:
    """The use cases of getting a key and a certificate.

    Args:
        store: the record.
        attempts: checks signing passwords.
        hosts: who may make the key.
        clock: the time.
        algorithm: kind of a new key.
        shielded: where what is begun goes on.
    """

    def __init__(
        self,
        store: Database,
        attempts: PasswordAttempts,
        hosts: SigningHosts,
        clock: Clock,
        algorithm: KeyAlgorithm,
        shielded: Shielded,
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._hosts = hosts
        self._clock = clock
        self._algorithm = algorithm
        self._shielded = shielded

    async def plan(self) -> IssuePlan:
        """Make sure that a key can be made, before any password is asked for.

        Raises:
            HsmUnavailableError: no host can make it now.
        """
        return IssuePlan(TaskId(new_id()), await self._hosts.live())

    async def submit(
        self,
        transaction: Transaction,
        plan: IssuePlan,
        person: PersonId,
        vouched_by: VouchedBy,
        unlock: UnlockKeys,
        actor: str,
    ) -> None:
        """Ask for key and certificate, within the caller's transaction.

        Args:
            transaction: of the caller.
            plan: as `plan` made it.
            person: for whom.
            vouched_by: who answers for them.
            unlock: the unlock key of the credential to come among them.
            actor: for the audit.
        """
        binding = issue_binding(plan.task, person, vouched_by, self._algorithm)
        key = unlock[plan.credential]
        seals = seal_to_each(plan.hosts, key, binding.info())
        await submit_issue(transaction, binding, seals, self._clock, actor)

    async def again(self, signer: Signer, password: str) -> TaskId:
        """Ask anew for somebody whose key could not be made, or is over.

        Args:
            signer: who asks, as the front established it.
            password: their signing password.

        Raises:
            FieldInvalidError: no password is so short or long.
            ApplianceError: those of `PasswordAttempts.check`; `ALREADY_EXISTS` for
                who has a key, `IN_PROGRESS` while one is being made, `PERSON_STATE`.
            HsmUnavailableError: no host can make it now.
        """
        typed = normalize(password, "signing_password")
        async with self._store.read() as transaction:
            await self._check_without_key(transaction, signer.person)
        plan = await self.plan()
        await self._shielded.run(self._submit_again(signer, typed, plan))
        return plan.task

    async def _submit_again(
        self, signer: Signer, typed: bytes, plan: IssuePlan
    ) -> None:
        right = await self._attempts.check(signer, None, typed, (plan.credential,))
        refusal: ApplianceError | None = None
        async with self._store.write() as transaction:
            # A refusal comes before anything is written: the attempt is closed as
            # right all the same, so the transaction goes on to its commit.
            unlock = await self._attempts.passed(transaction, signer, right)
            if unlock is None:
                refusal = ApplianceError(ErrorCode.IN_PROGRESS)
            else:
                refusal = await self._submit_unless_refused(
                    transaction, signer, plan, unlock
                )
        if refusal is not None:
            raise refusal

    async def _submit_unless_refused(
        self,
        transaction: Transaction,
        signer: Signer,
        plan: IssuePlan,
        unlock: UnlockKeys,
    ) -> ApplianceError | None:
        """Ask the HSM, or say why not."""
        try:
            vouched_by = await self._check_without_key(transaction, signer.person)
        except ApplianceError as exc:
            return exc
        await self.submit(
            transaction, plan, signer.person, vouched_by, unlock, signer.actor
        )
        return None

    async def begin_tries(
        self, transaction: Transaction, person: PersonId, secret: SigningSecret
    ) -> None:
        """Give a new signing password all its tries, also where a former one used them.

        Args:
            transaction: the caller's, which has recorded it.
            person: whose.
            secret: what is kept of it.
        """
        await self._attempts.clear(transaction, person, secret.salt)

    async def _check_without_key(
        self, transaction: Transaction, person: PersonId
    ) -> VouchedBy:
        """Refuse who has a key or will have one; else who answers for them.

        Raises:
            ApplianceError: `ALREADY_EXISTS`, `IN_PROGRESS`, `PERSON_NOT_FOUND`,
                `PERSON_STATE`.
        """
        if await CredentialStore(transaction).locked(person):
            raise ApplianceError(
                ErrorCode.ALREADY_EXISTS, params={"field": "credential"}
            )
        if await HsmTaskStore(transaction).open_for(person, TaskKind.ISSUE):
            raise ApplianceError(ErrorCode.IN_PROGRESS)
        return await self._check_active(transaction, person)

    async def _check_active(
        self, transaction: Transaction, person: PersonId
    ) -> VouchedBy:
        """Who answers for somebody who may have a key.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`, `PERSON_STATE`.
        """
        found = await PersonStore(transaction).get(person)
        contact = await PersonStore(transaction).contact(person)
        if found is None or contact is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        if found.state is not PersonState.ACTIVE:
            raise ApplianceError(
                ErrorCode.PERSON_STATE, params={"state": found.state.value}
            )
        return contact.vouched_by
