"""`rubrica hsm check` on a real SoftHSM."""

from pathlib import Path

import pytest

from appliance.domain.hsm import TokenRole
from hsm_config import objects
from hsm_config.check import CheckReport
from hsm_config.provision import provision
from tests.parts.hsm import HsmInstallation


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> HsmInstallation:
    """An installation after `hsm init`, to copy."""
    installation = HsmInstallation(tmp_path_factory.mktemp("template"))
    provision(installation.settings)
    return installation


@pytest.fixture
def made(template: HsmInstallation, tmp_path: Path) -> HsmInstallation:
    """An installation after `hsm init`."""
    return template.copy(tmp_path)


def _bad(report: CheckReport) -> set[str]:
    return {line.name for line in report.lines if not line.good}


def test_check_of_a_good_hsm_ends_with_zero(made: HsmInstallation) -> None:
    """The table names module, tokens, speed and CA, and the verdict is good."""
    code, said = made.command("check")

    assert code == 0, said
    for word in ("libsofthsm2.so", "token firma", "token pki", "a second", "CA "):
        assert word in said
    assert "BAD" not in said
    assert said.rstrip().endswith("This HSM is ready.")


def test_check_leaves_no_key_behind(made: HsmInstallation) -> None:
    """The keys that it makes are gone when it ends."""
    with made.raw(TokenRole.FIRMA) as session:
        before = len(list(session.get_objects()))

    made.check()

    with made.raw(TokenRole.FIRMA) as session:
        assert len(list(session.get_objects())) == before


def test_check_with_a_wrong_pin_names_it_and_shows_none(made: HsmInstallation) -> None:
    """Exit code 1, the token's line is bad, and no PIN is printed."""
    made.settings.hsm.firma.pin_file.write_text("9182736455\n")

    code, said = made.command("check")

    assert code == 1
    assert "BAD  PIN firma" in said
    assert "PinIncorrect" in said
    assert "9182736455" not in said
    assert made.pin(TokenRole.PKI) not in said


def test_check_with_the_tokens_away_is_bad(made: HsmInstallation) -> None:
    """A module that does not start is a line, not a traceback."""
    made.tokens.rename(made.away)

    assert _bad(made.check()) == {"module"}


def test_check_before_init_names_the_missing_tokens(tmp_path: Path) -> None:
    """Every missing token has its line."""
    installation = HsmInstallation(tmp_path)
    installation.tokens.mkdir(parents=True)
    conf = installation.settings.hsm.softhsm_conf
    assert conf is not None
    conf.write_text(f"directories.tokendir = {installation.tokens}\n")

    assert _bad(installation.check()) == {"token firma", "token pki"}


def test_check_finds_a_certificate_of_another_key(
    made: HsmInstallation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A CA certificate that does not match the CA's key is bad."""
    other = HsmInstallation(tmp_path_factory.mktemp("other"))
    provision(other.settings)
    made.settings.ca_file.write_bytes(other.settings.ca_file.read_bytes())

    assert _bad(made.check()) == {"CA"}


def test_check_finds_a_missing_ca_key(made: HsmInstallation) -> None:
    """A CA key that is gone is bad."""
    with made.raw(TokenRole.PKI) as session:
        objects.destroy(session, objects.CA_KEY.cka_id)

    assert _bad(made.check()) == {"CA"}


def test_command_without_settings_says_so(tmp_path: Path) -> None:
    """A settings file that is not there ends with 78 and one line."""
    installation = HsmInstallation(tmp_path)
    installation.file.unlink()

    code, said = installation.command("check")

    assert code == 78
    assert "cannot be read" in said
    assert len(said.splitlines()) == 1
