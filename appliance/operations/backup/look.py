"""What is amiss with the places that backups go to.

    for finding in look_at_backups(settings):
        print(finding.what, finding.remedy)

Nothing is changed.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from appliance.domain.vocab import Environment
from appliance.operations.backup import record
from appliance.operations.backup.bucket_destination import places_of
from appliance.operations.backup.config import FILE, BackupConfig
from appliance.operations.backup.destinations import Destination
from appliance.operations.backup.names import (
    RECORD,
    SECRETS,
    BackupName,
    installation_id,
)
from appliance.operations.installation_checks import Finding
from appliance.operations.systemd_units import is_masked, shown
from appliance.settings import Settings, SettingsError

_LATE: Final = timedelta(days=2)
"""One that was made by hand, and put elsewhere, is no sign that others were removed."""
_WHY: Final = "journalctl -u rubrica-backup -n 20"
_AGAIN: Final = "systemctl start rubrica-backup.service"
_TIMER: Final = "rubrica-backup.timer"
_OTHERWISE: Final = f"made by other means: systemctl mask {_TIMER}"
_HOW: Final = f"write it, and rubrica setup (docs/backup.md); {_OTHERWISE}"


def look_at_backups(settings: Settings, file: Path = FILE) -> Iterator[Finding]:
    """Places that are away, or have not what the record says was put there.

    Args:
        settings: of the installation.
        file: what says where they are. Where there is none, that is amiss in PROD,
            unless the timer is masked: backups are made by other means then.
    """
    is_ours = not is_masked(_TIMER)
    if not file.exists():
        if is_ours and settings.environment is Environment.PROD:
            yield Finding(f"no backups: {file} is not there", _HOW)
        return
    if is_ours and shown(_TIMER, "ActiveState") != "active":
        yield Finding(
            f"{_TIMER}: does not run", f"systemctl enable --now {_TIMER} ({_OTHERWISE})"
        )
    try:
        places = places_of(settings, BackupConfig.read(file).at_once())
    except SettingsError as exc:
        for line in str(exc).splitlines():
            yield Finding(line, "mend it there (docs/backup.md)")
        return
    try:
        tables = int(record.table_version(settings))
        whose = installation_id(record.documents_mark(settings, tables))
        last = record.last_backup(settings, tables)
    except SettingsError as exc:
        told = "; ".join(line.strip() for line in str(exc).splitlines())
        yield Finding(f"the record cannot be asked: {told}", "rubrica database check")
        return
    for kind, place in zip((RECORD, SECRETS), places, strict=True):
        if place is None:
            continue
        try:
            yield from _look_at(place, kind, whose, last)
        except (SettingsError, OSError) as exc:
            yield Finding(f"{exc}", _WHY)


def _look_at(
    place: Destination, kind: str, whose: str | None, last: datetime | None
) -> Iterator[Finding]:
    """What is amiss with one of them.

    Raises:
        SettingsError: it is away.
        OSError: the same.
    """
    place.check()
    names = [BackupName.of(each.file) for each in place.files()]
    made = [
        name.made
        for name in names
        if name is not None and (name.kind, name.installation) == (kind, whose)
    ]
    if not made:
        yield Finding(f"{place.told}: has no backup of this installation", _AGAIN)
    elif last is not None and last - max(made) > _LATE:
        told = f"{place.told}: its newest is of {max(made).isoformat()}, and the last "
        yield Finding(f"{told}was made {last.isoformat()}: who removed it?", _AGAIN)
