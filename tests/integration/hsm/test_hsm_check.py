"""`rubrica hsm check` on a real SoftHSM."""

import re
from pathlib import Path

import pytest

import hsm_config
from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyMode, TokenRole
from appliance.secrets.admitted_hosts import admit
from appliance.secrets.own_host import own_name
from appliance.settings import Settings
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.pkcs11.module import token_settings
from hsm_config.provisioning.signing_token import identity_path
from hsm_config.self_check.check import check
from hsm_config.self_check.report import CheckReport, Mark
from tests.support.hsm.hsm_installation import HsmInstallation

EC = (KeyAlgorithm.EC_P256,)
PROFILES = Path(hsm_config.__file__).parent / "profiles"


def _bad(report: CheckReport) -> set[str]:
    return set(report.named(Mark.BAD))


def test_check_of_a_good_hsm_ends_with_zero(initialised_hsm: HsmInstallation) -> None:
    """The table names module, tokens, keys and CA, and the verdict is good."""
    code, said = initialised_hsm.command("check", "--quick")

    assert code == 0, said
    for word in ("libsofthsm2.so", "token firma", "unwrapped key", "token pki", "CA "):
        assert word in said
    assert "BAD" not in said
    weak = "This HSM is ready; mind what is weak (software token)."
    assert said.rstrip().endswith(weak)


def test_check_leaves_no_key_behind(initialised_hsm: HsmInstallation) -> None:
    """The keys that it makes are gone when it ends."""
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        before = len(list(session.get_objects()))

    initialised_hsm.check()

    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        assert len(list(session.get_objects())) == before


