"""What happens by itself: activations, requests and tasks whose time is over.

Any worker may run it, any number at once: each row is ended by a transaction
that sees it still overdue.

Source: design §3 "Lifetimes"; decisions "estados".
"""

from datetime import timedelta
from typing import Final

from appliance.domain.activation import EPOCH_S, EPOCHS_KEPT
from appliance.domain.audit import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ErrorCode
from appliance.domain.ports import Outcomes
from appliance.domain.records import Records, Store
from appliance.domain.records.activations import Item, Overdue
from appliance.domain.vocab import (
    ActivationState,
    EventKind,
    ItemState,
    RequestState,
)
from appliance.keys.hsm_tasks import TASK_ATTEMPTS
from appliance.signing.audit_events import key_interrupted
from appliance.signing.claims import ATTEMPTS
from appliance.signing.signing_order import end_rest

_BATCH: Final = 200
_SLOTS_KEPT: Final = timedelta(days=1)
_SESSIONS_KEPT: Final = timedelta(days=1)
_TRIES_KEPT: Final = timedelta(days=2)
_KNOWN_KEPT: Final = timedelta(days=30)
_BATCHES_KEPT: Final = timedelta(days=7)
_STATUS_KEPT: Final = timedelta(days=1)
_KEYS_KEPT: Final = timedelta(days=30)
_KEYS_AT_ONCE: Final = 1000
"""Each request may leave one: what has come together is not deleted in one go."""
_SEALS_KEPT: Final = timedelta(seconds=EPOCHS_KEPT * EPOCH_S)
"""Longest that anything sealed can be opened."""
_USED_UP: Final = "attempts used up"


