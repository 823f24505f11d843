"""`rubrica hsm init` on a real SoftHSM."""

import os
import stat
import subprocess
from pathlib import Path

import pkcs11
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from appliance.domain.errors import HsmRefusedError
from appliance.domain.keys.hsm_keys import KeyAlgorithm, TokenRole
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.module import opened
from hsm_config.pkcs11.pin import make_pin
from hsm_config.pkcs11.tokens import _init_token, make_configuration
from hsm_config.provisioning.ca_certificates import is_demo, read_ca, read_root
from hsm_config.provisioning.init import provision
from tests.support.hsm.hsm_installation import OWN_KEYS, HsmInstallation
from tests.support.patience import CALL_S


@pytest.fixture
def bare(tmp_path: Path) -> HsmInstallation:
    """An installation before `hsm init`."""
    return HsmInstallation(tmp_path)


@pytest.fixture
def other(tmp_path_factory: pytest.TempPathFactory) -> HsmInstallation:
    """A second one, with keys and certificates of its own."""
    return HsmInstallation.ready(tmp_path_factory.mktemp("other"), name="other")


def _files(folder: Path) -> dict[Path, bytes]:
    """All files but those in which SoftHSM itself notes every login."""
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in {"token.object", "generation"}
    }


def test_init_makes_a_ready_hsm_where_nothing_is(bare: HsmInstallation) -> None:
    """From an empty folder to an HSM that passes its check."""
    report = provision(bare.settings)

    assert report.changed
    assert bare.check().good


def test_init_takes_pins_that_systemd_hands_over(
    bare: HsmInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SO PINs too: it makes none, and the tokens open with those of the credentials."""
    handed = tmp_path / "credentials"
    for name in ("firma", "firma-so", "pki", "pki-so"):
        make_pin(handed / f"{name}.pin", 32)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(handed))
    hsm = bare.settings.hsm
    monkeypatch.setattr("hsm_config.pkcs11.pin.PIN_FOLDER", hsm.firma.pin_file.parent)

    provision(bare.settings)

    assert bare.check().good
    named = [hsm.firma.pin_file, hsm.pki.pin_file]
    named += [hsm.firma.so_pin_file, hsm.pki.so_pin_file]
    assert [path.name for path in named if path.exists()] == []
    assert {path.name for path in named} == {path.name for path in handed.iterdir()}


def test_init_takes_no_pin_of_another_hsm_that_systemd_hands_over(
    bare: HsmInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files have the same names in another folder: the new HSM gets its own."""
    handed = tmp_path / "credentials"
    old = {make_pin(handed / f"{name}.pin", 32).value for name in ("firma", "firma-so")}
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(handed))

    provision(bare.settings)

    assert bare.check().good
    token = bare.settings.hsm.firma
    new = {path.read_text().strip() for path in (token.pin_file, token.so_pin_file)}
    assert len(old | new) == 4


def test_init_twice_changes_nothing(initialised_hsm: HsmInstallation) -> None:
    """A second run says so and leaves every file as it was."""
    before = _files(initialised_hsm.folder)

    report = provision(initialised_hsm.settings)

    assert not report.changed
    assert _files(initialised_hsm.folder) == before


