"""What a seal is bound to: one canonical form, and every field in it.

Source: design §4 "Activation keys"; RFC 8785.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from appliance.domain.appearance.details import Logo, StampDetails
from appliance.domain.errors import ActivationInvalidError
from appliance.domain.ids import (
    ActivationId,
    CredentialId,
    PersonId,
    RequestId,
    TaskId,
)
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from appliance.domain.people.identity import credential_aad
from appliance.domain.signing.activation import (
    MAX_HOSTS,
    Activation,
    ActivationDocument,
    ActivationFormat,
    ActivationKey,
    IssueBinding,
    Seal,
    activation_data,
    epoch_start,
    format_of,
    key_statement,
    newest_of_each,
)
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import (
    CuilDisplay,
    FontName,
    FontStyle,
    Restriction,
    StampDesign,
    VouchedBy,
)
from appliance.keys.key_encryption import lock_outer, open_outer, open_seal, seal_to

FIRST, WHOLE = ActivationFormat
NOON = datetime(2026, 5, 25, 12, 0, 0, tzinfo=UTC)
PLAIN = SignParameters()
ITEM = ActivationDocument(0, RequestId(7), "ab" * 32, PLAIN, "cd" * 32)
BINDING = Activation(
    id=ActivationId("11111111-1111-4111-8111-111111111111"),
    person=PersonId("22222222-2222-4222-8222-222222222222"),
    credential=CredentialId("33333333-3333-4333-8333-333333333333"),
    documents=(ITEM,),
    factors=("pwd", "otp", "sign-pwd"),
    created=NOON,
    claim_by=NOON + timedelta(seconds=60),
)
ISSUE = IssueBinding(
    task=TaskId("t"),
    person=PersonId("p"),
    credential=CredentialId("t"),
    algorithm=KeyAlgorithm.RSA_2048,
    vouched_by=VouchedBy.OFFICER,
)
UNLOCK = bytes(range(32))
OTHERS: dict[str, Any] = {
    "id": ActivationId("x"),
    "person": PersonId("x"),
    "credential": CredentialId("x"),
    "factors": ("otp", "sign-pwd"),
    "created": NOON + timedelta(microseconds=1),
    "claim_by": NOON + timedelta(seconds=61),
}
OTHER_PARAMETERS: dict[str, Any] = {
    "font_color": "RED",
    "font_name": FontName.MONOSPACED,
    "font_size": 13,
    "font_style": FontStyle.BOLD,
    "page": 2,
    "x": 0,
    "y": 0,
    "zoom_percent": 99,
    "restriction": Restriction.FORM_FILLING,
    "visible": False,
    "field": "contrato.comprador",
    "reason": "Conformidad",
    "place": "Rosario",
    "cuil": CuilDisplay.MASKED,
    "qr": True,
    "logo": False,
}
OTHER_DETAILS: dict[str, StampDetails] = {
    "is_cuil_masked": StampDetails(is_cuil_masked=True),
    "qr": StampDetails(qr="https://firma.example/verificar/0"),
    "logo": StampDetails(logo=Logo("ab" * 32, 40, 20)),
    "design": StampDetails(design=StampDesign.CARD),
}
OTHER_ISSUES: dict[str, Any] = {
    "task": TaskId("x"),
    "person": PersonId("x"),
    "credential": CredentialId("x"),
    "algorithm": KeyAlgorithm.EC_P256,
    "vouched_by": VouchedBy.DEMO,
}


def with_item(**changes: Any) -> Activation:
    """The binding, its one document other in something."""
    return replace(BINDING, documents=(replace(ITEM, **changes),))


def test_info_is_the_hash_of_the_canonical_form() -> None:
    """Written out by hand: names sorted, no spaces, times to the microsecond in UTC."""
    canonical = (
        '{"activation":"11111111-1111-4111-8111-111111111111",'
        '"claimBy":"2026-05-25T12:01:00.000000+00:00",'
        '"created":"2026-05-25T12:00:00.000000+00:00",'
        '"credential":"33333333-3333-4333-8333-333333333333",'
        '"factors":["pwd","otp","sign-pwd"],'
        '"items":[{"documentSha256":"' + "ab" * 32 + '",'
        '"parameters":{"fontColor":"BLACK","fontName":"Serif","fontSize":12,'
        '"fontStyle":"PLAIN","page":1,"restriccion":"NO_VALUE","visible":true,'
        '"x":null,"y":null,"zoomPercent":100},"request":7}],'
        '"keyVersion":1,"person":"22222222-2222-4222-8222-222222222222"}'
    )

    assert activation_data(BINDING, 1) == hashlib.sha256(canonical.encode()).digest()


def test_same_instant_in_another_zone_is_the_same_binding() -> None:
    """A database may give a time back in a zone of its own."""
    zone = timezone(timedelta(hours=-3))

    same = replace(BINDING, created=NOON.astimezone(zone))

    assert activation_data(same, 1) == activation_data(BINDING, 1)


def test_every_field_is_bound() -> None:
    """The lists of changes here leave no field out.

    The installation's profile is bound by the second format, as requests resolve it.
    """
    assert {*OTHERS, "documents", "profile"} == set(Activation.__slots__)
    assert set(OTHER_PARAMETERS) == set(SignParameters.__slots__)
    assert set(OTHER_DETAILS) == set(StampDetails.__slots__)
    assert set(OTHER_ISSUES) == set(IssueBinding.__slots__)


def with_parameter(name: str) -> Activation:
    """The binding, its one document's mark other in something."""
    return with_item(params=replace(PLAIN, **{name: OTHER_PARAMETERS[name]}))