def test_check_of_own_keys_makes_none(
    initialised_hsm: HsmInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them is looked at all the same."""
    shim = initialised_hsm.shimmed(monkeypatch)
    hsm = initialised_hsm.settings.hsm.model_copy(update={"module": shim.path})
    settings = initialised_hsm.settings.model_copy(update={"hsm": hsm})

    report = check(settings, algorithms=(), processes=())

    assert report.good
    own = {"master key", "worker identity", "keep-alive key", "CA"}
    assert own <= set(report.named(Mark.OK))
    assert shim.count("C_GenerateKeyPair") == shim.count("C_GenerateKey") == 0
    assert shim.count("C_Sign") > 0


def test_check_of_own_keys_finds_one_missing(initialised_hsm: HsmInstallation) -> None:
    """Exit code 1, and its line is bad."""
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        objects.destroy(session, objects.KEEP_ALIVE_KEY.cka_id)

    code, said = initialised_hsm.command("check", "--own")

    assert code == 1
    assert "BAD   keep-alive key" in said


def test_check_with_a_wrong_pin_names_it_and_shows_none(
    initialised_hsm: HsmInstallation,
) -> None:
    """Exit code 1, the token's line is bad, and no PIN is printed."""
    initialised_hsm.settings.hsm.firma.pin_file.write_text("9182736455\n")

    code, said = initialised_hsm.command("check", "--quick")

    assert code == 1
    assert "BAD   PIN firma" in said
    assert "PinIncorrect" in said
    assert "9182736455" not in said
    assert initialised_hsm.pin(TokenRole.PKI) not in said


def test_check_with_the_tokens_away_is_bad(initialised_hsm: HsmInstallation) -> None:
    """A module that does not start is a line, not a traceback."""
    initialised_hsm.tokens.rename(initialised_hsm.away)

    assert _bad(initialised_hsm.check()) == {"module"}


def test_check_before_init_names_the_missing_tokens(tmp_path: Path) -> None:
    """Every missing token has its line."""
    installation = HsmInstallation(tmp_path)
    installation.tokens.mkdir(parents=True)
    conf = installation.settings.hsm.softhsm_conf
    assert conf is not None
    conf.write_text(f"directories.tokendir = {installation.tokens}\n")

    assert _bad(installation.check()) == {"host key", "token firma", "token pki"}


def test_check_finds_a_host_key_that_fronts_here_do_not_know(
    initialised_hsm: HsmInstallation,
) -> None:
    """There and admitted after `init`; lost, of another list, or in none."""
    settings = initialised_hsm.settings
    report = initialised_hsm.check()
    assert "host key" in report.named(Mark.OK)
    hosts = settings.signing_hosts_file.read_text("utf-8")
    settings.signing_hosts_file.unlink()
    of_a_host_without_fronts = _bad(initialised_hsm.check())
    admit(settings.signing_hosts_file, own_name(), bytes(32))
    of_another_key = _bad(initialised_hsm.check())
    settings.signing_hosts_file.write_text(hosts, "utf-8")
    settings.host_key_file.unlink()

    assert of_a_host_without_fronts == set()
    assert of_another_key == {"host key"}
    assert _bad(initialised_hsm.check()) == {"host key"}
    code, said = initialised_hsm.command("init")
    assert code == 0
    assert "made  host key" in said
    assert _bad(initialised_hsm.check()) == set()


def test_check_finds_a_certificate_of_another_key(
    initialised_hsm: HsmInstallation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A CA certificate that does not match the CA's key is bad."""
    other = HsmInstallation.ready(tmp_path_factory.mktemp("other"), name="other")
    initialised_hsm.settings.ca_file.write_bytes(other.settings.ca_file.read_bytes())

    assert _bad(initialised_hsm.check()) == {"CA"}


def test_check_finds_a_missing_ca_key(initialised_hsm: HsmInstallation) -> None:
    """A CA key that is gone is bad."""
    with initialised_hsm.raw(TokenRole.PKI) as session:
        objects.destroy(session, objects.CA_KEY.cka_id)

    assert _bad(initialised_hsm.check()) == {"CA"}


def test_command_without_settings_says_so(tmp_path: Path) -> None:
    """A settings file that is not there ends with 78 and one line."""
    installation = HsmInstallation(tmp_path)
    installation.file.unlink()

    code, said = installation.command("check")

    assert code == 78
    assert "cannot be read" in said
    assert len(said.splitlines()) == 1


def test_check_measures_by_the_number_of_processes(
    initialised_hsm: HsmInstallation,
) -> None:
    """One line each, with unwrapping and without; every process logs in itself."""
    report = check(
        initialised_hsm.settings, algorithms=EC, processes=(1, 2), rate_s=0.05
    )

    lines = {line.name: line.detail for line in report.lines}
    for name in ("rate 1 process", "rate 2 processes"):
        assert "wrapped" in lines[name], lines
        assert "rsa-2048 signatures a second" in lines[name]
    assert report.good


def test_check_names_a_missing_master_key_and_identity(
    initialised_hsm: HsmInstallation,
) -> None:
    """Wrapped mode is tried all the same, under a key of the session."""
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        MasterKeys(session).get(1).destroy()
        objects.destroy(session, objects.IDENTITY_KEY.cka_id)

    report = initialised_hsm.check()

    assert _bad(report) == {"master key", "worker identity"}
    assert "unwrapped key" in report.named(Mark.OK)


def test_check_finds_an_identity_that_is_not_the_pinned_one(
    initialised_hsm: HsmInstallation,
) -> None:
    """Fronts would not believe this token."""
    path = identity_path(initialised_hsm.settings)
    path.write_text("-----BEGIN PUBLIC KEY-----\n")

    assert _bad(initialised_hsm.check()) == {"worker identity"}


def test_check_of_resident_keys_on_a_make_that_wraps_none(
    initialised_hsm: HsmInstallation, tmp_path: Path
) -> None:
    """A profile without methods is refused in wrapped mode, and good in resident."""
    text = (PROFILES / "softhsm2.toml").read_text("utf-8")
    profile = tmp_path / "resident.toml"
    profile.write_text(re.sub(r"(?m)^wrap = .*$", "wrap = []", text), "utf-8")
    hsm = initialised_hsm.settings.hsm.model_copy(update={"profile": str(profile)})
    wrapped = initialised_hsm.settings.model_copy(update={"hsm": hsm})
    resident = initialised_hsm.settings.model_copy(
        update={"hsm": hsm.model_copy(update={"key_mode": KeyMode.RESIDENT})}
    )

    assert _bad(check(wrapped, processes=())) == {"key mode", "mechanisms firma"}
    report = check(resident, processes=(1,), rate_s=0.05)
    assert report.good
    assert "wrapped" not in report.lines[-1].detail


def test_check_looks_at_every_member(tmp_path: Path) -> None:
    """Each has its lines, and a master key that is not the primary's is bad."""
    installation = HsmInstallation.ready(tmp_path, members=2)

    whole = installation.check()
    with installation.raw_members() as (_, second):
        MasterKeys(second).get(1).destroy()
        MasterKeys(second).make(1)
    report = installation.check()

    assert whole.good
    assert "master key firma-2" in whole.named(Mark.OK)
    assert _bad(report) == {"master key firma-2"}


# PINs from elsewhere


def _with_source(initialised_hsm: HsmInstallation, source: str) -> Settings:
    hsm = initialised_hsm.settings.hsm
    tokens = {
        role.value: token_settings(hsm, role).model_copy(update={"pin_source": source})
        for role in TokenRole
    }
    return initialised_hsm.settings.model_copy(
        update={"hsm": hsm.model_copy(update=tokens)}
    )


def test_pins_asked_for_at_the_terminal_are_taken(
    initialised_hsm: HsmInstallation,
) -> None:
    """By their tokens' labels, and no file is read."""
    pins = {f"PIN of token {role}: ": initialised_hsm.pin(role) for role in TokenRole}
    for role in TokenRole:
        token_settings(initialised_hsm.settings.hsm, role).pin_file.unlink()

    report = check(
        _with_source(initialised_hsm, "prompt"),
        ask=pins.__getitem__,
        algorithms=EC,
        processes=(),
    )

    assert not {"PIN firma", "PIN pki"} & _bad(report)


def test_command_without_a_terminal_does_not_ask(
    initialised_hsm: HsmInstallation,
) -> None:
    """It says so, and tries no PIN."""
    code, said = initialised_hsm.command("check", "--quick", "--ask-pin")

    assert code == 1
    assert "there is no terminal to ask at" in said
