"""Who signs in a session of the frame, and how long it lasts, on both databases.

Source: decisions "Iframe", "a known person", "dni, cuil", "attempts".
"""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest

from appliance.domain.embedding import EmbedSessionState, LegalWord
from appliance.domain.errors import ApplianceError, CodeUsedError, ErrorCode
from appliance.domain.vocab import (
    CredentialState,
    EventKind,
    PersonState,
    RequestState,
)
from appliance.keys.credential_store import CredentialStore
from appliance.people.person_store import PersonStore
from appliance.requests.request_store import RequestStore
from tests.support.installation.frame import (
    ADDRESS,
    CERTIFICATE,
    FrameServices,
    Someone,
    refused,
)
from tests.support.installation.installation import Installation
from tests.support.installation.record import new_credential

PDF = b"%PDF one"


@pytest.fixture
async def frame_services(tmp_path: Path, each_url: str) -> AsyncIterator[FrameServices]:
    """The frame's services on a fresh database."""
    async with Installation(tmp_path, each_url).frame_services() as made:
        yield made


async def test_request_is_made_with_the_right_code(
    frame_services: FrameServices,
) -> None:
    """Before it there is none; after it there is one, of the session's origin."""
    someone = await frame_services.add_person()
    opened = await frame_services.open()
    taken = await frame_services.framing.take_document(
        opened.view.session, "a.pdf", PDF
    )
    assert taken.session.request is None
    assert await frame_services.framing.identify(
        taken.session, frame_services.claim(someone), ADDRESS
    )
    matched = await frame_services.again(taken.session)
    view = await frame_services.framing.prove(
        matched, frame_services.code(someone), ADDRESS
    )

    assert view.state is EmbedSessionState.AUTHORISED
    assert view.session.request is not None
    async with frame_services.services.store.read() as transaction:
        request = await RequestStore(transaction).get(view.session.request)
    assert request is not None
    assert request.origin == "sesion"
    assert request.expires == view.session.until


async def test_signer_is_told_of_only_once_proven(
    frame_services: FrameServices,
) -> None:
    """A match alone reveals neither name nor number."""
    someone = await frame_services.add_person()
    opened = await frame_services.open()
    await frame_services.framing.identify(
        opened.view.session, frame_services.claim(someone), ADDRESS
    )
    matched = await frame_services.signing.view(opened.view.session)
    assert matched.signer is None

    session = await frame_services.proven(someone)
    view = await frame_services.signing.view(session)
    assert view.signer is not None
    assert view.signer.cuil == someone.cuil


@pytest.mark.parametrize("trial", [True, False])
async def test_trial_claims_no_legal_effect(tmp_path: Path, *, trial: bool) -> None:
    """Whoever vouched for the signer: the setting decides what it may be called."""
    async with Installation(tmp_path, trial=trial).frame_services() as services:
        session = await services.proven(await services.add_person())
        view = await services.signing.view(session)

    assert view.signer is not None
    word = LegalWord.DEMO if trial else LegalWord.ELECTRONIC
    assert view.signer.legal is word


@pytest.mark.parametrize("case", ["unknown", "address", "disabled"])
async def test_who_does_not_fit_is_told_the_same(
    frame_services: FrameServices, case: str
) -> None:
    """IDENTITY_MISMATCH whatever the reason."""
    state = PersonState.DISABLED if case == "disabled" else PersonState.ACTIVE
    someone = await frame_services.add_person(state=state)
    changes = {
        "unknown": {"cuil": "20055361682"},
        "address": {"email": "otra@demo.example"},
        "disabled": {},
    }[case]
    opened = await frame_services.open()
    claim = frame_services.claim(someone, **changes)

    error = await refused(
        frame_services.framing.identify(opened.view.session, claim, ADDRESS),
        ErrorCode.IDENTITY_MISMATCH,
    )
    assert error.extras == {}


async def test_invited_person_has_to_enrol_first(frame_services: FrameServices) -> None:
    """Somebody without secrets is not asked for a code."""
    someone = await frame_services.add_person(state=PersonState.INVITED)
    opened = await frame_services.open()

    await refused(
        frame_services.framing.identify(
            opened.view.session, frame_services.claim(someone), ADDRESS
        ),
        ErrorCode.SIGNER_PENDING_APPROVAL,
    )


