"""A signing host's own key, and the hosts that fronts of a machine admit."""

import os
import re
import shlex
import stat
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from appliance.cli import main
from appliance.operations.backup.places import public_keys, secret_places
from appliance.secrets.admitted_hosts import (
    AdmittedHosts,
    admit,
    listed,
    parse_key,
    remove,
)
from appliance.secrets.host_key import (
    fingerprint,
    key_text,
    make_host_key,
    read_host_key,
)
from appliance.secrets.own_host import own_name, prepare_own_host
from appliance.settings import Settings, SettingsError
from tests.support.appliance.manual import run_lines
from tests.support.installation.settings import settings_in, tables_in, toml

A, B = bytes(range(32)), bytes(range(1, 33))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A settings file whose folder of public keys is there."""
    (tmp_path / "pki").mkdir()
    path = tmp_path / "settings.toml"
    path.write_text(toml(tables_in(str(tmp_path), str(tmp_path / "secrets"), "sqlite")))
    return path


def rubrica(file: Path, *arguments: str) -> int:
    """Run a command of the HSM on the settings."""
    return main(["--settings", str(file), "hsm", *arguments])


def test_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    """Mode 0600 in a folder of 0700, whatever the umask; then it is read."""
    path = tmp_path / "host" / "host-key.pem"
    before = os.umask(0)
    try:
        made, is_new = make_host_key(path)
    finally:
        os.umask(before)

    again, is_new_again = make_host_key(path)

    assert (is_new, is_new_again) == (True, False)
    assert made.public == again.public
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_one_of_many_makes_the_key(tmp_path: Path) -> None:
    """Commands and a worker that start at once have one key."""
    path = tmp_path / "host" / "host-key.pem"
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.append(make_host_key(path)[0].public))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert len(set(found)) == 1


def test_key_that_is_not_this_hosts_alone_is_refused(tmp_path: Path) -> None:
    """Open to others, of another kind, no key, or a link to one."""
    path = tmp_path / "host" / "host-key.pem"
    make_host_key(path)
    path.chmod(0o640)
    with pytest.raises(SettingsError, match="0600"):
        read_host_key(path)
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(SettingsError, match="cannot be read"):
        read_host_key(link)
    other = ec.generate_private_key(ec.SECP256R1())
    pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for content in (pem, b"", b"-----BEGIN PRIVATE KEY-----\nsecret"):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(SettingsError) as refusal:
            read_host_key(path)
        assert "secret" not in str(refusal.value)


def test_folder_that_others_made_first_is_refused(tmp_path: Path) -> None:
    """Who may enter it could have put a key of theirs there."""
    folder = tmp_path / "host"
    folder.mkdir(mode=0o770)
    folder.chmod(0o770)

    with pytest.raises(SettingsError, match="0700"):
        make_host_key(folder / "host-key.pem")

    assert list(folder.iterdir()) == []


def test_key_is_in_no_backup(tmp_path: Path) -> None:
    """Neither beside the public keys nor among the secrets; the list of hosts is."""
    settings = settings_in(tmp_path)
    (settings.data_dir / "pki").mkdir(parents=True, exist_ok=True)
    prepare_own_host(settings)
    paths = [path for _, path in (*public_keys(settings), *secret_places(settings))]

    assert settings.host_key_file.is_file()
    assert settings.host_key_file not in paths
    assert settings.signing_hosts_file in paths
    assert all(settings.host_key_file.parent not in path.parents for path in paths)


def test_host_is_admitted_by_what_it_shows(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line that one machine shows is typed on another; fingerprints are alike."""
    other = tmp_path / "front"
    (other / "pki").mkdir(parents=True)
    front = other / "settings.toml"
    front.write_text(toml(tables_in(str(other), str(other / "secrets"), "sqlite")))

    def run(line: str) -> int:
        _, _, *words = shlex.split(line, comments=True)
        return rubrica(front if words[0] == "admit" else file, *words)

    done = run_lines(
        "keys.md",
        "Which hosts a front believes",
        0,
        run,
        only="rubrica hsm host-key",
    )
    said = capsys.readouterr().out
    line = re.search(r"^  rubrica hsm admit (\S+ \S+)$", said, re.MULTILINE)
    assert line is not None
    shown = re.search(r"^fingerprint  (.+)$", said, re.MULTILINE)
    assert shown is not None

    typed = ("signing-b MCow…", line[1])
    done |= run_lines(
        "keys.md",
        "Which hosts a front believes",
        0,
        run,
        typed,
        only="rubrica hsm admit",
    )
    assert set(done.values()) == {0}
    admitted = capsys.readouterr().out
    assert rubrica(front, "admit", "--list") == 0
    there = capsys.readouterr().out

    assert f"made  {own_name()}: admitted" in admitted
    assert shown[1] in admitted
    assert there == f"{own_name()}  {shown[1]}\n"
    assert stat.S_IMODE((other / "pki" / "signing-hosts").stat().st_mode) == 0o644


