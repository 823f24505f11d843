"""The trust store, and what is said of ends, on both databases."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from cryptography.hazmat.primitives import hashes

from appliance.console.expiry_notices import Expiry
from appliance.domain.audit.record import AuditEvent
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import new_id
from appliance.domain.pki.trust_store import AnchorPurpose, Expiring, ExpiringKind
from appliance.domain.vocab import CredentialState, EventKind
from appliance.pki.validation.trust_anchors import Trust
from appliance.pki.validation.trust_store import ExpiryStore
from appliance.record.unit_of_work import Transaction
from tests.support.factories.fakes import NOON
from tests.support.installation.record import CoreFixture
from tests.support.pki.outside_ca import OutsideCa, bundle, der

CA = OutsideCa(NOON)
OWN = OutsideCa(NOON, "Propia").root
SIGNERS = AnchorPurpose.SIGNERS
SHA256 = CA.root.fingerprint(hashes.SHA256()).hex()
SHA1 = CA.root.fingerprint(hashes.SHA1()).hex()  # noqa: S303 (as CAs print it)


def trust(core: CoreFixture) -> Trust:
    """The trust store of an installation whose own root is `OWN`."""
    return Trust(core.store, core.clock, lambda: der(OWN))


async def no_own(transaction: Transaction) -> Sequence[tuple[ExpiringKind, bytes]]:
    """An installation without a CA."""
    del transaction
    return ()


async def audited(core: CoreFixture, kind: EventKind) -> list[AuditEvent]:
    """What was recorded of a kind."""
    return [row.event for row in await core.audit() if row.event.event is kind]


async def test_own_root_is_there_by_itself(core: CoreFixture) -> None:
    """Before anything is added the installation trusts its own root, for all."""
    store = trust(core)

    listed = await store.anchors()

    assert [own.purpose for own in listed] == list(AnchorPurpose)
    assert {(own.name, own.id) for own in listed} == {("Propia raíz", "")}
    for purpose in AnchorPurpose:
        assert await store.roots(purpose) == [der(OWN)]


async def test_root_is_added_and_removed(core: CoreFixture) -> None:
    """A root is trusted from its adding to its removal; both are recorded."""
    store = trust(core)

    added = await store.add("console:a", bundle(CA.root), SIGNERS, SHA256)
    during = await store.roots(SIGNERS)
    await store.remove("console:b", added.id)

    assert during == [der(OWN), der(CA.root)]
    assert added.name == "AC de afuera raíz"
    assert await store.roots(SIGNERS) == [der(OWN)]
    (event,) = await audited(core, EventKind.ANCHOR_ADDED)
    after = {"sha256": added.sha256, "purpose": "signers"}
    assert (event.actor, event.detail["before"], event.detail["after"]) == (
        "console:a",
        None,
        after,
    )
    (event,) = await audited(core, EventKind.ANCHOR_REMOVED)
    assert (event.actor, event.detail["before"], event.detail["after"]) == (
        "console:b",
        after,
        None,
    )


async def test_purposes_are_apart(core: CoreFixture) -> None:
    """A root for timestamps vouches for no signer; one may serve both purposes."""
    store = trust(core)
    await store.add("operator", bundle(CA.root), AnchorPurpose.TIMESTAMPS, SHA256)

    assert await store.roots(SIGNERS) == [der(OWN)]
    await store.add("operator", der(CA.root), SIGNERS, SHA256)
    assert len(await store.anchors()) == 4


async def test_root_is_added_once_for_a_purpose(core: CoreFixture) -> None:
    """The same root again is refused, and leaves no trace."""
    store = trust(core)
    await store.add("operator", bundle(CA.root), SIGNERS, SHA256)

    with pytest.raises(ApplianceError) as caught:
        await store.add("operator", der(CA.root), SIGNERS, SHA256)

    assert caught.value.code is ErrorCode.ALREADY_EXISTS
    assert len(await audited(core, EventKind.ANCHOR_ADDED)) == 1


@pytest.mark.parametrize(
    "printed",
    [SHA256, SHA256.upper(), SHA1, " ".join(SHA1), ":".join(SHA256)],
    ids=["sha256", "upper case", "sha1", "spaces", "colons"],
)
async def test_fingerprint_as_cas_print_it(
    sqlite_core: CoreFixture, printed: str
) -> None:
    """SHA-256 or SHA-1, in whatever groups."""
    added = await trust(sqlite_core).add("operator", der(CA.root), SIGNERS, printed)

    assert (added.sha256, added.sha1) == (SHA256, SHA1)


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        (SHA256[::-1], ErrorCode.ANCHOR_FINGERPRINT),
        (SHA1[::-1], ErrorCode.ANCHOR_FINGERPRINT),
        ("", ErrorCode.FIELD_INVALID),
        (SHA256[:-1], ErrorCode.FIELD_INVALID),
        ("z" * 64, ErrorCode.FIELD_INVALID),
        ("0" * 100_000, ErrorCode.FIELD_INVALID),
    ],
    ids=["other sha256", "other sha1", "empty", "short", "no hex", "endless"],
)
async def test_another_fingerprint_is_refused(
    sqlite_core: CoreFixture, printed: str, code: ErrorCode
) -> None:
    """Nobody trusts a root by its file alone."""
    with pytest.raises(ApplianceError) as caught:
        await trust(sqlite_core).add("operator", der(CA.root), SIGNERS, printed)

    assert caught.value.code is code
    assert len(await trust(sqlite_core).anchors()) == 2


@pytest.mark.parametrize(
    "unknown", ["", "nada", new_id()], ids=["empty", "word", "unknown"]
)
async def test_removal_of_what_is_not_there(core: CoreFixture, unknown: str) -> None:
    """Nothing is removed, the installation's own root least of all."""
    with pytest.raises(ApplianceError) as caught:
        await trust(core).remove("operator", unknown)

    assert caught.value.code is ErrorCode.ANCHOR_NOT_FOUND


