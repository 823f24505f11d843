"""A record with any number of credentials, and one signature of it at a time.

The keys that sign are made in the HSM and wrapped; all other credentials are
clones of them, row by row with a person, a CUIL and a lock of their own. Clones
are re-wrapped for real and sign for real; what they share is the private key.
"""

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import insert, select

from appliance.bootstrap import Core, open_trust
from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.documents.document_store import DocumentStore
from appliance.domain.documents.inspected import Inspection, PageBox
from appliance.domain.errors import FieldInvalidError, TsaUnavailableError
from appliance.domain.ids import (
    ActivationId,
    CredentialId,
    DocumentId,
    IntegratorId,
    PersonId,
    new_id,
)
from appliance.domain.keys.hsm_keys import DigestAlgorithm, KeyMode, WrappedKey
from appliance.domain.people.identity import (
    Credential,
    Integrator,
    credential_aad,
    parse_cuil,
)
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.requests.intake import NewRequest, StoredDocument
from appliance.domain.signing.activation import (
    Activation,
    ActivationDocument,
    ActivationFormat,
    Seal,
)
from appliance.domain.signing.consent import Consent, ConsentSigner, consent_of
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import CredentialState, SignatureLevel, VouchedBy
from appliance.keys.activation_format import PinnedFormat
from appliance.keys.activation_keys import PublishedKeys
from appliance.keys.credential_store import CredentialStore, join
from appliance.keys.key_encryption import lock_outer, seal_to
from appliance.people.person_store import PersonStore
from appliance.pki.ca_certificates import AuthorityFiles
from appliance.pki.publication import Publishing
from appliance.pki.validation.pinned_anchors import PinnedAnchors
from appliance.pki.validation.validation_material import ValidationSource
from appliance.requests.inspection import Inspections
from appliance.requests.request_store import RequestStore
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.claims import Claims
from appliance.signing.signing_order import SigningOrder
from tests.support.documents import pdfs
from tests.support.pki.outside_ca import OutsideCa, der, named
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession
from worker.pades.appearance.fonts import StampFonts
from worker.signing.activation_keys import ActivationFolder, ActivationKeys
from worker.signing.completion import Completion
from worker.signing.consent_journal import ConsentJournal
from worker.signing.credential_statement import CredentialStatements
from worker.signing.document_signer import DocumentSigner
from worker.signing.level_extension import Levels
from worker.signing.outside_material import MaterialReader

HOST: Final = "bench"
_BATCH: Final = 1_000
_PAGE: Final = PageBox(0, 0, 595.28, 841.89, 0)
_MS: Final = 1000.0


class _NoTsa:
    """Of signatures that are not stamped."""

    async def stamp(self, imprint: bytes, digest: DigestAlgorithm) -> bytes:
        """See `TimestampAuthority`."""
        raise TsaUnavailableError(f"not of this bench: {digest}, {len(imprint)}")

    async def stamp_all(
        self, imprints: Sequence[bytes], digest: DigestAlgorithm
    ) -> list[bytes]:
        """See `OwnTimestampAuthority`."""
        raise TsaUnavailableError(f"not of this bench: {digest}, {len(imprints)}")


def _levels(core: Core) -> Levels:
    """Of B-B, which adds nothing."""
    publishing = Publishing(core.store, core.clock, core.settings.pki, HOST)
    nobody = AuthorityFiles(b"", b"", "", "", b"")
    source = ValidationSource(core.store, core.clock, nobody, publishing)
    return Levels(_NoTsa(), source, core.clock, dt.timedelta(days=1), dt.timedelta(1))


def _completion(core: Core, claims: Claims, levels: Levels) -> Completion:
    """Completes at B-B: what is measured is the key's place."""
    inspections = Inspections(core.store, core.documents, core.inspector, core.clock)
    return Completion(
        claims,
        core.documents,
        SigningOrder(core.store, inspections, core.clock),
        levels,
        replace(core.settings.signature_profile, level=SignatureLevel.B_B),
        is_internal=bool,
        # Nothing of servers outside is needed.
        materials=cast("MaterialReader", None),
    )


@dataclass(frozen=True, slots=True)
class Owner:
    """A key that was made in the HSM, and what unlocks it."""

    key: WrappedKey
    unlock: bytes


