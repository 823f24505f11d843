"""Batches in SQL: which requests, with which parameters, what was refused."""

from datetime import datetime
from typing import Final

from sqlalchemy import delete, select

from appliance.database.tables import signing_batch
from appliance.database.upsert import insert_into
from appliance.domain.errors import error_from_json, error_to_json
from appliance.domain.ids import BatchId, PersonId, RequestId
from appliance.domain.requests.signing_batch import BatchRow
from appliance.domain.signing_command import SignParameters
from appliance.record.unit_of_work import Store

_FINGERPRINTS: Final = "fingerprints"
"""Beside the command's parameters: those of requests with a preset."""


class BatchStore(Store):
    """Batches."""

    async def put(self, row: BatchRow) -> None:
        """Keep a batch, in the place of what was kept of an earlier call."""
        changing = {
            # Of a whole batch some may be over meanwhile.
            "requests": list(row.requests),
            "refused": [
                {
                    **error_to_json(problem),
                    "request": request,
                    # The version before reads both, empty or not.
                    "params": problem.params,
                    "extras": problem.extras,
                }
                for request, problem in row.refused.items()
            ],
            "asked": row.asked,
        }
        await self._connection.execute(
            insert_into(self._connection, signing_batch)
            .values(
                id=row.id,
                person=row.person,
                params=_parameters_to_json(row),
                **changing,
            )
            .on_conflict_do_update(index_elements=["id"], set_=changing)
        )

    async def get(self, batch: BatchId) -> BatchRow | None:
        """A batch by id."""
        row = (
            await self._connection.execute(
                select(signing_batch).where(signing_batch.c.id == batch)
            )
        ).one_or_none()
        if row is None:
            return None
        refused = {
            RequestId(kept["request"]): error_from_json(kept) for kept in row.refused
        }
        return BatchRow(
            id=BatchId(row.id),
            person=PersonId(row.person),
            requests=tuple(RequestId(request) for request in row.requests),
            params=SignParameters.from_wire(row.params),
            fingerprints={
                RequestId(int(request)): sha256
                for request, sha256 in row.params.get(_FINGERPRINTS, {}).items()
            },
            refused=refused,
            asked=row.asked,
        )

    async def sweep(self, before: datetime) -> int:
        """Forget batches that were last asked for before that; how many."""
        result = await self._connection.execute(
            delete(signing_batch).where(signing_batch.c.asked < before)
        )
        return int(result.rowcount)


def _parameters_to_json(row: BatchRow) -> dict[str, object]:
    """The command's parameters, and what requests with a preset have instead."""
    wire = row.params.to_wire()
    if not row.fingerprints:
        return wire
    told = {str(request): sha256 for request, sha256 in row.fingerprints.items()}
    return {**wire, _FINGERPRINTS: told}