async def test_dni_of_two_people_asks_for_the_cuil(
    frame_services: FrameServices,
) -> None:
    """One number, two CUILs: nobody is guessed."""
    someone = await frame_services.add_person("20267565393")
    await frame_services.add_person("27267565398")
    opened = await frame_services.open()
    claim = frame_services.claim(someone, cuil=None, dni="26756539")

    assert not await frame_services.framing.identify(
        opened.view.session, claim, ADDRESS
    )


async def test_dni_with_another_address_tells_nothing(
    frame_services: FrameServices,
) -> None:
    """It asks for the CUIL, as for a number that nobody has."""
    someone = await frame_services.add_person()
    opened = await frame_services.open()
    known = frame_services.claim(
        someone, cuil=None, dni="26756539", email="x@demo.example"
    )
    unknown = frame_services.claim(someone, cuil=None, dni="11222333")

    assert not await frame_services.framing.identify(
        opened.view.session, known, ADDRESS
    )
    assert not await frame_services.framing.identify(
        opened.view.session, unknown, ADDRESS
    )


async def test_code_works_once(frame_services: FrameServices) -> None:
    """In another session it is said to be used; it counts as no wrong try."""
    someone = await frame_services.add_person()
    sessions = []
    for _ in range(2):
        opened = await frame_services.open()
        await frame_services.framing.identify(
            opened.view.session, frame_services.claim(someone), ADDRESS
        )
        sessions.append(await frame_services.again(opened.view.session))
    code = frame_services.code(someone)
    await frame_services.framing.prove(sessions[0], code, ADDRESS)

    for _ in range(3):
        with pytest.raises(CodeUsedError) as caught:
            await frame_services.framing.prove(sessions[1], code, ADDRESS)
        assert caught.value.code is ErrorCode.OTP_INVALID
        assert caught.value.extras["nextCodeIn"] in range(1, 31)
    wrong = await frame_services.services.audited(EventKind.SESSION_OTP_WRONG)
    assert [event.detail["codeUsed"] for event in wrong] == [True] * 3
    frame_services.services.clock.forward(30)
    view = await frame_services.framing.prove(
        sessions[1], frame_services.code(someone), ADDRESS
    )
    assert view.signer is not None


async def test_wrong_codes_delay_here_and_nowhere_else(
    frame_services: FrameServices,
) -> None:
    """Another address signs on, and nothing is ever locked."""
    someone = await frame_services.add_person()
    opened = await frame_services.open()
    await frame_services.framing.identify(
        opened.view.session, frame_services.claim(someone), ADDRESS
    )
    session = await frame_services.again(opened.view.session)
    for _ in range(5):
        await refused(
            frame_services.framing.prove(session, "000000", ADDRESS),
            ErrorCode.OTP_INVALID,
        )
    error = await refused(
        frame_services.framing.prove(session, frame_services.code(someone), ADDRESS),
        ErrorCode.RATE_LIMITED,
    )
    assert error.extras["retryAfter"]

    view = await frame_services.framing.prove(
        session, frame_services.code(someone), "192.0.2.99"
    )
    assert view.session.otp_at is not None


async def test_two_hundred_guesses_from_forty_addresses(
    frame_services: FrameServices,
) -> None:
    """Thirty an hour are looked at; the owner's own address signs on."""
    someone = await frame_services.add_person()
    await frame_services.proven(someone)
    looked_at = 0
    for number in range(200):
        address = f"198.51.100.{number % 40}"
        if number % 5 == 0:
            opened = await frame_services.open()
            claim = frame_services.claim(someone)
            # A claim is counted apart, and a right one makes nobody wait.
            await frame_services.framing.identify(opened.view.session, claim, address)
            session = await frame_services.again(opened.view.session)
        with pytest.raises(ApplianceError) as caught:
            await frame_services.framing.prove(session, "000000", address)
        looked_at += caught.value.code is ErrorCode.OTP_INVALID
        frame_services.services.clock.forward(1)

    assert looked_at == 30
    assert len(await frame_services.services.audited(EventKind.SESSION_OTP_WRONG)) == 30
    assert (await frame_services.proven(someone)).otp_at is not None


