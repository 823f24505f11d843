"""What happens by itself: activations, requests and tasks whose time is over.

Any worker may run it, any number at once: each row is ended by a transaction
that sees it still overdue.

Source: design §3 "Lifetimes"; decisions "estados".
"""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.documents.download_link_store import DownloadLinkStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ErrorCode
from appliance.domain.pki.outside_material import MaterialKind
from appliance.domain.ports import CompletionNotifier
from appliance.domain.signing.activation import (
    ActivationDocument,
    ActivationFormat,
    Overdue,
)
from appliance.domain.vocab import (
    ActivationState,
    EventKind,
    ItemState,
    RequestState,
)
from appliance.integrators.session_store import ExpiredSession, SessionStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import TASK_ATTEMPTS
from appliance.keys.password_attempt_store import PasswordAttemptStore
from appliance.people.console_user_store import ConsoleUserStore
from appliance.pki.validation.external_status_store import ExternalStatusStore
from appliance.record.idempotency_store import IdempotencyStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.batch_store import BatchStore
from appliance.signing.claims import ATTEMPTS, key_interrupted
from appliance.signing.outside_material_store import OutsideMaterialStore
from appliance.signing.signing_order import end_rest

_BATCH: Final = 200
_CAUSE_MOST: Final = 300
"""Characters of what servers outside said."""
_SLOTS_KEPT: Final = timedelta(days=1)
_SESSIONS_KEPT: Final = timedelta(days=1)
_TRIES_KEPT: Final = timedelta(days=2)
_KNOWN_KEPT: Final = timedelta(days=30)
_BATCHES_KEPT: Final = timedelta(days=7)
_STATUS_KEPT: Final = timedelta(days=1)
_KEYS_KEPT: Final = timedelta(days=30)
_KEYS_AT_ONCE: Final = 1000
"""Each request may leave one: what has come together is not deleted in one go."""
_SEALS_KEPT: Final = timedelta(
    seconds=max(kind.epochs_kept * kind.epoch_s for kind in ActivationFormat)
)
"""Longest that anything sealed can be opened."""
_USED_UP: Final = "attempts used up"