def test_init_makes_pins_of_their_own_that_only_the_owner_reads(
    initialised_hsm: HsmInstallation,
) -> None:
    """Four random PINs, each in a 0600 file."""
    tokens = (initialised_hsm.settings.hsm.firma, initialised_hsm.settings.hsm.pki)
    files = [file for one in tokens for file in (one.pin_file, one.so_pin_file)]

    assert len({file.read_text() for file in files}) == 4
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_ca_of_a_trial_says_that_it_is_worth_nothing(
    initialised_hsm: HsmInstallation,
) -> None:
    """The demo words and the installation's name stand in both names."""
    settings = initialised_hsm.settings
    for certificate in (read_root(settings), read_ca(settings)):
        assert is_demo(certificate)
        assert "DEMO SIN VALIDEZ prueba" in certificate.subject.rfc4514_string()
        assert isinstance(key := certificate.public_key(), rsa.RSAPublicKey)
        assert key.key_size == 3072
    for file in (settings.root_file, settings.ca_file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_ca_hangs_on_the_root(initialised_hsm: HsmInstallation) -> None:
    """Two levels: the root lives for 20 years, the CA certifies no other CA."""
    root, ca = read_root(initialised_hsm.settings), read_ca(initialised_hsm.settings)

    lengths = [
        one.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length
        for one in (root, ca)
    ]
    years = [
        (one.not_valid_after_utc - one.not_valid_before_utc).days // 365
        for one in (root, ca)
    ]

    ca.verify_directly_issued_by(root)
    assert (lengths, years) == ([1, 0], [20, 10])


def test_lost_root_certificate_is_refused(initialised_hsm: HsmInstallation) -> None:
    """Verifiers trust that one: it is not made anew in silence."""
    initialised_hsm.settings.root_file.unlink()

    with pytest.raises(HsmRefusedError, match="root's certificate back"):
        provision(initialised_hsm.settings)


def test_ca_of_another_root_is_refused(
    initialised_hsm: HsmInstallation, other: HsmInstallation
) -> None:
    """A CA that was exchanged with its key's certificate is noticed."""
    initialised_hsm.settings.root_file.write_bytes(
        other.settings.root_file.read_bytes()
    )

    with pytest.raises(HsmRefusedError, match="another key"):
        provision(initialised_hsm.settings)


def test_ca_of_a_real_installation_is_no_demo(tmp_path: Path) -> None:
    """Without `trial`, the demo words do not appear."""
    installation = HsmInstallation(tmp_path, trial=False)

    provision(installation.settings)

    assert not is_demo(read_ca(installation.settings))


def test_openssl_takes_the_ca_as_a_root(initialised_hsm: HsmInstallation) -> None:
    """The self-signed root verifies by itself, and the CA by it, strictly."""
    root, ca = initialised_hsm.settings.root_file, initialised_hsm.settings.ca_file

    result = subprocess.run(
        ["openssl", "verify", "-x509_strict", "-CAfile", root, root, ca],
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stderr


def test_token_without_user_pin_is_completed(bare: HsmInstallation) -> None:
    """A run cut off right after C_InitToken is completed by the next one."""
    hsm = bare.settings.hsm
    assert hsm.softhsm_conf is not None
    make_configuration(hsm.softhsm_conf)
    so_pin = make_pin(hsm.firma.so_pin_file, 32)
    with opened(hsm, bare.profile) as library:
        _init_token(library, hsm.firma.label, so_pin)

    report = provision(bare.settings)

    assert "token firma" not in report.made
    assert "user PIN of token firma" in report.made
    assert bare.check().good


def test_half_a_ca_pair_without_certificate_is_made_again(
    initialised_hsm: HsmInstallation,
) -> None:
    """What a kill during key generation leaves does not stay."""
    initialised_hsm.settings.ca_file.unlink()
    with initialised_hsm.raw(TokenRole.PKI) as session:
        objects.private_key(session, objects.CA_KEY.cka_id).destroy()

    report = provision(initialised_hsm.settings)

    assert "CA key" in report.made
    assert initialised_hsm.check().good


def test_ca_key_without_certificate_is_certified_and_kept(
    initialised_hsm: HsmInstallation,
) -> None:
    """A run cut off before the certificate was written keeps its key."""
    before = read_ca(initialised_hsm.settings)
    initialised_hsm.settings.ca_file.unlink()

    report = provision(initialised_hsm.settings)

    assert "CA key" in report.kept
    assert read_ca(initialised_hsm.settings).public_key() == before.public_key()


def test_certificate_without_ca_key_is_refused(
    initialised_hsm: HsmInstallation,
) -> None:
    """A lost CA key is never replaced in silence."""
    with initialised_hsm.raw(TokenRole.PKI) as session:
        objects.destroy(session, objects.CA_KEY.cka_id)
    before = _files(initialised_hsm.folder)

    with pytest.raises(HsmRefusedError, match="its key is not on token pki"):
        provision(initialised_hsm.settings)

    assert _files(initialised_hsm.folder) == before


def test_certificate_of_another_key_is_refused(
    initialised_hsm: HsmInstallation, other: HsmInstallation
) -> None:
    """A certificate that came from elsewhere is noticed."""
    initialised_hsm.settings.ca_file.write_bytes(other.settings.ca_file.read_bytes())

    with pytest.raises(HsmRefusedError, match="another key"):
        provision(initialised_hsm.settings)


def test_trial_does_not_turn_into_a_real_installation(
    initialised_hsm: HsmInstallation,
) -> None:
    """A demo CA stays one, whatever the settings say later."""
    real = HsmInstallation(initialised_hsm.folder, trial=False)

    with pytest.raises(HsmRefusedError, match="a trial's"):
        provision(real.settings)


def test_two_tokens_with_one_label_are_refused(
    initialised_hsm: HsmInstallation,
) -> None:
    """A token's label must name one token."""
    words = ("--label", "firma", "--pin", "1234", "--so-pin", "4321")
    subprocess.run(
        ["softhsm2-util", "--init-token", "--free", *words],
        env={
            **os.environ,
            "SOFTHSM2_CONF": str(initialised_hsm.settings.hsm.softhsm_conf),
        },
        stdout=subprocess.DEVNULL,
        check=True,
    )

    with pytest.raises(HsmRefusedError, match="two tokens are labelled firma"):
        provision(initialised_hsm.settings)


def test_twin_of_the_ca_key_is_refused(initialised_hsm: HsmInstallation) -> None:
    """A second key with the CA's CKA_ID is refused, not chosen from."""
    with initialised_hsm.raw(TokenRole.PKI) as session:
        objects.generate(
            session,
            objects.CA_KEY.cka_id,
            objects.CA_LABEL,
            KeyAlgorithm.RSA_2048,
        )

    with pytest.raises(HsmRefusedError, match="two keys share CKA_ID"):
        provision(initialised_hsm.settings)


def test_stranger_with_the_ca_label_is_refused(
    initialised_hsm: HsmInstallation,
) -> None:
    """A key of another id under the CA's label is refused."""
    with initialised_hsm.raw(TokenRole.PKI) as session:
        objects.generate(session, b"stranger", objects.CA_LABEL, KeyAlgorithm.RSA_2048)

    with pytest.raises(HsmRefusedError, match="another key is labelled rubrica-ca"):
        provision(initialised_hsm.settings)


def test_one_pin_for_both_tokens_is_refused(bare: HsmInstallation) -> None:
    """Who may use the users' keys must not thereby use the CA's."""
    hsm = bare.settings.hsm
    for token in (hsm.firma, hsm.pki):
        token.pin_file.parent.mkdir(exist_ok=True)
        token.pin_file.write_text("the-same-pin\n")
        token.pin_file.chmod(0o600)

    with pytest.raises(HsmRefusedError, match="the same PIN"):
        provision(bare.settings)


def test_lost_pin_file_is_refused_and_not_made_anew(
    initialised_hsm: HsmInstallation,
) -> None:
    """A new PIN file would not open the old token."""
    initialised_hsm.settings.hsm.firma.pin_file.unlink()

    with pytest.raises(HsmRefusedError, match="its PIN file"):
        provision(initialised_hsm.settings)

    assert not initialised_hsm.settings.hsm.firma.pin_file.exists()


def test_two_inits_at_once_make_one_hsm(bare: HsmInstallation) -> None:
    """The second one waits and finds all made."""
    first, second = bare.start_command("init"), bare.start_command("init")
    said = [process.communicate(timeout=CALL_S)[0] for process in (first, second)]

    assert (first.returncode, second.returncode) == (0, 0), said
    assert sum("Nothing to do" in text for text in said) == 1
    assert bare.check().good


@pytest.mark.parametrize(
    "after_s",
    [
        0.3,
        0.5,
        *(pytest.param(after_s, marks=pytest.mark.long) for after_s in (0.2, 0.4, 0.6)),
    ],
)
def test_init_killed_is_completed_by_the_next(
    bare: HsmInstallation, after_s: float
) -> None:
    """Wherever a kill -9 falls, running it again ends well."""
    with bare.start_command("init") as process:
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            process.kill()

    code, said = bare.command("init")

    assert code == 0, said
    assert bare.check().good


def test_damaged_public_key_is_named(initialised_hsm: HsmInstallation) -> None:
    """What a disk left of its file is no number that a key has."""
    label = objects.CA_LABEL.encode()
    files = [
        p for p in initialised_hsm.tokens.rglob("*.object") if label in p.read_bytes()
    ]
    public = min(files, key=lambda path: path.stat().st_size)
    public.write_bytes(public.read_bytes()[: public.stat().st_size * 3 // 10])

    code, said = initialised_hsm.command("init")

    assert code == 1
    assert "may be damaged" in said
    assert "Traceback" not in said


def test_keys_made_by_init_cannot_be_read(initialised_hsm: HsmInstallation) -> None:
    """CA, TSA and keep-alive keys are sensitive, not extractable and only sign."""
    for ref in OWN_KEYS - {objects.IDENTITY_KEY}:
        with initialised_hsm.raw(ref.token) as session:
            key = objects.private_key(session, ref.cka_id)

            assert key[pkcs11.Attribute.SENSITIVE]
            assert key[pkcs11.Attribute.NEVER_EXTRACTABLE]
            assert not key[pkcs11.Attribute.DECRYPT]
            secret = (
                pkcs11.Attribute.VALUE
                if key.key_type is pkcs11.KeyType.EC
                else pkcs11.Attribute.PRIVATE_EXPONENT
            )
            with pytest.raises(pkcs11.exceptions.AttributeSensitive):
                key[secret]
