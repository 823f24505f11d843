"""Names that are stored or known outside, as this tree has them.

Of each kind there is a file in `names`. The keys here are for people: what a class or
a module is called shows nowhere.
"""

import argparse
import ast
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from enum import Enum
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from sqlalchemy import Constraint, Dialect, UniqueConstraint
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.types import TypeDecorator

import appliance
from admin_ui import audit_words
from appliance.cli import _EX_PIPE, EX_CONFIG, EX_TEMPFAIL, command_parser
from appliance.database import rights as granted
from appliance.database import row_policies, table_version
from appliance.database.tables import metadata
from appliance.documents.local import folder_mark
from appliance.documents.s3 import blob_store
from appliance.domain import embedding, sandbox, vocab
from appliance.domain.audit import reconciliation
from appliance.domain.documents import inspected
from appliance.domain.errors import SENTENCES, ErrorCode
from appliance.domain.integrators import integrators
from appliance.domain.keys import hsm_keys
from appliance.domain.keys.generation import Generation
from appliance.domain.mail import mails
from appliance.domain.people import login
from appliance.domain.pki import certificates, timestamps, trust_store
from appliance.messaging import redis_link
from appliance.metrics.metrics import FAMILIES
from appliance.operations.metrics.exposition import OF_FILES
from appliance.record import installation_store
from appliance.runtime.logging import FIELDS
from appliance.settings import Settings
from appliance.settings.named_files import Holds
from appliance.web import i18n, problems
from embed.assets import load_assets
from embed.machine import TABLE
from embed.protocol import MESSAGES, PROTOCOL_VERSION
from hsm_config.pkcs11 import master_keys, objects, templates
from hsm_config.provisioning import generation, tsa_keys
from tests.support.installation.api import create_api
from tests.support.installation.installation import Installation
from tests.support.processes.event_loops import run_apart
from worker import failpoints as crash_points
from worker.sandbox.job import EXIT_PROTOCOL

_ROOT: Final = Path(appliance.__file__).resolve().parents[1]
_PACKAGES: Final = ("appliance", "worker", "hsm_config", "embed", "admin_ui")
_EVENT: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_LEVELS: Final = frozenset("debug info warning error exception critical log".split())  # noqa: SIM905 (one line)
_OUTSIDE: Final = re.compile(
    r"__Host-[a-z-]+|X-[A-Z][A-Za-z-]+|RUBRICA_[A-Z_]+|urn:rubrica:\S*|rubrica:[a-z]+"
)
_DIALECTS: Final[tuple[Dialect, ...]] = (
    PGDialect(),  # type: ignore[no-untyped-call]
    SQLiteDialect(),
)


# -- the record ----------------------------------------------------------------


def tables() -> dict[str, Any]:
    """Tables of the record: columns, keys and indexes, on both databases."""
    return {
        table.name: {
            "columns": {column.name: _column(column) for column in table.columns},
            "primary key": [column.name for column in table.primary_key],
            "foreign keys": sorted(
                f"{key.parent.name} -> {key.target_fullname}"
                for key in table.foreign_keys
            ),
            "unique": sorted(_unique(table.constraints)),
            "indexes": sorted(
                f"{index.name} ({', '.join(column.name for column in index.columns)})"
                f"{' unique' if index.unique else ''}"
                for index in table.indexes
            ),
        }
        for table in metadata.sorted_tables
    }


def _column(column: Any) -> str:
    kind = column.type
    kind = kind.impl_instance if isinstance(kind, TypeDecorator) else kind
    types = {kind.compile(dialect=dialect) for dialect in _DIALECTS}
    default = column.server_default
    told = "" if default is None else f" default {default.arg}"
    null = "" if column.nullable else " not null"
    return f"{' / '.join(sorted(types))}{null}{told}"


def _unique(constraints: set[Constraint]) -> Iterator[str]:
    for one in constraints:
        if isinstance(one, UniqueConstraint):
            yield ", ".join(column.name for column in one.columns)


def table_versions() -> dict[str, Any]:
    """Versions of the tables, and rows of the table `installation`."""
    return {
        "known": sorted(table_version.known()),
        "newest": table_version.newest(),
        "installation": [
            installation_store.DOCUMENTS,
            installation_store.GENERATION,
            installation_store.BACKUP,
            installation_store.AUDIT,
        ],
        "restored": str(installation_store.RESTORED),
    }


def rights() -> dict[str, Any]:
    """Users of the database, and what each may do with each table."""
    return {
        "owner": granted.OWNER,
        "rights": {
            table: {role.value: told for role, told in roles.items()}
            for table, roles in granted.RIGHTS.items()
        },
        "policies": {
            f"{policy.table}.{policy.name}": policy.definition
            for policy in row_policies.POLICIES
        },
    }


