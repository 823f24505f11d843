"""What a worker writes when it certifies a credential's key again.

Source: design §6.
"""

from dataclasses import dataclass, replace

from appliance.domain.certificates import CertificateRecord
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.identity import Credential, Person
from appliance.domain.ids import CredentialId
from appliance.domain.records import Records, Store
from appliance.domain.records.hsm_tasks import TaskClaim
from appliance.domain.vocab import (
    CredentialState,
    EventKind,
    PersonState,
    TaskState,
)
from appliance.keys.hsm_task_events import task_event


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

    def __init__(self, store: Store, clock: Clock, worker: str) -> None:
        self._store = store
        self._clock = clock
        self._actor = f"worker:{worker}"

    async def order(self, claim: TaskClaim) -> RenewalOrder:
        """Read what a `renew` task is about.

        Raises:
            ApplianceError: `CERTIFICATE_STATE`: the credential is not active,
                or its person is not, or an outside CA certified it.
        """
        wanted = CredentialId(str(claim.input["credential"]))
        async with self._store.read() as records:
            return await _order(records, wanted)

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
            ApplianceError: `CERTIFICATE_STATE` as in `order`; `BUSY` while a
                signature is being made with the certificate before it, which
                its finish phase still needs.
        """
        wanted = CredentialId(str(claim.input["credential"]))
        async with self._store.write() as records:
            output: dict[str, object] = {"credential": wanted, "serial": renewed.serial}
            if not await records.tasks.close(claim, TaskState.DONE, output):
                return False
            await records.credentials.get(wanted, lock=True)
            order = await _order(records, wanted)
            if await records.activations.any_in_hand(wanted):
                raise ApplianceError(ErrorCode.BUSY)
            await records.certificates.add(renewed)
            await records.credentials.renewed(
                replace(
                    order.credential,
                    certificate=renewed.der,
                    chain=chain,
                    not_before=renewed.not_before,
                    not_after=renewed.not_after,
                )
            )
            records.audit.add(
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


async def _order(records: Records, wanted: CredentialId) -> RenewalOrder:
    """Read what is to be renewed.

    Raises:
        ApplianceError: `CERTIFICATE_STATE`.
    """
    credential = await records.credentials.get(wanted)
    if credential is None or credential.state is not CredentialState.ACTIVE:
        raise ApplianceError(ErrorCode.CERTIFICATE_STATE)
    if await records.former_certificates.of_credential(wanted):
        # An outside CA certified it meanwhile: ours does not take its place.
        raise ApplianceError(ErrorCode.CERTIFICATE_STATE)
    person = await records.people.get(credential.person)
    if person is None or person.state is not PersonState.ACTIVE:
        raise ApplianceError(ErrorCode.CERTIFICATE_STATE)
    return RenewalOrder(person, credential)