def cuils(count: int) -> list[str]:
    """So many valid CUILs."""
    found: list[str] = []
    number = 10_000_000
    while len(found) < count:
        for digit in range(10):
            try:
                found.append(parse_cuil(f"20{number}{digit}"))
            except FieldInvalidError:
                continue
            break
        number += 1
    return found


class CredentialPlace:
    """One installation's record, and a worker's parts over it.

    Args:
        core: of the installation.
        session: its HSM.
        owners: whose keys its credentials have, in turn.
        fonts: of the stamp.
        folder: for the activation keys.
    """

    def __init__(
        self,
        core: Core,
        session: HsmSession,
        owners: Sequence[Owner],
        fonts: StampFonts,
        folder: Path,
    ) -> None:
        self.core = core
        self._owners = owners
        self._folder = ActivationFolder(folder)
        self._ca = OutsideCa(core.clock.now().replace(microsecond=0))
        installation = core.settings.installation
        self._keys = ActivationKeys(
            self._folder,
            PublishedKeys(core.store),
            session,
            core.clock,
            HOST,
            installation,
            PinnedFormat(core.settings.activation_format_file),
            core.settings.host_key_file,
        )
        self._claims = Claims(
            core.store,
            core.completion_notifier,
            core.clock,
            core.settings.signing,
            f"signing/{HOST}/1",
            core.process,
        )
        levels = _levels(core)
        self._completion = _completion(core, self._claims, levels)
        self._signer = DocumentSigner(
            self._claims,
            core.documents,
            self._completion,
            levels,
            session,
            self._keys,
            fonts,
            core.clock,
            installation,
            GenerationCheck(session, core.store),
            Inspections(core.store, core.documents, core.inspector, core.clock),
            CredentialStatements(
                (der(self._ca.root), der(self._ca.issuing)),
                PinnedAnchors(core.settings.outside_anchors_file),
                PinnedFormat(core.settings.activation_format_file),
                partial(open_trust(core).roots, AnchorPurpose.SIGNERS),
            ),
            ConsentJournal(self._folder, core.clock, dt.timedelta(seconds=60)),
        )
        self._integrator = IntegratorId(new_id())
        self._document = ""
        self._document_row = DocumentId("")

    async def fill(self, count: int) -> None:
        """Record so many persons, each with a credential."""
        engines = open_engines(self.core.settings)
        numbers = cuils(count)
        for start in range(0, count, _BATCH):
            rows = [
                self._person(start + at, cuil)
                for at, cuil in enumerate(numbers[start : start + _BATCH])
            ]
            async with engines.writer.begin() as connection:
                await connection.execute(
                    insert(tables.person), [person for person, _ in rows]
                )
                await connection.execute(
                    insert(tables.credential), [credential for _, credential in rows]
                )
        if engines.writer.dialect.name == "postgresql":
            # As autovacuum would, some time later.
            async with engines.writer.begin() as connection:
                await connection.exec_driver_sql("ANALYZE")
        await engines.dispose()
        pdf = pdfs.one_page()
        integrator = Integrator(self._integrator, "bench", "Bench")
        async with self.core.store.write() as transaction:
            await PersonStore(transaction).add_integrator(integrator)
        self._document = await self.core.documents.put(self._integrator, pdf)
        async with self.core.store.write() as transaction:
            made = StoredDocument(
                DocumentId(new_id()),
                self._integrator,
                self._document,
                Inspection(len(pdf), (_PAGE,), (), 0, None),
            )
            kept = await DocumentStore(transaction).add(made, self.core.clock.now())
        self._document_row = kept.id

    def _person(self, number: int, cuil: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The rows of a person and their credential."""
        owner = self._owners[number % len(self._owners)]
        key, now = owner.key, self.core.clock.now()
        subject = named("Ana Núñez", f"CUIL {cuil}")
        certificate = self._ca.certify(key.spki, cuil, subject=subject)
        person, credential = PersonId(new_id()), CredentialId(new_id())
        aad = credential_aad(
            self.core.settings.installation, person, credential, 1, key.spki
        )
        return {
            "id": person,
            "cuil": cuil,
            "name": "Ana Núñez",
            "email_sealed": b"-",
            "email_index": f"{number:064}",
            "locale": "es",
            "state": "active",
            "vouched_by": VouchedBy.DEMO.value,
            "created": now,
        }, {
            "id": credential,
            "person": person,
            "key_mode": KeyMode.WRAPPED.value,
            "algorithm": key.algorithm.value,
            "key_version": 1,
            "key_token": "firma",
            "master": key.master,
            "blob_w": key.blob_w,
            "method_w": key.method_w.value,
            "method_k": key.method_k.value,
            "outer": lock_outer(owner.unlock, key.blob_k, aad),
            "spki": key.spki,
            # One of its own for each row, whatever they share.
            "spki_sha256": f"{number:064}",
            "certificate": der(certificate),
            "chain": join((der(self._ca.issuing),)),
            "not_before": now - dt.timedelta(days=1),
            "not_after": now + dt.timedelta(days=30),
            "vouched_by": VouchedBy.DEMO.value,
            "state": CredentialState.ACTIVE.value,
            "created": now,
        }

    async def people(self) -> list[PersonId]:
        """Everybody, in the order of their ids, which says nothing."""
        engines = open_engines(self.core.settings)
        async with engines.reader.connect() as connection:
            column = tables.person.c.id
            rows = await connection.execute(select(column).order_by(column))
            found = [PersonId(row.id) for row in rows]
        await engines.dispose()
        return found

    async def sign(self, person: PersonId) -> float:
        """Sign a document by a person's key; milliseconds of the worker's part.

        Not in the time: what a front does (the password, the activation).
        In it: claim, open the seal and the lock, prepare, intent, unwrap, sign,
        destroy, commit, check, store the document durably, publish.
        """
        activation = await self._activate(person)
        begun = time.perf_counter()
        work = await self._claims.claim_next()
        if work is None or work.claim.id != activation:
            msg = "another activation was waiting"
            raise RuntimeError(msg)
        key = await self._signer.unlock(work)
        await self._signer.sign(work, work.claim.documents, key)
        return (time.perf_counter() - begun) * _MS

    async def _activate(self, person: PersonId) -> ActivationId:
        """Make a request and an activation of it, as a front does."""
        await self._keys.keep()
        now = self.core.clock.now()
        activation, params = ActivationId(new_id()), SignParameters()
        async with self.core.store.write() as transaction:
            credential = await CredentialStore(transaction).active(person)
            if credential is None:
                msg = "a person without a credential"
                raise RuntimeError(msg)
            request = await RequestStore(transaction).add(self._request(person, now))
            new = Activation(
                id=activation,
                person=person,
                credential=credential.id,
                factors=("pwd", "otp", "sign-pwd"),
                created=now,
                claim_by=now + dt.timedelta(seconds=60),
                documents=(
                    ActivationDocument(
                        0, request, self._document, params, params.sha256(request)
                    ),
                ),
            )
            signer = await PersonStore(transaction).get(person)
            view = await RequestStore(transaction).get(request)
            if signer is None or view is None:
                msg = "a request of nobody's"
                raise RuntimeError(msg)
            consent = consent_of(
                new,
                ConsentSigner.of(signer, credential),
                {0: view},
                self._completion.profile_of,
            )
            seal = self._seal(consent, credential)
            await ActivationStore(transaction).begin(new, [seal])
        return activation

    def _request(self, person: PersonId, now: dt.datetime) -> NewRequest:
        return NewRequest(
            person=person,
            integrator=self._integrator,
            document=self._document_row,
            name="bench.pdf",
            origin="operador",
            created=now,
            expires=None,
        )

    def _seal(self, consent: Consent, credential: Credential) -> Seal:
        """What the owner's password would have a front seal to this host."""
        epoch = ActivationFormat.WHOLE.epoch_at(consent.activation.created)
        public = self._folder.make(epoch)
        unlock = self._unlock(credential)
        data = consent.data(ActivationFormat.WHOLE)
        return Seal(HOST, epoch, seal_to(public, unlock, data))

    def _unlock(self, credential: Credential) -> bytes:
        """What the owner's password would give."""
        for owner in self._owners:
            if owner.key.spki == credential.spki:
                return owner.unlock
        msg = "a credential of nobody's"
        raise RuntimeError(msg)
