"""What every tested make does alike: SoftHSM and NSS softokn."""

import dataclasses
import hashlib
from collections.abc import Iterator

import pkcs11
import pytest

from appliance.domain.errors import ErrorCode, HsmRefusedError
from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    KeyReference,
    SignatureScheme,
    TokenRole,
    WrapMethod,
    scheme_for,
)
from hsm_config.pkcs11 import key_exposure, key_pairs, signatures, templates
from hsm_config.pkcs11.key_wrapping import Wrapping
from hsm_config.pkcs11.master_keys import MasterKeys, label_of
from hsm_config.pkcs11.module import Library, find_token, log_in, opened
from hsm_config.pkcs11.pin import obtain_pin
from hsm_config.pkcs11.raw_pkcs11 import SessionCalls
from hsm_config.pkcs11.unwrap_and_sign import OneUse
from hsm_config.provisioning.init import provision
from hsm_config.provisioning.signing_token import identity_path
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.hsm.nss import NssTokens
from worker.hsm.connection import HsmStatus

pytestmark = pytest.mark.full

MESSAGE = b"what is signed"
DIGEST = hashlib.sha256(MESSAGE).digest()
WRAPS = {
    "softhsm2": (WrapMethod.AES_KEY_WRAP_PAD_5649,),
    "nss-softokn": (WrapMethod.AES_KEY_WRAP_PAD_3394, WrapMethod.AES_CBC_PAD),
}
"""What each make's profile names; a blob of one format is none of the other's."""
PAD_NUMBERS = {"softhsm2": 0x210A, "nss-softokn": 0xCE534352}
"""CKM_AES_KEY_WRAP_PAD, and the same as a mechanism of the vendor (NSS)."""


@pytest.fixture(scope="module", params=sorted(WRAPS))
def initialised_hsm(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HsmInstallation]:
    """An installation after `hsm init`, of each make."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "nss-softokn":
            tokens = NssTokens(folder)
            for name, value in tokens.shim.environment.items():
                patch.setenv(name, value)
            installation = tokens.installation(folder)
        else:
            installation = HsmInstallation(folder)
        provision(installation.settings)
        yield installation


def test_init_twice_changes_nothing(initialised_hsm: HsmInstallation) -> None:
    """Where the HSM's owner makes the tokens too."""
    assert not provision(initialised_hsm.settings).changed


@pytest.mark.parametrize(
    "algorithm",
    [KeyAlgorithm.RSA_2048, KeyAlgorithm.EC_P256, KeyAlgorithm.EC_P384],
)
async def test_wrapped_key_signs_by_every_scheme_of_its_kind(
    initialised_hsm: HsmInstallation, algorithm: KeyAlgorithm
) -> None:
    """Made in one session, used in another."""
    async with initialised_hsm.session() as session:
        assert session.status is HsmStatus.READY, session.reason
        key = await session.generate_wrapped(algorithm)

    async with initialised_hsm.session() as session:
        for scheme in {scheme_for(algorithm), scheme_for(algorithm, pss=True)}:
            signature = await session.sign(key, DIGEST, scheme)
            public = key_pairs.load_spki(key.spki)
            signatures.verify(public, signature, DIGEST, scheme)

    assert key.method_k is key.method_w is WRAPS[initialised_hsm.profile.name][0]


async def test_resident_keys_sign(initialised_hsm: HsmInstallation) -> None:
    """The other mode, RSA and EC."""
    async with initialised_hsm.session() as session:
        for algorithm in (KeyAlgorithm.RSA_2048, KeyAlgorithm.EC_P256):
            ref = KeyReference(TokenRole.FIRMA, algorithm.encode())
            spki = await session.generate(ref, algorithm)
            await session.self_test(ref)
            assert await session.public_key(ref) == spki
            assert await session.destroy(ref) == 2


async def test_identity_is_the_pinned_one(initialised_hsm: HsmInstallation) -> None:
    """An EC key, since both makes have curves."""
    async with initialised_hsm.session() as session:
        spki, signature = await session.identity_statement(MESSAGE)

    public = key_pairs.load_spki(spki)
    signatures.verify(public, signature, DIGEST, SignatureScheme.ECDSA)
    assert b"BEGIN PUBLIC KEY" in identity_path(initialised_hsm.settings).read_bytes()