ALTERED: dict[str, Callable[[], Activation]] = {
    **{name: partial(replace, BINDING, **{name: OTHERS[name]}) for name in OTHERS},
    **{f"parameter {n}": partial(with_parameter, n) for n in OTHER_PARAMETERS},
    **{
        f"stamp's {name}": partial(with_item, details=details)
        for name, details in OTHER_DETAILS.items()
    },
    "request": lambda: with_item(request=RequestId(8)),
    "document": lambda: with_item(document_sha256="ac" + "ab" * 31),
    "one more": lambda: replace(BINDING, documents=(ITEM, ITEM)),
    "none": lambda: replace(BINDING, documents=()),
}


def test_version_of_the_key_is_bound() -> None:
    """What was sealed for a key that has been changed since does not open."""
    host = X25519PrivateKey.generate()
    public = host.public_key().public_bytes_raw()
    sealed = seal_to(public, UNLOCK, activation_data(BINDING, 1))

    with pytest.raises(ActivationInvalidError) as caught:
        open_seal(host.private_bytes_raw(), sealed, activation_data(BINDING, 2))

    assert caught.value.layer == "seal"


@pytest.mark.parametrize("name", ALTERED)
def test_altered_row_does_not_open(name: str) -> None:
    """One field other than what was consented to, and the seal stays shut."""
    host = X25519PrivateKey.generate()
    sealed = seal_to(
        host.public_key().public_bytes_raw(), UNLOCK, activation_data(BINDING, 1)
    )
    private = host.private_bytes_raw()

    assert open_seal(private, sealed, activation_data(BINDING, 1)) == UNLOCK
    with pytest.raises(ActivationInvalidError) as caught:
        open_seal(private, sealed, activation_data(ALTERED[name](), 1))

    assert caught.value.layer == "seal"


@pytest.mark.parametrize("name", OTHER_ISSUES)
def test_altered_enrolment_does_not_open(name: str) -> None:
    """Nobody changes whose key is made, of which kind, or who answers for it."""
    altered = replace(ISSUE, **{name: OTHER_ISSUES[name]})

    assert altered.info() != ISSUE.info()


def test_order_of_documents_is_bound() -> None:
    """Two documents the other way round are another consent."""
    other = replace(ITEM, request=RequestId(8))

    one = replace(BINDING, documents=(ITEM, other))
    two = replace(BINDING, documents=(other, ITEM))

    assert activation_data(one, 1) != activation_data(two, 1)


@pytest.mark.parametrize("flip", range(0, 80, 13))
def test_altered_seal_does_not_open(flip: int) -> None:
    """Any byte of it, encapsulated key and tag included; nor cut or empty."""
    host = X25519PrivateKey.generate()
    sealed = seal_to(host.public_key().public_bytes_raw(), UNLOCK, b"info")
    altered = bytearray(sealed)
    altered[flip] ^= 1

    for wrong in (bytes(altered), sealed[:flip], b""):
        with pytest.raises(ActivationInvalidError):
            open_seal(host.private_bytes_raw(), wrong, b"info")


def test_seal_of_another_host_does_not_open() -> None:
    """Each host opens its own."""
    here, there = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    sealed = seal_to(here.public_key().public_bytes_raw(), UNLOCK, b"info")

    with pytest.raises(ActivationInvalidError):
        open_seal(there.private_bytes_raw(), sealed, b"info")


def aad(**changes: Any) -> bytes:
    """What `outer` of some credential is bound to."""
    fields: dict[str, Any] = {
        "installation": "Demo",
        "person": "p",
        "credential": "c",
        "key_version": 1,
        "spki": b"spki",
        **changes,
    }
    return credential_aad(**fields)


