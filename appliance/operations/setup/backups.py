"""What setup does for backups: the file that says where to, the unit's way, the timer.

    is_new = backups.bring_file(answers)
    backups.make_way(settings, starts=is_new)

Source: docs/backup.md "Every day"; systemd.resource-control(5), "IPAddressAllow=".
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from appliance.cli.terminal import say
from appliance.operations import system
from appliance.operations.backup.bucket_destination import places_of
from appliance.operations.backup.buckets import FILES, BackupBucket
from appliance.operations.backup.config import FILE, BackupConfig
from appliance.operations.setup.addresses import addresses_of_host
from appliance.operations.setup_answers import Answers
from appliance.operations.systemd_units import shown
from appliance.settings import Settings, SettingsError

_DROP_IN: Final = """\
# Written by `rubrica setup`, and again where it is another: the way to the buckets of
# backups. Lines of your own go into a file beside it.
[Service]
"""
_UNIT: Final = "rubrica-backup.service"
_TIMER: Final = "rubrica-backup.timer"
HIDDEN: Final = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 (where nothing is put)
"""What the unit has empty ones of (ProtectHome=, PrivateTmp=)."""
_RESOLVERS: Final = Path("/etc/resolv.conf")
_RESOLVER: Final = re.compile(r"^nameserver\s+(\S+)", re.MULTILINE)


def read_complete(path: Path) -> BackupConfig:
    """A file that says all that a timer needs.

    Args:
        path: of the file.

    Raises:
        SettingsError: it cannot be read, is wrong, or leaves something out.
    """
    config = BackupConfig.read(path)
    if config.to is None:
        msg = f"{path}: to: is missing; a timer gives no options"
        raise SettingsError(msg)
    if not config.recipients and not config.recipients_files:
        msg = f"{path}: recipients: is missing; a timer gives no options"
        raise SettingsError(msg)
    unseen = [str(each) for each in _files(config) if _is_hidden(each)]
    if unseen:
        msg = (
            f"{path}: {', '.join(unseen)}: {_UNIT} sees nothing below "
            f"{', '.join(HIDDEN)}; a key's place is /etc/rubrica/secrets"
        )
        raise SettingsError(msg)
    return config


def _files(config: BackupConfig) -> Iterator[Path]:
    """Files and folders that the unit has to see.

    Raises:
        SettingsError: what says how a bucket is reached is wrong, or missing.
    """
    yield from config.recipients_files
    yield from (
        each for each in (config.to, config.secrets_to) if isinstance(each, Path)
    )
    for bucket in config.buckets():
        known = bucket.settings if bucket is not None else None
        for name in FILES if known is not None else ():
            file = getattr(known, name)
            if file is not None:
                yield file


def _is_hidden(path: Path) -> bool:
    return any(path.resolve().is_relative_to(each) for each in HIDDEN)


def bring_file(answers: Answers, into: Path = FILE) -> bool:
    """Copy the file that an answer names to where the timer's is, unless there is one.

    Args:
        answers: looked at.
        into: where to.

    Returns:
        Whether it was copied.

    Raises:
        SettingsError: it will not do.
    """
    is_new = bool(answers.backup_file) and not into.exists()
    if answers.backup_file:
        given = Path(answers.backup_file)
        read_complete(given)
        system.write_if_missing(into, given.read_text("utf-8"), mode=0o644, owner=0)
    return is_new


def make_way(settings: Settings, *, starts: bool) -> None:
    """Let the unit reach what its file names, and look for it.

    Where there is no file, backups are not made.

    Args:
        settings: of the installation.
        starts: has the timer run from now on; else that stays as it is, and it is
            told where it does not run.

    Raises:
        SettingsError: a place is away, or cannot be used.
    """
    if not FILE.exists():
        say(f"no backups yet: {FILE} says where to (docs/backup.md)")
        return
    config = read_complete(FILE)
    if starts:
        # Before what may fail: the next run finds the file, and leaves the timer as is.
        system.run("systemctl", "enable", "--quiet", "--now", _TIMER)
    lines = way_to(each for each in config.buckets() if each is not None)
    _write_drop_in(system.UNITS / f"{_UNIT}.d" / "backup.conf", lines)
    if shown(_TIMER, "ActiveState") != "active":
        say(f"no backups by themselves: systemctl enable --now {_TIMER}")
    for place in places_of(settings, config.at_once()):
        if place is not None:
            place.check()
            say(f"backups go to {place.told}")


def _write_drop_in(path: Path, lines: list[str]) -> None:
    text = _DROP_IN + "".join(f"{line}\n" for line in lines)
    before = path.read_text("utf-8") if path.exists() else _DROP_IN
    if before == text:
        return
    if lines:
        path.parent.mkdir(parents=True, exist_ok=True)
        # In the place of the one before: killed between, the unit has one of them.
        system.write_as_it_is_now(path, text, mode=0o644, owner=0)
    else:
        path.unlink()
    system.run("systemctl", "daemon-reload")


def way_to(buckets: Iterable[BackupBucket], resolvers: Path = _RESOLVERS) -> list[str]:
    """Lines of a unit that let it reach buckets, beside this machine.

    A store within the operator's networks has the addresses of its name. Those of one
    on the Internet change from one minute to the next, so that any may be reached: TLS
    says whether it is the store. A name needs the machine's name servers as well.

    Args:
        buckets: that backups go to.
        resolvers: file that names the name servers.

    Raises:
        SettingsError: a store's name has no address.
    """
    found: set[str] = set()
    for bucket in buckets:
        host = urlsplit(bucket.settings.address).hostname or ""
        here = addresses_of_host(host)
        found |= here
        if not _is_address(host):
            # Its comments may be in any character set.
            text = resolvers.read_text("ascii", "replace") if resolvers.exists() else ""
            found |= {each.partition("%")[0] for each in _RESOLVER.findall(text)}
            if any(ipaddress.ip_address(each).is_global for each in here):
                return ["IPAddressAllow=any"]
    beyond = sorted(
        each
        for each in found
        if _is_address(each) and not ipaddress.ip_address(each).is_loopback
    )
    return [f"IPAddressAllow={each}" for each in beyond]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