def words() -> dict[str, list[Any]]:
    """Closed vocabularies: every word that is stored or sent."""
    kinds: dict[str, type[Enum]] = {
        "activation.state": vocab.ActivationState,
        "activation_item.state": vocab.ItemState,
        "intent.state": vocab.IntentState,
        "certificate.kind": vocab.CertificateKind,
        "certificate.state": vocab.CertificateState,
        "credential.state": vocab.CredentialState,
        "certificate.reason": vocab.RevocationReason,
        "audit_event.layer": vocab.StatementFault,
        "environment": vocab.Environment,
        "secrets": vocab.SecretName,
        "audit_event.event": vocab.EventKind,
        "fontName": vocab.FontName,
        "fontStyle": vocab.FontStyle,
        "cuil": vocab.CuilDisplay,
        "person.state": vocab.PersonState,
        "attempt_slot.outcome": vocab.SlotOutcome,
        "vouched_by": vocab.VouchedBy,
        "signature_request.state": vocab.RequestState,
        "restriccion": vocab.Restriction,
        "level": vocab.SignatureLevel,
        "timestamp_policy": vocab.TimestampPolicy,
        "hsm_task.kind": vocab.TaskKind,
        "hsm_task.state": vocab.TaskState,
        "embed_session.state": integrators.SessionState,
        "api_key.flag_reason": integrators.FlagReason,
        "embed_session.fault": integrators.SessionFault,
        "webhook_message.event": vocab.WebhookEvent,
        "webhook_message.state": vocab.MessageState,
        "webhook_endpoint.disabled": vocab.WebhookDisabled,
        "webhook_attempt.failure": vocab.DeliveryFailure,
        "mail_message.kind": mails.MailKind,
        "mail_message.state": mails.MailState,
        "login_attempt.kind": login.AttemptKind,
        "login_attempt.outcome": login.AttemptOutcome,
        "outside_status.kind": certificates.StatusKind,
        "document.findings": inspected.FindingKind,
        "document_original.damage": inspected.Damage,
        "document_repair.damage": inspected.Damage,
        "frame states": embedding.EmbedSessionState,
        "frame legal words": embedding.LegalWord,
        "findings of the audit": reconciliation.Check,
        "trust_anchor.purpose": trust_store.AnchorPurpose,
        "expiry_notice.kind": trust_store.ExpiringKind,
        "tokens": hsm_keys.TokenRole,
        "credential.key_mode": hsm_keys.KeyMode,
        "credential.algorithm": hsm_keys.KeyAlgorithm,
        "signature schemes": hsm_keys.SignatureScheme,
        "digest": hsm_keys.DigestAlgorithm,
        "credential.method_w": hsm_keys.WrapMethod,
        "timestamp failures": timestamps.TimestampRefusal,
        "sandbox operations": sandbox.Operation,
        "sandbox jobs": sandbox.JobKind,
        "error categories": problems.Category,
    }
    return {name: [word.value for word in kind] for name, kind in kinds.items()}


def audit() -> dict[str, Any]:
    """Fields of an audit row's detail, and values that the console has words for."""
    return {
        "fields": sorted(map(str, audit_words.FACTS)),
        "values": {
            name: sorted(str(getattr(one, "value", one)) for one in values)
            for name, values in audit_words.VALUES.items()
        },
        "actors": sorted(map(str, audit_words.ACTORS)),
    }


# -- the surface ---------------------------------------------------------------


def errors() -> dict[str, Any]:
    """Every error code: its status, category, wait and sentences."""
    told: dict[str, Any] = {}
    for code in ErrorCode:
        answer = problems.ANSWERS[code]
        told[code.value] = {
            "status": answer.status.value,
            "category": answer.category.value,
            "retryAfter": answer.retry_after_s,
            **{lang: i18n.translate(lang, SENTENCES[code]) for lang in ("es", "en")},
        }
    return told


def routes() -> dict[str, list[str]]:
    """Addresses of each face, with their methods."""
    return run_apart(_routes())


async def _routes() -> dict[str, list[str]]:
    async with AsyncExitStack() as stack:
        folders = [
            Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(3)
        ]
        parts = await stack.enter_async_context(Installation(folders[0]).api())
        embed = await stack.enter_async_context(
            Installation(folders[1]).frame(load_assets())
        )
        site = await stack.enter_async_context(Installation(folders[2]).console())
        faces = {"api": create_api(parts), "embed": embed.app, "admin": site.app}
        return {
            face: sorted(
                f"{rule.rule} {' '.join(sorted(rule.methods or ()))}"
                for rule in app.url_map.iter_rules()
            )
            for face, app in faces.items()
        }


def frame_protocol() -> dict[str, Any]:
    """Messages between host and frame, and the frame's states."""
    return {
        "version": PROTOCOL_VERSION,
        "messages": {
            message.name: {
                "direction": message.direction.value,
                "fields": [_field(field) for field in message.fields],
            }
            for message in MESSAGES
        },
        "states": {
            row.state.value: {
                "accepts": list(row.accepts),
                "emits": list(row.emits),
                "leads": [state.value for state in row.leads],
            }
            for row in TABLE
        },
    }