def test_aad_is_canonical() -> None:
    """Written out by hand."""
    spki = hashlib.sha256(b"spki").hexdigest()

    assert (
        aad()
        == (
            '{"credential":"c","installation":"Demo","keyVersion":1,"person":"p",'
            f'"spkiSha256":"{spki}"}}'
        ).encode()
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"installation": "Otra"},
        {"person": "q"},
        {"credential": "d"},
        {"key_version": 2},
        {"spki": b"other"},
    ],
)
def test_outer_of_another_row_does_not_open(changes: dict[str, object]) -> None:
    """A locked key moved to another person, credential or public key stays shut."""
    outer = lock_outer(UNLOCK, b"wrapped", aad())

    assert open_outer(UNLOCK, outer, aad()) == b"wrapped"
    with pytest.raises(ActivationInvalidError) as caught:
        open_outer(UNLOCK, outer, aad(**changes))

    assert caught.value.layer == "outer"


def test_outer_opens_with_its_own_unlock_key_alone() -> None:
    """Another key, an altered byte, a cut or nothing."""
    outer = lock_outer(UNLOCK, b"wrapped", aad())
    altered = outer[:-1] + bytes([outer[-1] ^ 1])

    for key, wrong in (
        (bytes(32), outer),
        (UNLOCK, altered),
        (UNLOCK, outer[:20]),
        (UNLOCK, b""),
    ):
        with pytest.raises(ActivationInvalidError):
            open_outer(key, wrong, aad())


def test_same_inside_is_locked_differently_each_time() -> None:
    """Two locks of one thing have no byte of nonce in common."""
    one, two = (lock_outer(UNLOCK, b"wrapped", aad()) for _ in range(2))

    assert one[:12] != two[:12]


@pytest.mark.parametrize(("epoch", "version"), [(5, b"1"), (29_657_040, b"2")])
def test_statement_of_a_key_is_canonical(epoch: int, version: bytes) -> None:
    """A prefix of each format, so that no other statement can be taken for one."""
    assert key_statement("Demo", "h", epoch, bytes(32)) == (
        b"rubrica/activation-key/%s\0" % version
        + b'{"epoch":%d,"host":"h","installation":"Demo","public":"' % epoch
        + b"00" * 32
        + b'"}'
    )


def test_epochs_are_counted_from_1970() -> None:
    """Ten minutes each of the first format, one minute each of the second."""
    at = datetime(2026, 5, 20, 12, 34, 56, tzinfo=UTC)

    assert FIRST.epoch_at(datetime(1970, 1, 1, 0, 19, 59, tzinfo=UTC)) == 1
    assert epoch_start(2) == datetime(1970, 1, 1, 0, 20, tzinfo=UTC)
    assert epoch_start(FIRST.epoch_at(at)) == at.replace(minute=30, second=0)
    assert epoch_start(WHOLE.epoch_at(at)) == at.replace(second=0)


@pytest.mark.parametrize("kind", ActivationFormat)
@pytest.mark.parametrize("year", [2026, 2100, 2159])
def test_number_of_an_epoch_tells_its_format(kind: ActivationFormat, year: int) -> None:
    """So no row has to say it."""
    epoch = kind.epoch_at(datetime(year, 1, 1, tzinfo=UTC))

    assert format_of(epoch) is kind
    assert Seal("h", epoch, b"").format is kind


def key(host: str, epoch: int) -> ActivationKey:
    """A published key, already believed."""
    return ActivationKey(host, epoch, bytes(32), "00", b"", NOON)


@pytest.mark.parametrize("kind", ActivationFormat)
def test_newest_key_of_each_live_host_is_chosen(kind: ActivationFormat) -> None:
    """The present epoch's comes first; of others, the next one's; too old is none."""
    now = kind.epoch_at(NOON)
    keys = [
        key("a", now - 1),
        key("a", now),
        key("a", now - 2),
        key("b", now - 1),
        key("c", now - 2),
        key("d", now + 1),
        key("d", now),
        key("e", now + 2),
        key("f", now - 1),
        key("f", now + 1),
        key("dead", now),
    ]

    chosen = newest_of_each(keys, ["a", "b", "c", "d", "e", "f", "a"], NOON)

    assert [(k.host, k.epoch - now) for k in chosen] == [
        *[("a", 0), ("b", -1), ("d", 0), ("f", 1)],
    ]


def test_key_of_the_later_format_is_the_newer_one() -> None:
    """A host of the release before is sealed to while its format counts, no longer."""
    old, new = FIRST.epoch_at(NOON), WHOLE.epoch_at(NOON)
    keys = [key("both", new), key("both", old + 1), key("before", old)]
    hosts = ["both", "before"]

    open_, closed = (
        newest_of_each(keys, hosts, NOON, oldest) for oldest in ActivationFormat
    )

    assert [(k.host, k.epoch) for k in open_] == [("before", old), ("both", new)]
    assert [(k.host, k.epoch) for k in closed] == [("both", new)]


def test_eight_hosts_are_chosen_at_the_most() -> None:
    """One more seal is one more place where it can be opened."""
    hosts = [f"h{number}" for number in range(12)]

    chosen = newest_of_each([key(h, WHOLE.epoch_at(NOON)) for h in hosts], hosts, NOON)

    assert len(chosen) == MAX_HOSTS == 8