async def test_session_tries_ten_codes(frame_services: FrameServices) -> None:
    """The eleventh is not looked at, from whatever address, also after a renewal."""
    someone = await frame_services.add_person()
    opened = await frame_services.open()
    await frame_services.framing.identify(
        opened.view.session, frame_services.claim(someone), ADDRESS
    )
    session = await frame_services.again(opened.view.session)
    for number in range(10):
        await refused(
            frame_services.framing.prove(session, "000000", f"198.51.100.{number}"),
            ErrorCode.OTP_INVALID,
        )
    await refused(
        frame_services.framing.prove(
            session, frame_services.code(someone), "198.51.100.99"
        ),
        ErrorCode.SESSION_CODES,
    )
    renewed = await frame_services.framing.renew(
        opened.bearer, await frame_services.token()
    )
    await refused(
        frame_services.framing.prove(
            renewed.view.session, frame_services.code(someone), "198.51.100.99"
        ),
        ErrorCode.SESSION_CODES,
    )
    # What the session refuses is no try of the person's.
    assert len(await frame_services.services.audited(EventKind.SESSION_OTP_WRONG)) == 10


@pytest.mark.parametrize("state", [PersonState.DISABLED, PersonState.INVITED])
async def test_proven_session_ends_with_its_person(
    frame_services: FrameServices, state: PersonState
) -> None:
    """Whose person may no longer sign neither goes on nor is renewed."""
    someone = await frame_services.add_person()
    token = await frame_services.token()
    session = await frame_services.proven(someone, token=token)
    opened = await frame_services.open(token, content="the same")
    async with frame_services.services.store.write() as transaction:
        await PersonStore(transaction).move(someone.id, PersonState.ACTIVE, state)

    expired = ErrorCode.SESSION_TOKEN_EXPIRED
    await refused(frame_services.services.sessions.by_bearer(opened.bearer), expired)
    await refused(
        frame_services.framing.renew(opened.bearer, await frame_services.token()),
        expired,
    )
    assert (await frame_services.again(session)).otp_at is not None


async def test_code_too_old_is_not_renewed(frame_services: FrameServices) -> None:
    """However often a session is renewed, its code counts for eight hours."""
    someone = await frame_services.add_person()
    token = await frame_services.token()
    await frame_services.proven(someone, token=token)
    opened = await frame_services.open(token)
    left_s = 8 * 3600 - 1
    while left_s > 0:
        step_s = min(1200, left_s)
        frame_services.services.clock.forward(step_s)
        left_s -= step_s
        opened = await frame_services.framing.renew(
            opened.bearer, await frame_services.token()
        )
    frame_services.services.clock.forward(1)

    await refused(
        frame_services.framing.renew(opened.bearer, await frame_services.token()),
        ErrorCode.STEP_UP,
    )
    await refused(
        frame_services.services.sessions.by_bearer(opened.bearer), ErrorCode.STEP_UP
    )


async def test_init_with_new_content_forgets_the_matched_person(
    frame_services: FrameServices,
) -> None:
    """Until the signer is proven a later init replaces an earlier one."""
    someone = await frame_services.add_person()
    token = await frame_services.token()
    opened = await frame_services.open(token)
    await frame_services.framing.identify(
        opened.view.session, frame_services.claim(someone), ADDRESS
    )
    again = await frame_services.open(token, content="other")

    assert again.view.session.person is None


async def test_init_after_the_code_is_refused_unless_the_same(
    frame_services: FrameServices,
) -> None:
    """A reload goes on; other content is SESSION_IN_USE."""
    someone = await frame_services.add_person()
    token = await frame_services.token()
    await frame_services.proven(someone, token=token)

    await refused(frame_services.open(token, content="other"), ErrorCode.SESSION_IN_USE)
    again = await frame_services.open(token)
    assert again.view.state is EmbedSessionState.AUTHORISED


