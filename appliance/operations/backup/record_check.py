"""The database of a backup, brought back and looked at: keys, signatures, the audit."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from appliance.bootstrap import Core, open_core, open_trust
from appliance.bootstrap.core import data_sealer, document_sealer
from appliance.cli.verify import VERDICTS, report_on
from appliance.database.migrate import migrate
from appliance.documents.document_keys import IntegratorDocumentKeys
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import IntegratorId
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.vocab import SecretName
from appliance.identity.login import email_indexes
from appliance.operations.backup import record
from appliance.operations.backup.document_check import SHOWN, Kept, Named
from appliance.record.audit_check import AuditChains
from appliance.record.secret_version_store import SecretVersionStore
from appliance.record.unit_of_work import Database
from appliance.secrets.key_files import KeyFile
from appliance.secrets.sealed_box import LookupKey
from appliance.settings import Settings, SettingsError

_TRIED: Final = 20
"""Values of each column that the data key is tried on."""
_ALL: Final = 0
"""No key has this version: every value is of another."""


def open_record(settings: Settings, dumped: Path, tables: int) -> Named:
    """Bring a dump back and say what it names; the keys open what they locked.

    Args:
        settings: of the scratch installation; its database is empty.
        dumped: what the backup holds; it is gone after.
        tables: their version.

    Raises:
        SettingsError: it cannot be brought back, or the keys are others'.
    """
    record.bring_back(settings, dumped, tables)
    dumped.unlink(missing_ok=True)
    documents = record.named_documents(settings)
    signed = record.signed_documents(settings)
    shredded = record.shredded_integrators(settings)
    try:
        keys = asyncio.run(_opened(settings, {each for each, _ in documents}))
    except ApplianceError as exc:
        msg = f"database: cannot be used ({exc})"
        raise SettingsError(msg) from exc
    return Named(documents, signed, keys, shredded)


async def _opened(settings: Settings, integrators: set[str]) -> dict[str, bytes]:
    """The documents' keys, by integrator, once every key was tried.

    Raises:
        SettingsError: one does not open what it should.
    """
    # As after every restore: tables of an older version are brought along.
    await migrate(settings)
    async with open_core(settings, SystemClock(), "operator") as core:
        await _try_data_key(settings, core.store)
        await _try_lookup_key(settings, core.store)
        keys = IntegratorDocumentKeys(core.store, document_sealer(settings), core.clock)
        found = {}
        for each in sorted(integrators):
            try:
                key = await keys.get(IntegratorId(each))
            except ApplianceError as exc:
                msg = "document_key_file: is not the key of this database's documents"
                raise SettingsError(msg) from exc
            if key is not None:
                found[each] = key
    return found


async def _try_data_key(settings: Settings, store: Database) -> None:
    """Open some of what the data key sealed.

    Raises:
        SettingsError: it does not open it.
    """
    sealer = data_sealer(settings)
    async with store.read() as transaction:
        for column in SecretVersionStore(transaction).sealed_columns(SecretName.DATA):
            versions = SecretVersionStore(transaction)
            for each in await versions.sealed_otherwise(column, _ALL, "", _TRIED):
                place = {"table": column.table, "row": each.row}
                try:
                    sealer.open(each.sealed, **place, column=column.column)
                except ApplianceError as exc:
                    msg = (
                        f"data_key_file: does not open {column.table}.{column.column}: "
                        "it is not this database's key"
                    )
                    raise SettingsError(msg) from exc


async def _try_lookup_key(settings: Settings, store: Database) -> None:
    """Find some people by their addresses.

    Raises:
        SettingsError: they are not found.
    """
    sealer = data_sealer(settings)
    lookup = LookupKey(KeyFile(settings.secrets.lookup_key_file))
    async with store.read() as transaction:
        people = await SecretVersionStore(transaction).emails_otherwise(
            _ALL, "", _TRIED
        )
    for one in people:
        address = sealer.open(
            one.sealed, table="person", row=one.person, column="email_sealed"
        ).decode()
        if one.index not in email_indexes(lookup, address):
            msg = "lookup_key_file: finds nobody: it is not this database's key"
            raise SettingsError(msg)


Looked = tuple[str, str, tuple[str, ...]]
"""Name of a part, what is told of it, its faults."""


async def look_at_record(settings: Settings, kept: Sequence[Kept]) -> list[Looked]:
    """Verify signed documents by the backup's own roots, and read the audit again.

    Args:
        settings: of the scratch installation, with a sandbox that answers.
        kept: the documents.
    """
    async with open_core(settings, SystemClock(), "operator") as core:
        return [await _signatures(core, kept), await _audit(core)]


async def _signatures(core: Core, kept: Sequence[Kept]) -> Looked:
    name = "signatures"
    if not await open_trust(core).roots(AnchorPurpose.SIGNERS):
        return name, "", ("there is no root certificate in it",)
    faults = []
    for each in kept:
        try:
            report = await report_on(core, each.path.read_bytes())
        except ApplianceError as exc:
            faults.append(f"{each.name}: cannot be looked at ({exc})")
            continue
        if not report.valid:
            reasons = [one.reason for one in report.signatures if one.reason]
            verdict = VERDICTS[report.verdict]
            faults.append(f"{each.name}: {verdict} {'; '.join(reasons)}".rstrip())
    return name, f"{len(kept)} signed documents verified", tuple(faults[:SHOWN])


async def _audit(core: Core) -> Looked:
    chains = rows = 0
    faults = []
    async for chain in AuditChains(core.store).every():
        chains += 1
        rows += chain.checked
        if not chain.whole:
            faults.append(
                f"chain of {chain.writer.role} {chain.writer.id}: row "
                f"{chain.broken_at} is missing, altered or added"
            )
    return "audit", f"{chains} chains, {rows} rows", tuple(faults[:SHOWN])
