"""Certificate signing requests: a key asks an outside CA for its certificate.

A request bears a signature of the key, so its owner's password is needed, as it
is for a document: the unlock key goes to a worker sealed, bound to this task.

What the worker made stands in the record until its owner gets it, and an outside CA
certifies whatever key it is sent. So a request is handed out only if it is signed by
the very key that the password has just opened.

Source: design §4 "Activation keys", §6; RFC 2986.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, TaskId, new_id
from appliance.domain.people.identity import Credential, Person
from appliance.domain.requests.request import Signer
from appliance.domain.signing.activation import ActivationKey, CsrBinding
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import CredentialState, EventKind, TaskKind, TaskState
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_events import task_created, task_event
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.key_encryption import seal_to_each
from appliance.keys.key_facts import KeyFacts
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.signing_hosts import SigningHosts
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.system.background import Shielded

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AskedRequest:
    """A signing request that a worker is to make."""

    task: TaskId
    """To wait for; its output has `csr`, in PEM."""
    spki: bytes
    """The public key, to which the lock is bound that the password opened."""

    def made(self, output: Mapping[str, object]) -> bytes:
        """Check what the task gave.

        Args:
            output: of the task, as recorded.

        Returns:
            The request, PEM.

        Raises:
            ApplianceError: `TASK_FAILED`: it is none, or not by this key.
        """
        try:
            request = x509.load_pem_x509_csr(str(output.get("csr")).encode())
            public = request.public_key()
            spki = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            is_own = spki == self.spki and request.is_signature_valid
        except (ValueError, TypeError, UnsupportedAlgorithm):
            is_own = False
        if not is_own:
            _log.error("csr.not_ours", task=self.task)
            raise ApplianceError(
                ErrorCode.TASK_FAILED, params={"reason": "the request was altered"}
            )
        return request.public_bytes(Encoding.PEM)


class SigningRequests:
    """The use case of a signer who wants a certificate from outside.

    Args:
        store: the record.
        attempts: checks the signing password, and counts wrong ones.
        hosts: who may use the key.
        clock: the time.
        shielded: where what is begun goes on.
    """

    def __init__(
        self,
        store: Database,
        attempts: PasswordAttempts,
        hosts: SigningHosts,
        clock: Clock,
        shielded: Shielded,
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._hosts = hosts
        self._clock = clock
        self._shielded = shielded

    async def ask(
        self, signer: Signer, credential: CredentialId, password: bytes
    ) -> AskedRequest:
        """Ask for a request, signed by the key of a credential.

        Args:
            signer: whose it is, as the front established it.
            credential: in use.
            password: the signing password, as `normalize` gives it.

        Raises:
            ApplianceError: `CREDENTIAL_NOT_FOUND`, `CREDENTIAL_STATE`; those of
                `PasswordAttempts.check`; `IN_PROGRESS` when the password was changed
                meanwhile.
            HsmUnavailableError: no host can use the key now.
        """
        async with self._store.read() as transaction:
            await _held(transaction, signer, credential)
        hosts = await self._hosts.live()
        return await self._shielded.run(self._ask(signer, credential, password, hosts))

    async def _ask(
        self,
        signer: Signer,
        credential: CredentialId,
        password: bytes,
        hosts: tuple[ActivationKey, ...],
    ) -> AskedRequest:
        """From the password to the recorded task.

        Raises:
            ApplianceError: see `ask`.
        """
        right = await self._attempts.check(signer, None, password)
        task = TaskId(new_id())
        async with self._store.write() as transaction:
            unlock = await self._attempts.passed(transaction, signer, right)
            held = await CredentialStore(transaction).get(credential)
            # The slot is closed as right in any case, so nothing is raised here.
            key = unlock.get(credential) if unlock else None
            asked = None
            if (
                held is not None
                and key is not None
                and held.state is CredentialState.ACTIVE
                and self._attempts.opens(key, held)
            ):
                asked = AskedRequest(task, held.spki)
                seals = seal_to_each(hosts, key, _binding(task, held).info())
                await HsmTaskStore(transaction).add(
                    task,
                    TaskKind.CSR,
                    {"credential": credential},
                    self._clock.now(),
                    person=signer.person,
                    seals=seals,
                )
                transaction.audit.add(
                    task_created(
                        task,
                        TaskKind.CSR,
                        signer.actor,
                        {"person": held.person, "credential": held.id},
                    )
                )
        if asked is None:
            raise ApplianceError(ErrorCode.IN_PROGRESS)
        return asked


@dataclass(frozen=True, slots=True)
class CsrOrder:
    """What a `csr` task needs, read when it is claimed."""

    person: Person
    credential: Credential
    binding: CsrBinding
    """What the unlock key is bound to, by what stands recorded."""


class CsrWork:
    """A worker's transactions of `csr` tasks.

    Args:
        store: the record.
        worker: the worker's slot.
    """

    def __init__(self, store: Database, worker: str) -> None:
        self._store = store
        self._actor = f"worker:{worker}"

    async def order(self, claim: TaskClaim) -> CsrOrder:
        """Read what a task is about.

        Raises:
            ApplianceError: `CREDENTIAL_NOT_FOUND`, `CREDENTIAL_STATE`,
                `PERSON_NOT_FOUND`.
        """
        wanted = CredentialId(str(claim.input["credential"]))
        async with self._store.read() as transaction:
            held = await CredentialStore(transaction).get(wanted)
            if held is None:
                raise ApplianceError(ErrorCode.CREDENTIAL_NOT_FOUND)
            _check_in_use(held)
            person = await PersonStore(transaction).get(held.person)
        if person is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        return CsrOrder(person, held, _binding(claim.id, held))

    async def intended(self, claim: TaskClaim, digest: str, key: KeyFacts) -> None:
        """Record, before the key is used, the exact digest to be signed.

        Args:
            claim: of the task.
            digest: of the request's body, hex.
            key: that is to sign it, and the certificate that it has so far.
        """
        async with self._store.write() as transaction:
            transaction.audit.add(
                task_event(
                    EventKind.CSR_INTENDED,
                    self._actor,
                    claim,
                    {
                        "credential": str(claim.input["credential"]),
                        "digest": digest,
                        **key.detail(),
                    },
                )
            )

    async def made(self, claim: TaskClaim, csr: str) -> bool:
        """End a task with its request; False when another claim came since.

        Args:
            claim: of the task.
            csr: PEM.
        """
        async with self._store.write() as transaction:
            output: dict[str, object] = {"csr": csr}
            if not await HsmTaskStore(transaction).close(claim, TaskState.DONE, output):
                return False
            transaction.audit.add(
                task_event(
                    EventKind.CSR_MADE,
                    self._actor,
                    claim,
                    {"credential": str(claim.input["credential"])},
                )
            )
            return True


def _binding(task: TaskId, held: Credential) -> CsrBinding:
    return CsrBinding(task, held.person, held.id, held.key_version)


async def _held(
    transaction: Transaction, signer: Signer, credential: CredentialId
) -> None:
    """Refuse a credential that is not the signer's, or not in use.

    Raises:
        ApplianceError: `CREDENTIAL_NOT_FOUND`, `CREDENTIAL_STATE`.
    """
    held = await CredentialStore(transaction).get(credential)
    if held is None or held.person != signer.person:
        raise ApplianceError(ErrorCode.CREDENTIAL_NOT_FOUND)
    _check_in_use(held)


def _check_in_use(held: Credential) -> None:
    """Refuse a credential that is not in use.

    Raises:
        ApplianceError: `CREDENTIAL_STATE`.
    """
    if held.state is not CredentialState.ACTIVE:
        raise ApplianceError(
            ErrorCode.CREDENTIAL_STATE, params={"estado": held.state.value}
        )