async def test_token_of_another_integrator_opens_no_page_of_ours(
    frame_services: FrameServices,
) -> None:
    """A token is good in its own integrator's frames alone."""
    ours = await frame_services.services.sessions.page(
        await frame_services.token(), None
    )
    stolen = await frame_services.token("otro")

    error = await refused(
        frame_services.open(stolen, page=ours.session_public_id), ErrorCode.INIT_INVALID
    )
    assert error.extras == {"field": "sessionToken"}


async def test_renewal_carries_everything_over(frame_services: FrameServices) -> None:
    """Document, signer, request and key go on under the new token."""
    someone = await frame_services.add_person()
    token = await frame_services.token()
    opened = await frame_services.open(token, idem_key="k")
    view = await frame_services.framing.take_document(opened.view.session, "a.pdf", PDF)
    await frame_services.framing.identify(
        view.session, frame_services.claim(someone), ADDRESS
    )
    session = await frame_services.again(view.session)
    await frame_services.framing.prove(session, frame_services.code(someone), ADDRESS)
    frame_services.services.clock.forward(1801)
    renewed = await frame_services.framing.renew(
        opened.bearer, await frame_services.token()
    )

    assert renewed.view.state is EmbedSessionState.AUTHORISED
    assert renewed.view.session.idem_key == "k"
    assert renewed.view.seconds_left == 1800
    async with frame_services.services.store.read() as transaction:
        assert renewed.view.session.request is not None
        request = await RequestStore(transaction).get(renewed.view.session.request)
    assert request is not None
    assert request.expires == renewed.view.session.until
    await refused(
        frame_services.services.sessions.by_bearer(opened.bearer),
        ErrorCode.SESSION_TOKEN_EXPIRED,
    )


@pytest.mark.parametrize("case", ["used", "foreign", "unknown"])
async def test_renewal_needs_a_fresh_token_of_the_integrator(
    frame_services: FrameServices, case: str
) -> None:
    """A used, a foreign and an unknown token renew nothing."""
    opened = await frame_services.open()
    token, code = "x" * 43, ErrorCode.SESSION_TOKEN_INVALID
    if case == "used":
        token, code = await frame_services.token(), ErrorCode.SESSION_IN_USE
        await frame_services.open(token)
    if case == "foreign":
        token, code = await frame_services.token("otro"), ErrorCode.INIT_INVALID

    await refused(frame_services.framing.renew(opened.bearer, token), code)


@pytest.mark.parametrize("by_signer", [True, False], ids=["signer", "host"])
async def test_left_session_is_over_and_its_request_is_not(
    frame_services: FrameServices, *, by_signer: bool
) -> None:
    """Nothing more is done in it; the same key takes the request up again."""
    someone = await frame_services.add_person()
    session = await frame_services.proven(someone, idem_key="k")
    await frame_services.signing.cancel(session, by_signer=by_signer)
    view = await frame_services.signing.view(session)

    assert view.state is EmbedSessionState.CANCELLED
    for work in (
        frame_services.signing.cancel(session, by_signer=by_signer),
        frame_services.signing.reject(session, ""),
    ):
        await refused(work, ErrorCode.SESSION_IN_USE)
    again = await frame_services.proven(someone, idem_key="k")
    assert again.request == session.request
    assert (
        await frame_services.signing.view(again)
    ).state is EmbedSessionState.AUTHORISED


async def test_rejected_request_is_over_with_its_reason(
    frame_services: FrameServices,
) -> None:
    """It becomes `rechazada`, and the session says so ever after."""
    someone = await frame_services.add_person()
    session = await frame_services.proven(someone, idem_key="k")
    await frame_services.signing.reject(session, "No es mi contrato")

    assert (
        await frame_services.signing.view(session)
    ).state is EmbedSessionState.REJECTED
    assert session.request is not None
    async with frame_services.services.store.read() as transaction:
        request = await RequestStore(transaction).get(session.request)
    assert request is not None
    assert (request.state, request.reason) == (
        RequestState.REJECTED,
        "No es mi contrato",
    )
    (event,) = await frame_services.services.audited(EventKind.REQUEST_REJECTED)
    assert event.actor == f"person:{someone.id}"
    # A rejection is one entry of the request's history, and no leaving.
    assert await frame_services.services.audited(EventKind.SESSION_CANCELLED) == []
    (ended,) = await frame_services.services.audited(EventKind.SESSION_ENDED)
    assert ended.request is None


