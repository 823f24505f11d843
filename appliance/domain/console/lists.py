"""What the console shows of the record: rows of its lists, filters, pages.

Everything is shaped for reading by administrators; nothing here is a secret,
and addresses come masked.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Generic, TypeVar

from appliance.domain.audit.record import AuditRow
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import (
    CredentialId,
    IntegratorId,
    PersonId,
    RequestBatchId,
    RequestId,
)
from appliance.domain.integrators.integrators import (
    ConsoleUser,
)
from appliance.domain.vocab import (
    BatchState,
    CredentialState,
    EventKind,
    PersonState,
    RequestState,
    RevocationReason,
    VouchedBy,
)

PersonPlace = tuple[datetime, PersonId]
"""When somebody was recorded, and who."""


Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows of a list, newest first."""

    rows: tuple[Row, ...]
    following: str | None
    """Cursor of the rows after these, or None at the end."""


_SERIAL: Final = re.compile(r"(?=[0-9a-f]*[0-9])[0-9a-f]{8,40}", re.ASCII)
_CUIL_DIGITS: Final = 11
_NUMBER_DIGITS: Final = 15
"""More would not fit the column."""


@dataclass(frozen=True, slots=True)
class Search:
    """What one box of a list may mean; empty fields are not meant.

    A text may mean several: digits are a number, part of a CUIL and of a name.
    """

    text: str = ""
    """Part of a name, of whoever or whatever is listed."""
    number: int | None = None
    """A `solicitudId`, with or without `#` before it."""
    cuil: str = ""
    """A whole CUIL, 11 digits."""
    serial: str = ""
    """A certificate's serial number, as it is stored."""

    @property
    def is_key(self) -> bool:
        """Somebody is named by what nobody else has."""
        return bool(self.cuil or self.serial)


def read_search(text: str) -> Search:
    """Read what was typed into the box of a list.

    Args:
        text: with or without the dashes, blanks and colons of printed numbers.
    """
    text = text.strip()
    bare = re.sub(r"[-:.\s]", "", text).lower()
    digits = bare if bare.isascii() and bare.isdigit() else ""
    numbered = text.removeprefix("#")
    is_number = numbered.isascii() and numbered.isdigit()
    return Search(
        text=text,
        number=int(numbered) if is_number and len(numbered) <= _NUMBER_DIGITS else None,
        cuil=digits if len(digits) == _CUIL_DIGITS else "",
        serial=bare.lstrip("0") if _SERIAL.fullmatch(bare) else "",
    )


@dataclass(frozen=True, slots=True)
class PeopleFilter:
    """Which persons are listed; empty fields ask for nothing."""

    text: str = ""
    """Part of a name or CUIL, a certificate's serial, or a whole e-mail address."""
    state: PersonState | None = None
    locked: bool = False
    asks_help: bool = False
    """Those with a request for help that is open."""