def test_key_is_shown_alike_each_time(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Made by the first call; `--here` admits the host on its own machine as well."""
    assert rubrica(file, "host-key") == 0
    first = capsys.readouterr().out
    assert rubrica(file, "host-key", "--here") == 0
    second = capsys.readouterr().out

    assert first.startswith("made  ")
    assert second.startswith("kept  ")
    assert f"made  {own_name()} on this machine" in second
    assert first.splitlines()[-1] == second.splitlines()[-1]
    assert own_name() in listed(file.parent / "pki" / "signing-hosts")


@pytest.mark.parametrize(
    "arguments",
    [
        ("admit",),
        ("admit", "host"),
        ("admit", "", key_text(A)),
        ("admit", "host", key_text(A), "--list"),
        ("admit", "host", key_text(A), "--remove", "host"),
    ],
    ids=str,
)
def test_command_that_names_no_host_is_wrong(
    file: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """With words, and nothing is written."""
    assert rubrica(file, *arguments) == 2

    assert capsys.readouterr().err.strip()
    assert not (file.parent / "pki" / "signing-hosts").exists()


@pytest.mark.parametrize(
    ("host", "key"),
    [
        ("host", "no-key"),
        ("host", "MCowBQYDK2VwAyEA"),
        ("a host", key_text(A)),
        ("../host", key_text(A)),
        ("host/1", key_text(A)),
    ],
)
def test_what_is_no_host_is_refused(
    file: Path, host: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same of a name or a key that is none."""
    assert rubrica(file, "admit", host, key) == 78

    assert capsys.readouterr().err.strip()
    assert not (file.parent / "pki" / "signing-hosts").exists()


def test_host_is_removed_once(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second time it is said that there is none."""
    hosts = file.parent / "pki" / "signing-hosts"
    admit(hosts, "a", A)
    admit(hosts, "b", B)

    assert rubrica(file, "admit", "--remove", "a") == 0
    assert rubrica(file, "admit", "--remove", "a") == 1

    assert "is not admitted" in capsys.readouterr().err
    assert listed(hosts) == {"b": B}


def test_other_key_takes_the_place_of_the_first(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And is told of; a host that is renamed has one name."""
    hosts = file.parent / "pki" / "signing-hosts"
    for name, key in (("a", A), ("a", A), ("a", B), ("c", B)):
        assert rubrica(file, "admit", name, key_text(key)) == 0
    said = capsys.readouterr().out

    assert "kept  a: admitted by this key already" in said
    assert f"made  a: in the place of the key {fingerprint(A)}" in said
    assert listed(hosts) == {"c": B}


def test_lines_that_are_none_admit_nobody(tmp_path: Path) -> None:
    """Comments, halves and keys of other kinds are passed over; others count."""
    path = tmp_path / "signing-hosts"
    path.write_text(
        f"# a {key_text(A)}\n\nb\nc {key_text(A)[:-4]}\nd MTIz\n/e {key_text(A)}\n"
        f"f {key_text(B)}\n"
    )

    assert listed(path) == {"f": B}
    path.write_bytes(b"\xff\xfe")
    assert AdmittedHosts(path).key_of("f") is None
    with pytest.raises(SettingsError, match="signing-hosts"):
        listed(path)


def test_file_is_read_again_when_it_is_another(tmp_path: Path) -> None:
    """A running front notices an admission and a removal."""
    path = tmp_path / "signing-hosts"
    hosts = AdmittedHosts(path)
    seen = [hosts.key_of("a")]
    admit(path, "a", A)
    seen.append(hosts.key_of("a"))
    admit(path, "a", B)
    seen.append(hosts.key_of("a"))
    assert remove(path, "a")
    seen.append(hosts.key_of("a"))

    assert seen == [None, A, B, None]


def test_own_host_is_admitted_again_after_its_key_was_lost(tmp_path: Path) -> None:
    """As after a restore, which brings the list back and not the key."""
    settings: Settings = settings_in(tmp_path)
    settings.signing_hosts_file.parent.mkdir(parents=True, exist_ok=True)
    first = prepare_own_host(settings)
    kept = prepare_own_host(settings)
    settings.host_key_file.unlink()

    second = prepare_own_host(settings)

    assert (first.is_key_new, first.is_newly_admitted) == (True, True)
    assert (kept.is_key_new, kept.is_newly_admitted) == (False, False)
    assert (second.is_key_new, second.is_newly_admitted) == (True, True)
    assert second.public != first.public
    assert listed(settings.signing_hosts_file) == {own_name(): second.public}


def test_host_may_have_any_name_that_a_machine_may_have(tmp_path: Path) -> None:
    """Not those of the DNS alone: no installation stops for its machine's name."""
    path = tmp_path / "signing-hosts"
    names = {"-", "_a", "José", "a.b-c_d", "x" * 255}
    for number, name in enumerate(sorted(names)):
        admit(path, name, bytes([number + 1]) * 32)

    assert set(listed(path)) == names


def test_key_is_typed_as_it_is_shown() -> None:
    """The text of a key is that key."""
    assert parse_key(key_text(A)) == A