class ExpiryJob:
    """The use cases of the reconciler.

    Args:
        store: the record.
        completion_notifier: tells who waits.
        clock: the time.
        keys_kept: how long an idempotency key stands for what it was first used for.
        known_kept: how long it is remembered where an account was signed in to.
    """

    def __init__(
        self,
        store: Database,
        completion_notifier: CompletionNotifier,
        clock: Clock,
        keys_kept: timedelta = _KEYS_KEPT,
        known_kept: timedelta = _KNOWN_KEPT,
    ) -> None:
        self._keys_kept = keys_kept
        self._known_kept = known_kept
        self._store = store
        self._completion_notifier = completion_notifier
        self._clock = clock

    async def expire_activations(self) -> int:
        """End what was not claimed, keyed or finished in time; how many.

        Unsigned requests are `pendiente` again, reason `ACTIVATION_EXPIRED`;
        what was signed but could not be published in time is `fallida`, and so is
        what killed every worker that took it in hand.
        """
        now = self._clock.now()
        async with self._store.read() as transaction:
            if not await ActivationStore(transaction).overdue(now, ATTEMPTS):
                return 0
        async with self._store.write() as transaction:
            ended = await ActivationStore(transaction).overdue(now, ATTEMPTS)
            for late in ended:
                await self._end(transaction, late)
        for late in ended:
            await self._completion_notifier.publish(late.id)
        return len(ended)

    async def _end(self, transaction: Transaction, late: Overdue) -> None:
        requests = [item.request for item in late.documents]
        await RequestStore(transaction).lock_turns(requests)
        keyed = [item for item in late.documents if item.state is ItemState.KEYED]
        waiting = [item for item in late.documents if item.state is ItemState.WAITING]
        if late.state is ActivationState.FINISHING:
            then = ActivationState.FAILED
            code = ErrorCode(late.reason or ErrorCode.SIGNING_FAILED.value)
            cause = await _cause(transaction, late.id)
            await self._move(transaction, late, keyed, RequestState.FAILED, code, cause)
        elif late.tries >= ATTEMPTS:
            # Items are signed in turn: the first that is not done is to blame.
            then, code = ActivationState.FAILED, ErrorCode.SIGNING_FAILED
            culprit, *others = [
                item for item in late.documents if item in keyed or item in waiting
            ]
            await self._move(transaction, late, [culprit], RequestState.FAILED, code)
            expired = ErrorCode.ACTIVATION_EXPIRED
            await self._move(transaction, late, others, RequestState.PENDING, expired)
        else:
            # Signatures that were made are not wasted: they are finished.
            then = ActivationState.FINISHING if keyed else ActivationState.EXPIRED
            code = ErrorCode.ACTIVATION_EXPIRED
            await self._move(transaction, late, waiting, RequestState.PENDING, code)
        for intent in await ActivationStore(transaction).end_overdue(
            late.id, then, self._clock.now(), code.value
        ):
            transaction.audit.add(key_interrupted("system", late.documents, intent))
        transaction.audit.add(
            AuditEvent(
                EventKind.ACTIVATION_EXPIRED,
                "system",
                request=late.documents[0].request,
                activation=late.id,
                detail={"was": late.state.value, "now": then.value},
            )
        )

    async def _move(
        self,
        transaction: Transaction,
        late: Overdue,
        items: list[ActivationDocument],
        then: RequestState,
        code: ErrorCode,
        cause: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        kind = (
            EventKind.REQUEST_RETURNED
            if then is RequestState.PENDING
            else EventKind.REQUEST_FAILED
        )
        # Requests are locked in one order everywhere.
        for item in sorted(items, key=lambda item: item.request):
            await RequestStore(transaction).move(
                item.request, RequestState.IN_PROGRESS, then, code.value
            )
            transaction.audit.add(
                AuditEvent(
                    kind,
                    "system",
                    request=item.request,
                    activation=late.id,
                    detail={"item": item.seq, "reason": code.value, **cause},
                )
            )
            if then is RequestState.FAILED:
                await end_rest(transaction, item.request, then, "system")

    async def expire_requests(self) -> int:
        """Move requests that nobody signed in time to `vencida`; how many."""
        now = self._clock.now()
        async with self._store.read() as transaction:
            overdue = await RequestStore(transaction).overdue(now, _BATCH)
        if not overdue:
            return 0
        moved = 0
        async with self._store.write() as transaction:
            for request in overdue:
                view = await RequestStore(transaction).get(request, lock=True)
                if view is None or view.state not in {
                    RequestState.PENDING,
                    RequestState.WAITING,
                }:
                    continue
                await RequestStore(transaction).move(
                    request, view.state, RequestState.EXPIRED
                )
                transaction.audit.add(
                    AuditEvent(
                        EventKind.REQUEST_EXPIRED,
                        "system",
                        integrator=view.integrator,
                        request=request,
                    )
                )
                moved += 1 + await end_rest(
                    transaction, request, RequestState.EXPIRED, "system"
                )
        return moved

    async def expire_sessions(self) -> int:
        """Tell of sessions whose time was over before they were told of; how many.

        One for a batch that was signed while its page was gone has come to its end.
        """
        async with self._store.write() as transaction:
            over = await SessionStore(transaction).expire(self._clock.now(), _BATCH)
            for session in over:
                told = await _completed(transaction, session)
                detail: dict[str, object] = {"session": session.public_id, **told}
                if session.batch is not None:
                    detail["batch"] = session.batch
                transaction.audit.add(
                    AuditEvent(
                        EventKind.SESSION_COMPLETED
                        if told
                        else EventKind.SESSION_EXPIRED,
                        "system",
                        integrator=session.integrator,
                        request=session.request,
                        detail=detail,
                    )
                )
        return len(over)

    async def fail_tasks(self) -> int:
        """End HSM tasks whose attempts or whose time is used up; how many.

        Their workers died, or their HSM stayed away; whoever waits is told. What
        carries an unlock key ends with the epochs that it was sealed for.
        """
        now = self._clock.now()
        expired = ErrorCode.ACTIVATION_EXPIRED.value
        async with self._store.write() as transaction:
            tired = await HsmTaskStore(transaction).give_up(
                now, TASK_ATTEMPTS, _USED_UP
            )
            late = await HsmTaskStore(transaction).expire(
                now, now - _SEALS_KEPT, expired
            )
            for reason, ended in ((_USED_UP, tired), (expired, late)):
                for task in ended:
                    transaction.audit.add(
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
        async with self._store.write() as transaction:
            return (
                await PasswordAttemptStore(transaction).sweep(now - _SLOTS_KEPT)
                + await LoginAttemptStore(transaction).sweep(now - _TRIES_KEPT)
                + await LoginAttemptStore(transaction).forget_known(
                    now - self._known_kept
                )
                + await DownloadLinkStore(transaction).sweep(now)
                + await BatchStore(transaction).sweep(now - _BATCHES_KEPT)
                + await SessionStore(transaction).sweep(now - _SESSIONS_KEPT)
                + await ConsoleUserStore(transaction).sweep(now - _SESSIONS_KEPT)
                + await ExternalStatusStore(transaction).forget(now - _STATUS_KEPT)
                + await IdempotencyStore(transaction).forget(
                    now - self._keys_kept, _KEYS_AT_ONCE
                )
            )


async def _completed(
    transaction: Transaction, session: ExpiredSession
) -> dict[str, object]:
    """What is told of a session of whose batch all is done and some signed, or nothing.

    Its page, if it comes back, is told the same.
    """
    if session.batch is None or session.person is None:
        return {}
    standing = await RequestBatchStore(transaction).standing(
        session.batch, session.person
    )
    if standing.pending or not standing.signed:
        return {}
    payload = standing.told()
    await SessionStore(transaction).complete(session.id, payload)
    return {"eventId": payload["eventId"]}


async def _cause(transaction: Transaction, activation: str) -> dict[str, object]:
    """Servers outside that an activation waited for, and what they said at last.

    Args:
        transaction: the caller's.
        activation: its id.
    """
    pieces, _ = await OutsideMaterialStore(transaction).of(activation)
    failing = [each for each in pieces if each.reason]
    names = [
        name
        for each in failing
        if each.kind is MaterialKind.TIMESTAMP
        for name in each.subject["tsa"]
    ]
    said = "; ".join(dict.fromkeys(each.reason for each in failing))
    cause: dict[str, object] = {"cause": said[:_CAUSE_MOST]} if said else {}
    if names:
        cause["tsa"] = ", ".join(dict.fromkeys(names))
    return cause