@dataclass(frozen=True, slots=True)
class PeopleQuery:
    """A `PeopleFilter` as the record is asked: addresses are looked up by HMAC."""

    name: str = ""
    cuil: str = ""
    email_indexes: tuple[str, ...] = field(default=(), repr=False)
    among: tuple[PersonId, ...] | None = None
    """Only these, where a key named them."""
    state: PersonState | None = None
    locked: bool = False
    asks_help: bool = False


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A person in the list."""

    id: PersonId
    cuil: str
    name: str
    state: PersonState
    vouched_by: VouchedBy
    locked_at: datetime | None
    not_after: datetime | None
    """End of the active certificate, or None without one."""
    created: datetime


@dataclass(frozen=True, slots=True)
class RevokedRow:
    """A revoked certificate in the list."""

    credential: CredentialId
    person: PersonId
    name: str
    """Of the person, as recorded."""
    state: CredentialState
    """`revoking` until CRL and OCSP say so, then `revoked`."""
    certificate: bytes = field(repr=False)
    """DER; who writes to the record may write other bytes."""
    revoked_at: datetime | None
    """None for one of an outside CA, and for one that is still to be revoked."""
    reason: RevocationReason | None
    place: datetime
    """By which the list is ordered."""
    serial: str = ""
    """Hexadecimal; empty for a certificate that cannot be read."""


@dataclass(frozen=True, slots=True)
class StoredPerson:
    """A person and what is kept beside them."""

    row: PersonRow
    email_sealed: bytes = field(repr=False)
    counted: int
    """Wrong signing passwords since the last right one."""
    invited_until: datetime | None
    """End of an enrolment link that still opens, or None."""


@dataclass(frozen=True, slots=True)
class PersonView:
    """A person as an administrator sees them."""

    row: PersonRow
    email_masked: str
    counted: int
    invited_until: datetime | None


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """Which requests are listed; empty fields ask for nothing."""

    text: str = ""
    """A `solicitudId`, part of a document's or signer's name, a CUIL, a serial, a
    reference, a `loteId`."""
    among: tuple[PersonId, ...] | None = None
    """Only these signers, where a key named them; the text is not looked for."""
    state: RequestState | None = None
    integrator: str = ""
    """Its code."""
    person: PersonId | None = None
    batch: RequestBatchId | None = None
    """Only what was asked for with it."""
    apart: tuple[RequestBatchId, ...] = ()
    """What was asked for with one of these is left out of what a text finds."""
    unreplaced: bool = False
    """Without what was asked for again."""
    since: datetime | None = None
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class BatchView:
    """A batch of requests: how far it is prepared, and how its requests stand."""

    id: RequestBatchId
    reference: str
    """What its integrator calls it; empty where it does not."""
    integrator_code: str
    integrator_name: str
    created: datetime
    states: Mapping[RequestState, int]
    state: BatchState = BatchState.READY
    documents: int = 0
    """Documents that it was asked for with; 0 for batches of before version 0005."""
    examined: int = 0
    faults: tuple[ApplianceError, ...] = ()
    """Faults of a refused batch, in the order of its documents."""
    reason: str = ""
    """Why its integrator took it back before it was ready."""

    @property
    def total(self) -> int:
        """How many requests it has."""
        return sum(self.states.values())

    @property
    def is_ready(self) -> bool:
        """True if its requests were made."""
        return self.state is BatchState.READY

    @property
    def is_preparing(self) -> bool:
        """True as long as its documents are being examined."""
        return self.state is BatchState.PREPARING


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request in the list."""

    id: RequestId
    document_name: str
    state: RequestState
    reason: str
    origin: str
    person: PersonId
    person_name: str
    integrator_code: str
    integrator_name: str
    created: datetime
    expires: datetime | None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which audit rows are listed; empty fields ask for nothing."""

    text: str = ""
    """A `solicitudId`, a name, a CUIL or a serial of who did it or had it done."""
    event: EventKind | None = None
    actor: str = ""
    """As it stands in the row (`console:…`, `person:…`, `system`)."""
    request: RequestId | None = None
    integrator: str = ""
    """Its code."""
    writer: str = ""
    since: datetime | None = None
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """Whom a text names, to look for them in the audit."""

    people: tuple[PersonId, ...] = ()
    administrators: tuple[str, ...] = ()
    number: int | None = None


@dataclass(frozen=True, slots=True)
class AuditPlace:
    """Where a page of the audit begins: after this row."""

    at: datetime
    writer: str
    n: int


@dataclass(frozen=True, slots=True)
class WriterRow:
    """A process start that wrote to the audit."""

    id: str
    role: str
    started: datetime
    n: int
    """Number of its last row."""
    hash: str
    """Of its last row."""


@dataclass(frozen=True, slots=True)
class ChainView:
    """Whether the rows of a writer hang together."""

    writer: WriterRow
    checked: int
    """Rows that were read and are right."""
    broken_at: int | None
    """Number of the first row that is not what it was, or is missing."""

    @property
    def whole(self) -> bool:
        """Every row is there and unaltered."""
        return self.broken_at is None


@dataclass(frozen=True, slots=True)
class IntegratorNumbers:
    """How an integrator stands, in the list."""

    keys: int
    """API keys that open sessions now."""
    flagged: int
    """Usable keys that were seen where they must never be."""
    domains: int
    blocked: int
    """Origins that tried and are not listed."""
    last_used: datetime | None


@dataclass(frozen=True, slots=True)
class IntegratorFilter:
    """Which integrators are listed; empty fields ask for nothing."""

    text: str = ""
    """Part of a name or code."""
    blocked: bool = False
    """Only those with origins that tried and are not listed."""
    flagged: bool = False
    """Only those with usable keys that were seen where they must never be."""


@dataclass(frozen=True, slots=True)
class HomeNumbers:
    """What waits for somebody."""

    pending: int
    in_progress: int
    failed: int
    """Failed requests that were not asked for again."""
    invited: int
    """Persons who have not chosen their passwords yet."""
    locked: int
    """Persons whose signing password is locked."""
    blocked: int
    """Origins that tried and are not listed."""
    flagged: int
    """Usable API keys that were seen where they must never be."""
    ending: int
    """Certificates in use that end within 30 days."""
    help: int = 0
    """People with a request for help that is open."""


@dataclass(frozen=True, slots=True)
class Names:
    """Words for the ids that stand in audit rows."""

    people: dict[str, str]
    administrators: dict[str, str]
    integrators: dict[str, str]
    """Codes by id."""


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of the audit and words for its ids."""

    page: Page[AuditRow]
    names: Names


@dataclass(frozen=True, slots=True)
class BlockedRow:
    """An origin that tried and is not listed, and whose frame it wanted."""

    integrator: IntegratorId
    integrator_code: str
    origin: str
    last: datetime
    count: int


@dataclass(frozen=True, slots=True)
class ConsoleSecret:
    """A user of the console and what proves them."""

    user: ConsoleUser
    phc: str = field(repr=False)
    totp_sealed: bytes = field(repr=False)
    last_step: int = 0
    """The last TOTP step whose code was used."""


@dataclass(frozen=True, slots=True)
class ConsoleSessionRow:
    """A signed-in user of the console."""

    user: ConsoleUser
    created: datetime
    until: datetime
    proven: datetime | None = None
    """When a code was last given in it."""


@dataclass(frozen=True, slots=True)
class EnrolmentRow:
    """A link by which a person enrols, once."""

    id: str
    person: PersonId
    totp_sealed: bytes = field(repr=False)
    until: datetime
    used: datetime | None