class Sweeping:
    """The use cases of the reconciler.

    Args:
        store: the record.
        outcomes: tells who waits.
        clock: the time.
        keys_kept: how long an idempotency key stands for what it was first used for.
        known_kept: how long it is remembered where an account was signed in to.
    """

    def __init__(
        self,
        store: Store,
        outcomes: Outcomes,
        clock: Clock,
        keys_kept: timedelta = _KEYS_KEPT,
        known_kept: timedelta = _KNOWN_KEPT,
    ) -> None:
        self._keys_kept = keys_kept
        self._known_kept = known_kept
        self._store = store
        self._outcomes = outcomes
        self._clock = clock

    async def expire_activations(self) -> int:
        """End what was not claimed, keyed or finished in time; how many.

        Unsigned requests are `pendiente` again, reason `ACTIVATION_EXPIRED`;
        what was signed but could not be published in time is `fallida`, and so is
        what killed every worker that took it in hand.
        """
        now = self._clock.now()
        async with self._store.read() as records:
            if not await records.activations.overdue(now, ATTEMPTS):
                return 0
        async with self._store.write() as records:
            ended = await records.activations.overdue(now, ATTEMPTS)
            for late in ended:
                await self._end(records, late)
        for late in ended:
            await self._outcomes.announce(late.id)
        return len(ended)

    async def _end(self, records: Records, late: Overdue) -> None:
        keyed = [item for item in late.items if item.state is ItemState.KEYED]
        waiting = [item for item in late.items if item.state is ItemState.WAITING]
        if late.state is ActivationState.FINISHING:
            then = ActivationState.FAILED
            code = ErrorCode(late.reason or ErrorCode.SIGNING_FAILED.value)
            await self._move(records, late, keyed, RequestState.FAILED, code)
        elif late.tries >= ATTEMPTS:
            # Items are signed in turn: the first that is not done is to blame.
            then, code = ActivationState.FAILED, ErrorCode.SIGNING_FAILED
            culprit, *others = [
                item for item in late.items if item in keyed or item in waiting
            ]
            await self._move(records, late, [culprit], RequestState.FAILED, code)
            expired = ErrorCode.ACTIVATION_EXPIRED
            await self._move(records, late, others, RequestState.PENDING, expired)
        else:
            # Signatures that were made are not wasted: they are finished.
            then = ActivationState.FINISHING if keyed else ActivationState.EXPIRED
            code = ErrorCode.ACTIVATION_EXPIRED
            await self._move(records, late, waiting, RequestState.PENDING, code)
        for intent in await records.activations.end_overdue(
            late.id, then, self._clock.now(), code.value
        ):
            records.audit.add(key_interrupted("system", late.items, intent))
        records.audit.add(
            AuditEvent(
                EventKind.ACTIVATION_EXPIRED,
                "system",
                request=late.items[0].request,
                activation=late.id,
                detail={"was": late.state.value, "now": then.value},
            )
        )

    async def _move(
        self,
        records: Records,
        late: Overdue,
        items: list[Item],
        then: RequestState,
        code: ErrorCode,
    ) -> None:
        kind = (
            EventKind.REQUEST_RETURNED
            if then is RequestState.PENDING
            else EventKind.REQUEST_FAILED
        )
        # Requests are locked in one order everywhere.
        for item in sorted(items, key=lambda item: item.request):
            await records.requests.move(
                item.request, RequestState.IN_PROGRESS, then, code.value
            )
            records.audit.add(
                AuditEvent(
                    kind,
                    "system",
                    request=item.request,
                    activation=late.id,
                    detail={"item": item.seq, "reason": code.value},
                )
            )
            if then is RequestState.FAILED:
                await end_rest(records, item.request, then, "system")

    async def expire_requests(self) -> int:
        """Move requests that nobody signed in time to `vencida`; how many."""
        now = self._clock.now()
        async with self._store.read() as records:
            overdue = await records.requests.overdue(now, _BATCH)
        if not overdue:
            return 0
        moved = 0
        async with self._store.write() as records:
            for request in overdue:
                view = await records.requests.get(request, lock=True)
                if view is None or view.state not in {
                    RequestState.PENDING,
                    RequestState.WAITING,
                }:
                    continue
                await records.requests.move(request, view.state, RequestState.EXPIRED)
                records.audit.add(
                    AuditEvent(
                        EventKind.REQUEST_EXPIRED,
                        "system",
                        integrator=view.integrator,
                        request=request,
                    )
                )
                moved += 1 + await end_rest(
                    records, request, RequestState.EXPIRED, "system"
                )
        return moved

    async def fail_tasks(self) -> int:
        """End HSM tasks whose attempts or whose time is used up; how many.

        Their workers died, or their HSM stayed away; whoever waits is told. What
        carries an unlock key ends with the epochs that it was sealed for.
        """
        now = self._clock.now()
        expired = ErrorCode.ACTIVATION_EXPIRED.value
        async with self._store.write() as records:
            tired = await records.tasks.give_up(now, TASK_ATTEMPTS, _USED_UP)
            late = await records.tasks.expire(now, now - _SEALS_KEPT, expired)
            for reason, ended in ((_USED_UP, tired), (expired, late)):
                for task in ended:
                    records.audit.add(
                        AuditEvent(
                            EventKind.TASK_FAILED,
                            "system",
                            attempt=task.fence,
                            detail={"task": task.id, "reason": reason},
                        )
                    )
        return len(tired) + len(late)

    async def forget(self) -> int:
        """Delete what is of no more use; how many rows.

        Checks of signing passwords after a day, tries to sign in after two,
        download links at their end, batches a week after they were last asked
        for, idempotency keys after `keys_kept`, some at a time, sessions of frames
        and of the console a day after their end: a frame opened with yesterday's
        token is still told, by the page that its integrator may show, that it has
        expired.
        """
        now = self._clock.now()
        async with self._store.write() as records:
            return (
                await records.slots.sweep(now - _SLOTS_KEPT)
                + await records.logins.sweep(now - _TRIES_KEPT)
                + await records.logins.forget_known(now - self._known_kept)
                + await records.links.sweep(now)
                + await records.batches.sweep(now - _BATCHES_KEPT)
                + await records.sessions.sweep(now - _SESSIONS_KEPT)
                + await records.console.sweep(now - _SESSIONS_KEPT)
                + await records.outside.forget(now - _STATUS_KEPT)
                + await records.idempotency.forget(now - self._keys_kept, _KEYS_AT_ONCE)
            )