# -- ends -----------------------------------------------------------------------


async def holder(core: CoreFixture, end: datetime, **changes: object) -> str:
    """Somebody whose certificate ends then; the credential's id."""
    signer = await core.add_signer(credential=False)
    return await core.add_credential(signer.person, not_after=end, **changes)


def short(told: list[tuple[Expiring, int]]) -> list[tuple[ExpiringKind, str, int]]:
    """What was told, to be compared."""
    return [(what.kind, what.id, days) for what, days in told]


async def test_each_warning_is_given_once(core: CoreFixture) -> None:
    """90, 30, 7 and 1 day before the end, and at the end; not twice, not between."""
    end = NOON + timedelta(days=200)
    credential = await holder(core, end)
    expiry = Expiry(core.store, core.clock, no_own)
    told = []

    for left in (100, 90, 89, 60, 30, 8, 7, 2, 1, 0.5, 0, -3):
        core.clock.at = end - timedelta(days=left)
        told += [(left, *found) for found in short(await expiry.warn())]
        assert await expiry.warn() == []

    signer = ExpiringKind.SIGNER
    assert told == [(left, signer, credential, left) for left in (90, 30, 7, 1, 0)]
    events = await audited(core, EventKind.CERTIFICATE_EXPIRING)
    assert [event.detail["days"] for event in events] == [90, 30, 7, 1, 0]
    assert {event.detail["id"] for event in events} == {credential}


async def test_warnings_that_were_missed_are_one(core: CoreFixture) -> None:
    """An installation that was off for a month is told the tightest alone."""
    end = NOON + timedelta(days=200)
    credential = await holder(core, end)
    core.clock.at = end - timedelta(days=3)

    told = await Expiry(core.store, core.clock, no_own).warn()

    assert short(told) == [(ExpiringKind.SIGNER, credential, 7)]


