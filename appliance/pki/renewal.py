"""What a worker writes when it certifies a credential's key again.

Source: design §6.
"""

from dataclasses import dataclass, replace

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId
from appliance.domain.people.identity import Credential, Person
from appliance.domain.pki.certificates import CertificateRecord
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import (
    CredentialState,
    EventKind,
    PersonState,
    TaskState,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_events import task_event
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.people.person_store import PersonStore
from appliance.pki.certificate_store import CertificateStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.signing.activations.activation_store import ActivationStore


@dataclass(frozen=True, slots=True)
class RenewalOrder:
    """What a `renew` task needs, read when it is claimed."""

    person: Person
    credential: Credential


class Renewal:
    """The use cases of a worker that renews.

    Args:
        store: the record.
        clock: the time.
        worker: the worker's slot.
    """

    def __init__(self, store: Database, clock: Clock, worker: str) -> None:
        self._store = store
        self._clock = clock
        self._actor = f"worker:{worker}"

    async def order(self, claim: TaskClaim) -> RenewalOrder:
        """Read what a `renew` task is about.

        Raises:
            ApplianceError: `CERTIFICATE_STATE`: the credential is not active;
                `PERSON_STATE`: its person is not; `CERTIFICATE_ISSUED_OUTSIDE`.
        """
        wanted = CredentialId(str(claim.input["credential"]))
        async with self._store.read() as transaction:
            return await _order(transaction, wanted)

    async def renewed(
        self,
        claim: TaskClaim,
        renewed: CertificateRecord,
        chain: tuple[bytes, ...],
    ) -> bool:
        """Have the credential sign with its new certificate, and end the task.

        Args:
            claim: of the task.
            renewed: the new certificate, on the credential's key.
            chain: DER, issuer first.

        Returns:
            False when another claim came since.

        Raises:
            ApplianceError: as in `order`; `BUSY` while an activation of it is open:
                its seal is bound to the certificate before it, which the finish
                phase still needs.
        """
        wanted = CredentialId(str(claim.input["credential"]))
        async with self._store.write() as transaction:
            output: dict[str, object] = {"credential": wanted, "serial": renewed.serial}
            if not await HsmTaskStore(transaction).close(claim, TaskState.DONE, output):
                return False
            await CredentialStore(transaction).get(wanted, lock=True)
            order = await _order(transaction, wanted)
            if await ActivationStore(transaction).any_open(wanted):
                raise ApplianceError(ErrorCode.BUSY)
            await CertificateStore(transaction).add(renewed)
            await CredentialStore(transaction).renewed(
                replace(
                    order.credential,
                    certificate=renewed.der,
                    chain=chain,
                    not_before=renewed.not_before,
                    not_after=renewed.not_after,
                )
            )
            transaction.audit.add(
                task_event(
                    EventKind.CERTIFICATE_RENEWED,
                    self._actor,
                    claim,
                    {
                        "person": order.person.id,
                        "credential": wanted,
                        "serial": renewed.serial,
                        "before": {"until": order.credential.not_after.isoformat()},
                        "after": {"until": renewed.not_after.isoformat()},
                    },
                )
            )
            return True


async def _order(transaction: Transaction, wanted: CredentialId) -> RenewalOrder:
    """Read what is to be renewed.

    Raises:
        ApplianceError: see `Renewal.order`.
    """
    credential = await CredentialStore(transaction).get(wanted)
    if credential is None or credential.state is not CredentialState.ACTIVE:
        raise ApplianceError(ErrorCode.CERTIFICATE_STATE)
    await CertificateStore(transaction).check_ours(credential)
    person = await PersonStore(transaction).get(credential.person)
    if person is None:
        raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
    if person.state is not PersonState.ACTIVE:
        raise ApplianceError(
            ErrorCode.PERSON_STATE, params={"state": person.state.value}
        )
    return RenewalOrder(person, credential)