def test_every_method_of_the_profile_wraps_and_unwraps(
    initialised_hsm: HsmInstallation,
) -> None:
    """And no method of the profile is missing on the token."""
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        available = session.token.slot.get_mechanisms()
        for method in WRAPS[initialised_hsm.profile.name]:
            assert (
                Wrapping(initialised_hsm.profile).methods.mechanisms[method]
                in available
            )
            for kind in (KeyAlgorithm.RSA_2048, KeyAlgorithm.EC_P256):
                master = 1, MasterKeys(session).get(1)
                key = Wrapping(initialised_hsm.profile).generate(
                    session, kind, master, method
                )
                assert key.method_w is method
    assert initialised_hsm.profile.keys.wrap == WRAPS[initialised_hsm.profile.name]


def test_mechanism_is_taken_by_the_number_of_the_profile(
    initialised_hsm: HsmInstallation,
) -> None:
    """A vendor's own, or any: same format, other mechanism."""
    method = initialised_hsm.profile.keys.wrap[0]
    numbers = {method: PAD_NUMBERS[initialised_hsm.profile.name]}
    keys = dataclasses.replace(initialised_hsm.profile.keys, wrap_numbers=numbers)
    vendors = Wrapping(dataclasses.replace(initialised_hsm.profile, keys=keys))
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        master = MasterKeys(session).get(1)
        key = vendors.generate(session, KeyAlgorithm.EC_P256, (1, master), method)

        with Wrapping(initialised_hsm.profile).unwrapped(key, master) as private:
            signatures.self_test(private, key_pairs.load_spki(key.spki))


def test_format_of_one_make_is_not_the_others(initialised_hsm: HsmInstallation) -> None:
    """By the length of a wrapped AES-256 key: RFC 5649 adds 8 bytes, 3394 pads."""
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        key = Wrapping(initialised_hsm.profile).generate(
            session,
            KeyAlgorithm.EC_P256,
            (1, MasterKeys(session).get(1)),
            initialised_hsm.profile.keys.wrap[0],
        )

    expected = 40 if initialised_hsm.profile.name == "softhsm2" else 48
    assert len(key.blob_w) == expected


def test_unwrapped_key_cannot_be_read(initialised_hsm: HsmInstallation) -> None:
    """Sensitive and not extractable by its attributes, and by trying."""
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        master = MasterKeys(session).get(1)
        method = initialised_hsm.profile.keys.wrap[0]
        key = Wrapping(initialised_hsm.profile).generate(
            session, KeyAlgorithm.RSA_2048, (1, master), method
        )
        with Wrapping(initialised_hsm.profile).unwrapped(key, master) as private:
            key_exposure.refuse_readable(private)
            for part in (pkcs11.Attribute.PRIVATE_EXPONENT, pkcs11.Attribute.PRIME_1):
                with pytest.raises(pkcs11.exceptions.AttributeSensitive):
                    private[part]
        with pytest.raises(pkcs11.exceptions.PKCS11Error):
            private[pkcs11.Attribute.SENSITIVE]


class _Looking(SessionCalls):
    """Looks through the binding at a key that is about to sign."""

    def __init__(self, library: Library, session: pkcs11.Session) -> None:
        super().__init__(library, session)
        self.session = session
        self.seen: list[dict[pkcs11.Attribute, object]] = []

    def sign(
        self,
        key: int,
        mechanism: pkcs11.Mechanism,
        parameter: bytes | None,
        data: bytes,
    ) -> bytes:
        attributes = pkcs11.Attribute
        passing = {
            attributes.CLASS: pkcs11.ObjectClass.PRIVATE_KEY,
            attributes.TOKEN: False,
        }
        (found,) = self.session.get_objects(passing)
        assert isinstance(found, pkcs11.PrivateKey)
        key_exposure.refuse_readable(found)
        self.seen.append({name: found[name] for name in templates.UNWRAPPED_PRIVATE})
        return super().sign(key, mechanism, parameter, data)


@pytest.mark.parametrize("kind", [KeyAlgorithm.RSA_2048, KeyAlgorithm.EC_P256])
def test_key_in_its_one_use_is_what_its_template_says(
    initialised_hsm: HsmInstallation, kind: KeyAlgorithm
) -> None:
    """As the binding unwraps it: it cannot be read, and is gone after it."""
    with opened(initialised_hsm.settings.hsm, initialised_hsm.profile) as library:
        label = initialised_hsm.settings.hsm.firma.label
        pin = obtain_pin(
            initialised_hsm.settings.hsm.firma, initialised_hsm.settings.environment
        )
        session = log_in(find_token(library, label), pin)
        calls = _Looking(library, session)
        one_use = OneUse(calls, initialised_hsm.profile)
        master = MasterKeys(session).get(1)
        for method in initialised_hsm.profile.keys.wrap:
            key = Wrapping(initialised_hsm.profile).make(
                session, kind, (1, master), method
            )
            with Wrapping(initialised_hsm.profile).unwrapped(key, master) as private:
                expected = {name: private[name] for name in templates.UNWRAPPED_PRIVATE}
            before = len(list(session.get_objects()))

            order = signatures.order_for(
                kind, DIGEST, scheme_for(kind), DigestAlgorithm.SHA256
            )
            signature = one_use.sign(key, master, order)

            public = key_pairs.load_spki(key.spki)
            signatures.verify(public, signature, DIGEST, scheme_for(kind))
            assert calls.seen.pop() == expected
            assert len(list(session.get_objects())) == before


