"""An installation that became PROD: who was made up in PREPROD does nothing there."""

from appliance.domain.audit.record import AuditEvent
from appliance.domain.vocab import Environment, EventKind, PersonState
from appliance.people.person_store import PersonStore
from appliance.people.signer_for_tests_store import SignerForTestsStore
from appliance.record.unit_of_work import Database


class SignersForTestsInProd:
    """Disables whoever was made up, whoever enabled them.

    Args:
        store: the record.
        environment: of the installation.
    """

    def __init__(self, store: Database, environment: Environment) -> None:
        self._store = store
        self._environment = environment

    async def disable(self) -> int:
        """Let nobody who was made up sign in or sign; how many could.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if self._environment is not Environment.PROD:
            return 0
        async with self._store.read() as transaction:
            found = await SignerForTestsStore(transaction).active()
        if not found:
            return 0
        async with self._store.write() as transaction:
            for person in found:
                if await PersonStore(transaction).move(
                    person, PersonState.ACTIVE, PersonState.DISABLED
                ):
                    transaction.audit.add(
                        AuditEvent(
                            EventKind.PERSON_DISABLED,
                            "system",
                            detail={
                                "person": person,
                                "before": {"state": PersonState.ACTIVE.value},
                                "after": {"state": PersonState.DISABLED.value},
                            },
                        )
                    )
        return len(found)