def _field(field: Any) -> dict[str, Any]:
    told = {
        "name": field.name,
        "kind": field.kind.value,
        "required": field.required,
        "pattern": field.pattern,
        "most": field.most,
        "allowed": list(field.allowed),
        "fields": [_field(inner) for inner in field.fields],
    }
    return {name: value for name, value in told.items() if value}


# -- the command line and its settings -----------------------------------------


def commands() -> dict[str, Any]:
    """Every command of `rubrica`, with its options and operands."""
    return dict(_commands(command_parser(), "rubrica"))


def _commands(
    parser: argparse.ArgumentParser, name: str
) -> Iterator[tuple[str, list[str]]]:
    own: list[str] = []
    inner: list[tuple[str, argparse.ArgumentParser]] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            inner += [(f"{name} {each}", one) for each, one in action.choices.items()]
        elif not isinstance(action, argparse._HelpAction):
            own.append(_action(action))
    yield name, sorted(own)
    for each, one in inner:
        yield from _commands(one, each)


def _action(action: argparse.Action) -> str:
    told = " ".join(action.option_strings) or action.dest
    if action.choices is not None:
        told += f" {{{','.join(map(str, action.choices))}}}"
    nargs = "" if action.nargs is None else f" nargs={action.nargs}"
    # Of a path the default follows from the machine.
    default = action.default
    is_plain = isinstance(default, str | int | float | bool | NoneType)
    shown = f" default={default!r}" if is_plain and default is not None else ""
    required = " required" if action.required and action.option_strings else ""
    return f"{told}{nargs}{shown}{required}"


def exit_statuses() -> dict[str, Any]:
    """What `rubrica` ends with, wherever it says so itself."""
    return {
        "unusable settings": EX_CONFIG,
        "the database is away": EX_TEMPFAIL,
        "whoever read has gone": _EX_PIPE,
        "of the sandbox's children, a broken protocol": EXIT_PROTOCOL,
        "roles": sorted(point.name for point in entry_points(group="rubrica.roles")),
    }


def settings() -> dict[str, str]:
    """Every key of the settings file: type and default."""
    return dict(_settings(Settings, ""))


def _settings(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str]]:
    for key, field in model.model_fields.items():
        section = _section(field.annotation)
        if section is not None:
            yield from _settings(section, f"{prefix}{key}.")
            continue
        default = field.get_default(call_default_factory=True, validated_data={})
        told = "required" if default is PydanticUndefined else repr(_plain(default))
        # What a named file holds limits no value of the setting.
        known = [each for each in field.metadata if not isinstance(each, Holds)]
        limits = " ".join(sorted(map(str, known)))
        yield f"{prefix}{key}", f"{_type(field.annotation)} = {told} {limits}".rstrip()


def _section(annotation: Any) -> type[BaseModel] | None:
    """The model of a table, or of a list of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_section, get_args(annotation))), None)


def _type(annotation: Any) -> str:
    """A type by the values that it takes."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(word.value) for word in annotation)
    if get_origin(annotation) is None:
        return str(getattr(annotation, "__name__", annotation))
    inner = map(_type, get_args(annotation))
    origin = get_origin(annotation)
    if isinstance(annotation, UnionType) or origin.__name__ in {"Union", "Literal"}:
        return "|".join(inner)
    return f"{origin.__name__}[{', '.join(inner)}]"


def _plain(default: Any) -> Any:
    if isinstance(default, Enum):
        return default.value
    if isinstance(default, list | tuple):
        return [_plain(each) for each in default]
    return str(default) if isinstance(default, Path) else default


# -- logs, metrics, and between processes --------------------------------------


def metrics() -> dict[str, Any]:
    """Every family of figures."""
    return {
        family.name: {
            "kind": family.kind,
            "labels": list(family.labels),
            "buckets": list(family.buckets),
            "roles": sorted(family.roles),
        }
        for family in (*FAMILIES.values(), *OF_FILES)
    }


def log() -> dict[str, list[str]]:
    """Events of the log, as they stand in the code, and all fields that it may have."""
    return {
        "events": sorted(
            {
                text
                for tree in _trees().values()
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and _last(node.func) in _LEVELS
                for argument in node.args[:1]
                if (text := _resolved(argument, tree)) and _EVENT.fullmatch(text)
            }
        ),
        "fields": sorted(FIELDS),
    }


def lookup_purposes() -> list[str]:
    """Purposes of look-up indexes, `*` for what follows from the installation."""
    found = set()
    for tree in _trees().values():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and _last(node.func) in {"index", "indexes", "_indexes"}
                and len(node.args) == 2
            ):
                found.add(_resolved(node.args[0], tree))
    # A purpose that is handed on, put together or not, is named where it comes from.
    return sorted(found - {"", "*/*"})