def test_readable_key_is_noticed(initialised_hsm: HsmInstallation) -> None:
    """The trying itself works: a key that is not sensitive is found out."""
    open_template = {
        **templates.NEW_PRIVATE,
        pkcs11.Attribute.SENSITIVE: False,
        pkcs11.Attribute.PRIVATE: False,
    }
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        public, private = key_pairs.generate_pair(
            session, KeyAlgorithm.RSA_2048, open_template
        )
        with pytest.raises(HsmRefusedError) as caught:
            key_exposure.refuse_readable(private)
        public.destroy()
        private.destroy()

    assert caught.value.reason == "the secret value of the RSA key can be read"


def test_session_objects_are_gone_after_a_failure(
    initialised_hsm: HsmInstallation,
) -> None:
    """A refusal between unwrapping and signing leaves nothing either."""
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        master = MasterKeys(session).get(1)
        method = initialised_hsm.profile.keys.wrap[0]
        before = len(list(session.get_objects()))
        key = Wrapping(initialised_hsm.profile).generate(
            session, KeyAlgorithm.EC_P256, (1, master), method
        )
        with (
            pytest.raises(RuntimeError),
            Wrapping(initialised_hsm.profile).unwrapped(key, master),
        ):
            raise RuntimeError

        assert len(list(session.get_objects())) == before


async def test_rewrapped_key_signs(initialised_hsm: HsmInstallation) -> None:
    """From one master key to another, on each make."""
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        MasterKeys(session).make(2)
    try:
        async with initialised_hsm.session() as opened:
            key = await opened.generate_wrapped(KeyAlgorithm.EC_P256)
            blob, method = await opened.rewrap(key.blob_w, key.method_w, 2, 1)
            moved = type(key)(
                key.algorithm, key.spki, 1, blob, method, key.blob_k, key.method_k
            )
            signature = await opened.sign(moved, DIGEST, SignatureScheme.ECDSA)
    finally:
        with initialised_hsm.raw(TokenRole.FIRMA) as session:
            MasterKeys(session).get(2).destroy()

    signatures.verify(
        key_pairs.load_spki(key.spki), signature, DIGEST, SignatureScheme.ECDSA
    )


async def test_second_pair_under_one_id_is_refused(
    initialised_hsm: HsmInstallation,
) -> None:
    """Nothing is made, and the first one signs on (F17).

    The more so on NSS, where a second pair would silently take the first's place.
    """
    ref = KeyReference(TokenRole.FIRMA, b"taken")
    async with initialised_hsm.session() as session:
        spki = await session.generate(ref, KeyAlgorithm.EC_P256)
        with pytest.raises(HsmRefusedError) as caught:
            await session.generate(ref, KeyAlgorithm.EC_P256)
        await session.self_test(ref)
        assert await session.public_key(ref) == spki
        await session.destroy(ref)

    assert caught.value.code is ErrorCode.ALREADY_EXISTS


async def test_twins_are_refused(initialised_hsm: HsmInstallation) -> None:
    """Of two master keys with one label neither is chosen (F17)."""
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        twin = session.generate_key(
            pkcs11.KeyType.AES,
            256,
            id=b"twin",
            label=label_of(1),
            store=True,
            template=templates.MASTER,
        )
        try:
            with pytest.raises(HsmRefusedError) as caught:
                MasterKeys(session).get(1)
        finally:
            twin.destroy()

    assert caught.value.reason == "2 keys are labelled rubrica-mwk-1"


async def test_wrong_pin_is_told_as_such(initialised_hsm: HsmInstallation) -> None:
    """And not as an HSM that is away."""
    file = initialised_hsm.settings.hsm.firma.pin_file
    right = file.read_text("ascii")
    file.write_text("9182736455\n", "ascii")
    try:
        async with initialised_hsm.session() as session:
            assert session.status is HsmStatus.PIN
    finally:
        file.write_text(right, "ascii")
