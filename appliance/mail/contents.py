"""What a mail tells, looked up as it is sent: whom, of what, in which language."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Final

from appliance.documents.document_store import DocumentStore
from appliance.domain.appearance.png import logo_png
from appliance.domain.clock import Clock
from appliance.domain.documents.inspected import signed_name
from appliance.domain.ids import RequestId
from appliance.domain.integrators.sign_urls import sign_link_to
from appliance.domain.mail.mails import (
    AFTER_REQUEST,
    ASKS,
    OVER,
    MailClaim,
    MailKind,
)
from appliance.domain.people.identity import Person
from appliance.domain.ports import BlobStore, Sealer
from appliance.domain.requests.process import (
    NO_NOTE,
    ProcessNote,
    in_signing_order,
)
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import PersonState, RequestState
from appliance.integrators.integrator_store import IntegratorStore
from appliance.integrators.logo_store import INSTALLATION, LogoStore
from appliance.mail.invitation_mail import LINK
from appliance.mail.request_mail_store import RequestMailStore, batch_in, requests_in
from appliance.people.console_user_store import EnrolmentStore
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore
from appliance.settings import Settings
from appliance.system.catalogues import DEFAULT, LANGUAGES

_OVER_STATES: Final = frozenset({RequestState.CANCELLED, RequestState.EXPIRED})


class Enrolment(Enum):
    """Whether somebody can sign, or what they need first."""

    DONE = 0
    INVITED = 1
    """They have a link by which they enrol."""
    TO_BE_INVITED = 2
    """It is over: they need another one."""


@dataclass(frozen=True, slots=True)
class MailContent:
    """All that the words of a mail are made of."""

    kind: MailKind
    lang: str
    address: str = field(repr=False)
    name: str = field(repr=False)
    sender: str
    """Name of the integrator, or of the installation."""
    on_behalf: bool
    """Whether the sender is an integrator."""
    at: datetime
    """When what is told happened."""
    documents: tuple[str, ...] = ()
    """File names."""
    requests: tuple[RequestId, ...] = ()
    """What it tells of."""
    unsigned: tuple[tuple[str, RequestState], ...] = ()
    """Of a batch that is over: file names of what is not signed, and why."""
    is_batch: bool = False
    """Whether it tells of a batch that is over."""
    is_alone: bool = False
    """Whether nobody else had to sign."""
    enrolment: Enrolment = Enrolment.DONE
    """How far they are that are asked to sign."""
    enrol_until: datetime | None = None
    """Until when their invitation is good."""
    expires: datetime | None = None
    """Until when the first of them can be signed, or a link be used."""
    message: str = ""
    """What the integrator wrote to the signers."""
    url: str | None = field(default=None, repr=False)
    """Where to go on; None where no address is known."""
    pdf: bytes | None = field(default=None, repr=False)
    """The signed document, if it is attached."""
    logo: bytes | None = field(default=None, repr=False)
    """A PNG file."""
    contact: str = ""
    """Whom people ask for help, as the settings say; empty where they do not."""
    revocation_url: str = ""
    """Where people revoke their certificate by their PIN."""
    help_url: str = ""
    """Where people who cannot sign ask for help."""


class MailContents:
    """Looks up what claimed mails tell.

    Args:
        store: the record.
        documents: the files.
        sealer: with the data key.
        clock: the time.
        settings: of the installation.
    """

    def __init__(
        self,
        store: Database,
        documents: BlobStore,
        sealer: Sealer,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._store = store
        self._documents = documents
        self._sealer = sealer
        self._clock = clock
        self._settings = settings

    async def of(
        self, claim: MailClaim, *, is_past: bool = False
    ) -> MailContent | None:
        """What a mail tells; None where that is over, and nothing is to be told.

        Args:
            claim: it.
            is_past: as it was told once, whatever is over now; no document is read.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            person = await PersonStore(transaction).get(claim.person)
            contact = await PersonStore(transaction).contact(claim.person)
            if person is None or contact is None:
                return None
            requests = await self._requests(transaction, claim, is_past=is_past)
            if requests is None or self._is_over(claim, person):
                return None
            content = await self._content(
                transaction, claim, person, contact.email_sealed, requests
            )
            if claim.kind in ASKS:
                content = await self._with_enrolment(transaction, content, person)
        if claim.kind is MailKind.SIGNED and batch_in(claim.detail) is not None:
            return _of_batch(content, requests)
        if claim.kind is MailKind.SIGNED:
            return await self._with_document(content, requests[0], is_past=is_past)
        return content

    def _is_over(self, claim: MailClaim, person: Person) -> bool:
        if claim.kind is not MailKind.INVITATION:
            return False
        until = datetime.fromisoformat(str(claim.detail["until"]))
        return person.state is not PersonState.INVITED or until <= self._clock.now()

    async def _requests(
        self, transaction: Transaction, claim: MailClaim, *, is_past: bool
    ) -> Sequence[RequestView] | None:
        """The requests that a mail is about; None where all of them are over."""
        if claim.request is None:
            return ()
        ids = requests_in(claim.request, claim.detail)
        if (batch := batch_in(claim.detail)) is not None:
            ids = [
                *await RequestBatchStore(transaction).requests_of(batch, claim.person)
            ]
        found = await RequestStore(transaction).named(ids)
        views = [found[each] for each in ids if each in found]
        if not is_past and claim.kind in ASKS | OVER:
            is_told = self._waits if claim.kind in ASKS else _is_over
            mailing = await self._mails_signers(transaction, views)
            views = [view for view in views if mailing and is_told(view)]
        if not is_past and claim.kind in AFTER_REQUEST and views:
            views = await _asked(transaction, claim, views)
        return views or None

    def _waits(self, view: RequestView) -> bool:
        is_late = view.expires is not None and view.expires <= self._clock.now()
        return view.state is RequestState.PENDING and not is_late

    async def _mails_signers(
        self, transaction: Transaction, views: Sequence[RequestView]
    ) -> bool:
        for view in views:
            found = await IntegratorStore(transaction).by_id(view.integrator)
            return found is not None and found.mails_signers
        return False

    async def _content(
        self,
        transaction: Transaction,
        claim: MailClaim,
        person: Person,
        email_sealed: bytes,
        requests: Sequence[RequestView],
    ) -> MailContent:
        integrator = None
        if claim.integrator is not None:
            integrator = await IntegratorStore(transaction).by_id(claim.integrator)
        note: ProcessNote = NO_NOTE
        url, expires = None, None
        if requests:
            note = await ProcessStore(transaction).note(requests[0].process)
            expires = requests[0].expires
            if integrator is not None and integrator.sign_url:
                url = sign_link_to(integrator.sign_url, requests)
        if claim.kind is MailKind.INVITATION:
            expires = datetime.fromisoformat(str(claim.detail["until"]))
            url = self._link(claim)
        if claim.kind is MailKind.HELP_ASKED:
            url = self._link(claim)
        lang = note.language or person.locale
        return MailContent(
            kind=claim.kind,
            lang=lang if lang in LANGUAGES else DEFAULT,
            address=self._sealer.open(
                email_sealed, table="person", row=person.id, column="email_sealed"
            ).decode(),
            name=person.name,
            sender=self._settings.installation
            if integrator is None
            else integrator.name,
            on_behalf=integrator is not None,
            at=claim.created,
            documents=tuple(view.document_name for view in requests),
            requests=tuple(view.id for view in requests),
            expires=expires,
            message=(note.message or "") if claim.kind in ASKS else "",
            url=url,
            logo=await _logo(transaction, claim.integrator or INSTALLATION),
            contact=self._settings.contact,
            revocation_url=self._settings.revocation_url,
            help_url=self._settings.help_url,
        )

    async def _with_enrolment(
        self, transaction: Transaction, content: MailContent, person: Person
    ) -> MailContent:
        """The same with what somebody has to do first who cannot sign yet."""
        if person.state is not PersonState.INVITED:
            return content
        until = await EnrolmentStore(transaction).open_until(
            person.id, self._clock.now()
        )
        is_open = until is not None
        return replace(
            content,
            enrolment=Enrolment.INVITED if is_open else Enrolment.TO_BE_INVITED,
            enrol_until=until,
        )

    def _link(self, claim: MailClaim) -> str | None:
        if claim.link_sealed is None:
            return None
        return self._sealer.open(
            claim.link_sealed, table=LINK.table, row=claim.id, column=LINK.column
        ).decode()

    async def _with_document(
        self, content: MailContent, view: RequestView, *, is_past: bool
    ) -> MailContent:
        """The same with the newest version of the signed document, if it is small.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            found = await RequestStore(transaction).of_processes([view.process])
            versions = [
                await DocumentStore(transaction).signed(each.id)
                for each in in_signing_order(found[view.process])
            ]
        # What the last one made has all signatures, whatever was appended to an earlier
        # one's meanwhile.
        signed = next((each for each in reversed(versions) if each is not None), None)
        is_alone = len(versions) == 1
        limit = self._settings.mail.attachment_bytes
        pdf = None
        if signed is not None and signed.size_bytes <= limit:
            pdf = (
                b""
                if is_past
                else await self._documents.get(signed.integrator, signed.sha256)
            )
        is_there = pdf is not None
        names = (signed_name(view.document_name),) if is_there else content.documents
        return replace(
            content,
            documents=names,
            pdf=pdf,
            expires=None,
            is_alone=is_alone,
        )


def _of_batch(content: MailContent, requests: Sequence[RequestView]) -> MailContent:
    """The same of a batch that is over: what of it is signed, and what is not."""
    signed = [view for view in requests if view.state is RequestState.SIGNED]
    return replace(
        content,
        documents=tuple(view.document_name for view in signed),
        unsigned=tuple(
            (view.document_name, view.state)
            for view in requests
            if view.state is not RequestState.SIGNED
        ),
        is_batch=True,
        expires=None,
    )


def _is_over(view: RequestView) -> bool:
    return view.state in _OVER_STATES


async def _asked(
    transaction: Transaction, claim: MailClaim, views: Sequence[RequestView]
) -> list[RequestView]:
    """Those of some requests that a mail has asked for already."""
    mails = await RequestMailStore(transaction).to(
        claim.person, min(view.created for view in views), [MailKind.REQUEST]
    )
    asked = [mail for mail in mails if mail.handed_over is not None]
    return [
        view
        for view in views
        if any(mail.tells_of(view.id, view.batch) for mail in asked)
    ]


async def _logo(transaction: Transaction, scope: str) -> bytes | None:
    logos = LogoStore(transaction)
    used = await logos.of(scope)
    picture = None if used is None else await logos.picture(used.sha256)
    return None if picture is None else logo_png(picture)