def outside_names() -> list[str]:
    """Cookies, headers, variables, URNs and Redis names that stand in the code."""
    return sorted(
        {
            node.value
            for tree in _trees().values()
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and _OUTSIDE.fullmatch(node.value)
        }
    )


def domain_labels() -> list[str]:
    """Labels that keep hashes and derived keys of different uses apart."""
    return sorted(
        {
            text
            for tree in _trees().values()
            for node in ast.walk(tree)
            if (text := _text(node)) and re.match(r"rubrica[/ ][a-z/ -]+[\d*\0]", text)
        }
    )


def redis_names() -> dict[str, str]:
    """The queue and its channels."""
    return {
        "queue": redis_link.QUEUE,
        "bell": redis_link.BELL,
        "news": redis_link.NEWS,
        "job": redis_link.RING_JOB,
    }


def hsm_objects() -> dict[str, Any]:
    """Keys of the installation on its tokens; attributes of every kind of key."""
    own = {
        "root": (objects.ROOT_KEY, objects.ROOT_LABEL),
        "ca": (objects.CA_KEY, objects.CA_LABEL),
        "ocsp": (objects.OCSP_KEY, objects.OCSP_LABEL),
        "tsa": (objects.TSA_KEY, objects.TSA_LABEL),
        "keep-alive": (objects.KEEP_ALIVE_KEY, objects.KEEP_ALIVE_LABEL),
        "identity": (objects.IDENTITY_KEY, objects.IDENTITY_LABEL),
    }
    kinds = {
        "public": templates.PUBLIC,
        "resident": templates.RESIDENT_PRIVATE,
        "new private": templates.NEW_PRIVATE,
        "unwrapped private": templates.UNWRAPPED_PRIVATE,
        "master": templates.MASTER,
        "new W": templates.NEW_W,
        "unwrapped W": templates.UNWRAPPED_W,
        "moving W": templates.MOVING_W,
    }
    return {
        "keys": {
            name: [key.token.value, key.cka_id.decode(), label]
            for name, (key, label) in own.items()
        },
        "master 3": master_keys.label_of(3),
        "tsa generation 2": [
            tsa_keys.reference(2).cka_id.decode(),
            tsa_keys.label_of(2),
        ],
        "generation": [
            generation.LABEL,
            generation._id(Generation(3, "0a1b")).decode(),
        ],
        "attributes": {
            name: {attribute.name: value for attribute, value in template.items()}
            for name, template in kinds.items()
        },
    }


def document_places() -> dict[str, str]:
    """Files beside the documents, in a folder and in a bucket."""
    return {
        "mark": folder_mark.FILE,
        "again": blob_store.AGAIN,
        "leaving": blob_store.LEAVING,
    }


def failpoints() -> dict[str, Any]:
    """Points at which a test can have a worker die."""
    return {
        "variable": crash_points.VARIABLE,
        "points": sorted(
            {
                value
                for name, value in vars(crash_points).items()
                if name.isupper() and isinstance(value, str) and name != "VARIABLE"
            }
        ),
    }


# -- reading the code ----------------------------------------------------------


@cache
def _trees() -> Mapping[Path, ast.Module]:
    """Every module of the product, parsed."""
    return {
        path: ast.parse(path.read_bytes())
        for package in _PACKAGES
        for path in sorted((_ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts
    }


def _last(func: ast.expr) -> str:
    return getattr(func, "attr", "") or getattr(func, "id", "")


def _text(node: ast.AST) -> str:
    """A string as it stands in the code, `*` for what is put into it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) or "*" for each in node.values)
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""


def _resolved(node: ast.expr, tree: ast.Module) -> str:
    """A string, also one that its module names."""
    name = node.id if isinstance(node, ast.Name) else ""
    return _constants(tree).get(name) or _text(node)


@cache
def _constants(tree: ast.Module) -> dict[str, str]:
    """Strings that a module names."""
    return {
        node.target.id: _text(node.value)
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.value is not None
    }


NAMES: Final[Mapping[str, Callable[[], Any]]] = {
    "audit": audit,
    "commands": commands,
    "document-places": document_places,
    "domain-labels": domain_labels,
    "errors": errors,
    "exit-statuses": exit_statuses,
    "failpoints": failpoints,
    "frame-protocol": frame_protocol,
    "hsm-objects": hsm_objects,
    "log": log,
    "lookup-purposes": lookup_purposes,
    "metrics": metrics,
    "outside-names": outside_names,
    "redis": redis_names,
    "rights": rights,
    "routes": routes,
    "settings": settings,
    "table-versions": table_versions,
    "tables": tables,
    "words": words,
}
"""By the name of the file."""
