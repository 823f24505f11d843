"""The words of integrators' webhooks, in and out.

Source: docs/webhooks.md.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, NoReturn

from pydantic import Field
from pydantic_core import core_schema
from quart import request

from appliance.api.wire import backend_answers, processes, query, representations
from appliance.api.wire.fields import (
    MOMENTS,
    Body,
    Rule,
    boolean,
    moment,
    shown_text,
    text,
    word,
)
from appliance.domain.errors import (
    NOT_WITH,
    ApplianceError,
    FieldInvalidError,
    FieldMissingError,
)
from appliance.domain.ids import ProcessId
from appliance.domain.integrators.webhook_log import (
    DeliveryFilter,
    LoggedMessage,
    Replayed,
)
from appliance.domain.integrators.webhooks import (
    WebhookAttempt,
    WebhookEndpoint,
)
from appliance.domain.vocab import (
    DeliveryFailure,
    MessageState,
    WebhookDisabled,
    WebhookEvent,
)
from appliance.record import pagination
from appliance.webhooks.endpoint_address import ADDRESS_CHARS
from appliance.webhooks.endpoints import LABEL_CHARS, EndpointChange, NewWebhookSecret

PAGE: Final = 50
"""Deliveries of a page, where nothing else is asked for."""
_FILTERS: Final = (
    "estado",
    "tipo",
    "procesoId",
    "desde",
    "hasta",
    "limite",
    "cursor",
)
STATES: Final = {
    MessageState.PENDING: "pendiente",
    MessageState.DELIVERED: "entregada",
    MessageState.GIVEN_UP: "abandonada",
    MessageState.WITHDRAWN: "retirada",
}
WHY_DISABLED: Final[Mapping[str, str]] = {
    WebhookDisabled.BY_INTEGRATOR: "pedido",
    WebhookDisabled.GONE: "respuesta_410",
    WebhookDisabled.FAILING: "fallas",
}
FAILURES: Final[Mapping[str, str]] = {
    DeliveryFailure.TIMEOUT: "demora",
    DeliveryFailure.CONNECTION: "conexion",
    DeliveryFailure.NAME: "nombre",
    DeliveryFailure.TLS: "tls",
    DeliveryFailure.REFUSED_ADDRESS: "direccion_no_permitida",
    DeliveryFailure.BAD_URL: "url",
    DeliveryFailure.REDIRECT: "redireccion",
    DeliveryFailure.STATUS: "estado_http",
    DeliveryFailure.GONE: "respuesta_410",
    DeliveryFailure.BAD_ANSWER: "respuesta_invalida",
    DeliveryFailure.SECRET: "secreto",
}
_NAMES: Final = {"url": "url", "label": "nombre"}
"""Fields of refusals, by what the record calls them."""


def _events() -> Rule:
    """A list of types of events, each once; an empty one is of all."""
    schema = core_schema.list_schema(
        core_schema.enum_schema(WebhookEvent, [*WebhookEvent], sub_type="str"),
        strict=True,
        max_length=len(WebhookEvent),
        fail_fast=True,
    )
    return Rule(schema, "array", tuple(each.value for each in WebhookEvent), "words")


class NewEndpoint(Body):
    """What a new webhook is made of."""

    url: Annotated[str, text(ADDRESS_CHARS)]
    label: Annotated[str | None, shown_text(LABEL_CHARS)] = Field(None, alias="nombre")
    events: Annotated[list[WebhookEvent], _events()] = Field(
        default_factory=list, alias="eventos"
    )


class WebhookChange(Body):
    """What is to be different of a webhook."""

    KEYWORDS: ClassVar[Mapping[str, Any]] = {"minProperties": 1}
    url: Annotated[str | None, text(ADDRESS_CHARS)] = None
    label: Annotated[str | None, shown_text(LABEL_CHARS)] = Field(None, alias="nombre")
    events: Annotated[list[WebhookEvent] | None, _events()] = Field(
        None, alias="eventos"
    )
    is_on: Annotated[bool | None, boolean()] = Field(None, alias="habilitado")


class Rotation(Body):
    """How a secret is to be followed by another one."""

    at_once: Annotated[bool, boolean()] = Field(default=False, alias="inmediata")


class Nothing(Body):
    """A body that may be left out, since it says nothing."""


class _GivenUp(StrEnum):
    """`estado` of what is to be sent again."""

    GIVEN_UP = "abandonada"


class ReplayWanted(Body):
    """Which deliveries are to be sent again: of a time, or all given up."""

    KEYWORDS: ClassVar[Mapping[str, Any]] = {
        "if": {"required": ["estado"]},
        "then": {"maxProperties": 1},
        "else": {"required": ["desde", "hasta"]},
    }
    since: Annotated[datetime | None, moment()] = Field(None, alias="desde")
    until: Annotated[datetime | None, moment()] = Field(None, alias="hasta")
    state: Annotated[_GivenUp | None, word(_GivenUp)] = Field(None, alias="estado")


def change(body: Mapping[str, object]) -> EndpointChange:
    """Read what is to be different of a webhook.

    Raises:
        FieldMissingError: nothing is.
        FieldInvalidError: a value of another type or out of its range.
        ApplianceError: `FIELD_UNKNOWN`.
    """
    read = WebhookChange.read(body)
    if not body:
        raise FieldMissingError("url", ("url", "nombre", "eventos", "habilitado"))
    return EndpointChange(
        url=read.url,
        label=read.label,
        events=None if read.events is None else tuple(read.events),
        is_on=read.is_on,
    )


def renamed(refused: FieldInvalidError) -> NoReturn:
    """Tell of a refused field by its name here.

    Raises:
        FieldInvalidError: always.
    """
    allowed = refused.extras.get("allowed")
    told = [str(each) for each in allowed] if isinstance(allowed, list) else None
    raise FieldInvalidError(
        _NAMES.get(refused.field, refused.field), told, "string"
    ) from refused


def replayed_ones(body: Mapping[str, object]) -> DeliveryFilter:
    """Read which deliveries are to be sent again: of a time, or all given up.

    Raises:
        FieldMissingError: neither is said, or an end of the time is not.
        FieldInvalidError: both are, or the time ends before it begins.
        ApplianceError: `FIELD_UNKNOWN`.
    """
    read = ReplayWanted.read(body)
    if read.state is not None:
        for name, given in (("desde", read.since), ("hasta", read.until)):
            if given is not None:
                raise FieldInvalidError(
                    name, sentence=NOT_WITH, params={"other": "estado"}
                )
        return DeliveryFilter(state=MessageState.GIVEN_UP)
    for name, given in (("desde", read.since), ("hasta", read.until)):
        if given is None:
            raise FieldMissingError(name, MOMENTS, "string")
    if read.since and read.until and read.until <= read.since:
        raise FieldInvalidError("hasta", "a time after desde", "string")
    return DeliveryFilter(since=read.since, until=read.until)


def asked() -> DeliveryFilter:
    """Read the query string of the list of deliveries.

    Raises:
        QueryInvalidError: `QUERY_INVALID`, `QUERY_UNKNOWN`, naming the parameter.
    """
    query.demand_known(_FILTERS)
    given = request.args
    limit = query.limit(given.get("limite"))
    process = given.get("procesoId")
    cursor = given.get("cursor")
    return DeliveryFilter(
        state=_state(given.get("estado")),
        kind=_kind(given.get("tipo")),
        process=None if process is None else _process(process),
        since=processes.asked_instant("desde"),
        until=processes.asked_instant("hasta"),
        before=None if cursor is None else _before(cursor),
        limit=PAGE if limit is None else limit,
    )


def _state(written: str | None) -> MessageState | None:
    if written is None:
        return None
    for state, told in STATES.items():
        if told == written:
            return state
    raise query.QueryInvalidError("estado", *STATES.values())


def _kind(written: str | None) -> WebhookEvent | None:
    if written is None:
        return None
    try:
        return WebhookEvent(written)
    except ValueError as exc:
        raise query.QueryInvalidError("tipo", *WebhookEvent) from exc


def _process(written: str) -> ProcessId:
    try:
        return processes.process_id(written)
    except ApplianceError as exc:
        raise query.QueryInvalidError("procesoId", "as an answer gave it") from exc


def _before(cursor: str) -> tuple[datetime, str]:
    try:
        place = pagination.read_instant(cursor)
    except ApplianceError as exc:
        raise query.QueryInvalidError("cursor", "as Link gave it") from exc
    if place is None:
        raise query.QueryInvalidError("cursor", "as Link gave it")
    return place


def cursor_after(last: LoggedMessage) -> str:
    """The cursor of the page that begins after a delivery.

    Args:
        last: of the present page.
    """
    return pagination.instant(last.message.created, last.message.id)


def endpoint(of: WebhookEndpoint) -> backend_answers.Webhook:
    """A webhook.

    Args:
        of: it.
    """
    why = of.disabled_reason
    return {
        "webhookId": of.id,
        "url": of.url,
        "nombre": of.label,
        "eventos": [*of.events],
        "habilitado": of.is_on,
        "deshabilitado": representations.maybe_instant(of.disabled),
        "motivo": None if why is None else WHY_DISABLED.get(why, why),
        "fallaDesde": representations.maybe_instant(of.failing_since),
        "secretoAnteriorHasta": representations.maybe_instant(of.former_until),
        "creado": representations.instant(of.created),
    }


def with_secret(made: NewWebhookSecret) -> backend_answers.WebhookWithSecret:
    """A webhook and, this once, its secret.

    Args:
        made: both.
    """
    return {**endpoint(made.endpoint), "secreto": made.secret}


def delivery(logged: LoggedMessage) -> backend_answers.Delivery:
    """An element of the list of deliveries.

    Args:
        logged: the delivery; its last try is told of.
    """
    message = logged.message
    is_pending = message.state is MessageState.PENDING
    last = logged.attempts[-1:]
    return {
        "entregaId": message.id,
        "tipo": message.kind,
        "procesoId": logged.process,
        "solicitudId": message.request,
        "estado": STATES[message.state],
        "intentos": message.tries,
        "proximoIntento": representations.instant(message.due) if is_pending else None,
        "ultimoIntento": _attempt(last[0]) if last else None,
        "creada": representations.instant(message.created),
    }


def delivery_detail(logged: LoggedMessage) -> backend_answers.DeliveryDetail:
    """All of one delivery: with its body, and each try.

    Args:
        logged: the delivery with its tries.
    """
    return {
        **delivery(logged),
        "cuerpo": json.loads(logged.message.body),
        "historial": [_attempt(each) for each in logged.attempts],
    }


def replayed(done: Replayed) -> backend_answers.ReplayStarted:
    """What was sent again.

    Args:
        done: it.
    """
    following = done.following
    return {
        "reenviadas": done.count,
        "siguiente": None if following is None else following.isoformat(),
    }


def _attempt(attempt: WebhookAttempt) -> backend_answers.DeliveryAttempt:
    failure = attempt.failure
    return {
        "cuando": representations.instant(attempt.at),
        "estadoHttp": attempt.status,
        "falla": None if failure is None else FAILURES.get(failure, failure),
        "milisegundos": attempt.took_ms,
        "respuesta": attempt.answer or None,
    }