async def test_short_life_is_not_warned_of_from_its_first_day(
    core: CoreFixture,
) -> None:
    """A certificate of twenty days is told 7 and 1 before its end, not 30 and 90."""
    end = NOON + timedelta(days=20)
    await holder(core, end, not_before=NOON)
    expiry = Expiry(core.store, core.clock, no_own)

    assert await expiry.warn() == []
    core.clock.at = end - timedelta(days=7)
    assert [days for _, days in await expiry.warn()] == [7]


async def test_renewed_certificate_is_warned_of_anew(core: CoreFixture) -> None:
    """A later end is another end."""
    expiry = Expiry(core.store, core.clock, no_own)
    first, second = NOON + timedelta(days=6), NOON + timedelta(days=400)
    signer = await core.add_signer(credential=False)
    ident = await core.add_credential(
        signer.person, not_after=first, not_before=NOON - timedelta(days=300)
    )
    assert [days for _, days in await expiry.warn()] == [7]
    async with core.store.read() as transaction:
        (row,) = await ExpiryStore(transaction).listed(second, 9, None)
        told = await ExpiryStore(transaction).told(ExpiringKind.SIGNER, [ident])
    assert told == {(ident, first): 7}

    async with core.store.write() as transaction:
        later = Expiring(row.kind, row.id, row.name, NOON, second)
        assert await ExpiryStore(transaction).tell(later, 90, NOON)
        assert not await ExpiryStore(transaction).tell(later, 90, NOON)


async def test_credentials_out_of_use_are_not_warned_of(core: CoreFixture) -> None:
    """Revoked and superseded ones end unnoticed."""
    for state in (CredentialState.REVOKED, CredentialState.SUPERSEDED):
        await holder(core, NOON + timedelta(days=3), state=state)

    assert await Expiry(core.store, core.clock, no_own).warn() == []


async def test_roots_and_own_certificates_are_warned_of(core: CoreFixture) -> None:
    """The CA's own certificates and trusted roots are watched as people's are."""
    added = await trust(core).add("operator", bundle(CA.root), SIGNERS, SHA256)

    async def own(transaction: Transaction) -> Sequence[tuple[ExpiringKind, bytes]]:
        del transaction
        return [(ExpiringKind.CA, der(OWN))]

    expiry = Expiry(core.store, core.clock, own)
    assert await expiry.warn() == []
    core.clock.at = CA.root.not_valid_after_utc - timedelta(days=29)

    told = await expiry.warn()
    seen = await expiry.overview()

    assert {(what.kind, days) for what, days in told} == {
        (ExpiringKind.CA, 30),
        (ExpiringKind.ANCHOR, 30),
    }
    assert added.id in {what.id for what in seen.own}
    assert await expiry.warn() == []


async def test_many_ends_are_all_told(core: CoreFixture) -> None:
    """More than a batch, some of lives too short for the warning."""
    for number in range(205):
        await holder(
            core,
            NOON + timedelta(days=80),
            not_before=NOON - timedelta(days=1 if number < 203 else 400),
        )

    told = await Expiry(core.store, core.clock, no_own).warn()

    assert [days for _, days in told] == [90, 90]


async def test_list_of_ends_goes_on_page_by_page(core: CoreFixture) -> None:
    """Soonest first, each once."""
    made = [
        await holder(core, NOON + timedelta(days=1 + number % 40))
        for number in range(60)
    ]
    await holder(core, NOON + timedelta(days=91))
    expiry = Expiry(core.store, core.clock, no_own)

    first = await expiry.signers()
    assert first.following is not None
    second = await expiry.signers(first.following)

    rows = [*first.rows, *second.rows]
    assert second.following is None
    assert {row.id for row in rows} == set(made)
    assert rows == sorted(rows, key=lambda row: (row.not_after, row.id))
    assert (await expiry.overview()).signers == sum(n % 40 < 30 for n in range(60))