async def test_nobody_rejects_before_the_code(frame_services: FrameServices) -> None:
    """Who is only matched refuses nothing, and the session goes on."""
    someone = await frame_services.add_person()
    opened = await frame_services.open()
    taken = await frame_services.framing.take_document(
        opened.view.session, "a.pdf", PDF
    )
    await frame_services.framing.identify(
        taken.session, frame_services.claim(someone), ADDRESS
    )

    await refused(
        frame_services.signing.reject(taken.session, ""), ErrorCode.SESSION_IN_USE
    )
    view = await frame_services.signing.view(taken.session)
    assert view.state is EmbedSessionState.OPEN


async def test_request_that_is_being_signed_is_not_rejected(
    frame_services: FrameServices,
) -> None:
    """What was submitted goes on, and the session with it."""
    session = await frame_services.proven(await frame_services.add_person())
    await frame_services.move(session.request, RequestState.IN_PROGRESS)

    await refused(frame_services.signing.reject(session, ""), ErrorCode.STATE)
    assert (
        await frame_services.signing.view(session)
    ).state is EmbedSessionState.SIGNING


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("revoked", ErrorCode.CERTIFICATE_NOT_USABLE),
        ("expired", ErrorCode.CERTIFICATE_NOT_USABLE),
        ("missing", ErrorCode.CERTIFICATE_NOT_USABLE),
        ("locked", ErrorCode.SIGN_LOCKED),
    ],
)
async def test_who_cannot_sign_is_told_right_after_the_code(
    frame_services: FrameServices, case: str, code: ErrorCode
) -> None:
    """With what it is and since when, before there is a request."""
    someone = await frame_services.add_person()
    opened = await frame_services.open()
    taken = await frame_services.framing.take_document(
        opened.view.session, "a.pdf", PDF
    )
    await frame_services.framing.identify(
        taken.session, frame_services.claim(someone), ADDRESS
    )
    session = await frame_services.again(taken.session)
    now = frame_services.services.clock.now()
    since = await bar(frame_services, someone, case, now)

    refusal = await refused(
        frame_services.framing.prove(session, frame_services.code(someone), ADDRESS),
        code,
    )

    assert refusal.extras["obstacle"] == case
    assert refusal.extras.get("since") == since
    assert await frame_services.services.audited(EventKind.REQUEST_CREATED) == []


async def bar(
    frame_services: FrameServices, someone: Someone, case: str, now: datetime
) -> str | None:
    """Have somebody be unable to sign; since when, as it is told."""
    told = now.isoformat(timespec="seconds").replace("+00:00", "Z")
    async with frame_services.services.store.write() as transaction:
        credential = await CredentialStore(transaction).active(someone.id)
        assert credential is not None
        if case == "locked":
            await PersonStore(transaction).set_counted(someone.id, 10, now)
            return told
        state = {
            "revoked": CredentialState.REVOKED,
            "missing": CredentialState.SUPERSEDED,
            "expired": CredentialState.SUPERSEDED,
        }[case]
        await CredentialStore(transaction).set_state(credential.id, state)
        if case == "expired":
            await CredentialStore(transaction).add(
                new_credential(someone.id, certificate=CERTIFICATE, not_after=now)
            )
            return told
    return None


async def test_api_key_in_a_page_is_recorded_without_its_value(
    frame_services: FrameServices,
) -> None:
    """The audit says whose page; an unknown page says nothing."""
    opened = await frame_services.open()
    await frame_services.framing.warn_legacy(opened.view.session.public_id)
    await frame_services.framing.warn_legacy("0" * 24)

    (event,) = await frame_services.services.audited(EventKind.LEGACY_CREDENTIALS)
    assert event.detail == {"session": opened.view.session.public_id}
