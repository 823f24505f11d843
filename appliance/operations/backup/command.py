"""`rubrica backup` and `rubrica restore`.

rubrica backup --to FOLDER --secrets-to OTHER --recipient age1…
rubrica restore --backup FILE --secrets FILE --identity KEYFILE
rubrica restore --compose FOLDER --backup FILE --secrets FILE --identity KEYFILE
rubrica restore --drill --backup FILE --secrets FILE --identity KEYFILE
rubrica restore --list --config /etc/rubrica/backup.toml

A folder may be a bucket, `s3://bucket/prefix`, and a file `s3://bucket/prefix/NAME`:
the file of --config says how it is reached.
"""

import argparse
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.cli.terminal import log_to_stderr, say
from appliance.domain.clock import SystemClock
from appliance.operations.backup.buckets import read_where
from appliance.operations.backup.config import TABLES, BackupConfig
from appliance.settings import CommandError, Settings, SettingsError, load_settings

if TYPE_CHECKING:
    from appliance.operations.backup.making import Made


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `backup` and `restore`.

    Args:
        commands: of the `rubrica` parser.
    """
    backup = commands.add_parser(
        "backup",
        help="write two encrypted files that an installation can be made anew from",
        epilog="Exit status: 0, both are whole; 78, what is told stood in the way, "
        "and nothing is left of what is not whole.",
    )
    backup.add_argument(
        "--config",
        type=Path,
        help="TOML file with these options, as /etc/rubrica/backup.toml; what is given "
        "here counts more",
    )
    backup.add_argument(
        "--to",
        type=read_where,
        help="folder of the record's backups, or their bucket: s3://bucket/prefix",
    )
    backup.add_argument(
        "--secrets-to",
        type=read_where,
        help="folder or bucket, in another place, of what opens the other: keys, PINs, "
        "tokens",
    )
    for name in ("recipient", "recipients-file"):
        backup.add_argument(
            f"--{name}", action="append", default=[], help="of age(1): who may read it"
        )
    backup.add_argument(
        "--keep",
        type=_number,
        metavar="N",
        help="how many of each stay (default, and 0: all)",
    )
    backup.set_defaults(run=_said(_backup))
    restore = commands.add_parser(
        "restore",
        help="bring a backup back on a machine that has none of it",
        epilog="Exit status: 0, all is there; 1, documents are missing, each in a "
        "line; 78, what is told stood in the way: mend it and run it again.",
    )
    restore.add_argument(
        "--backup", type=read_where, help="of the record: a file, or s3://bucket/…"
    )
    restore.add_argument(
        "--secrets",
        type=read_where,
        help="of the secrets, likewise, unless they are there",
    )
    restore.add_argument("--identity", type=Path, help="of age(1): file of the key")
    restore.add_argument(
        "--config",
        type=Path,
        help="TOML file that says how buckets are reached, as /etc/rubrica/backup.toml",
    )
    restore.add_argument(
        "--list",
        action="store_true",
        help="tell which backups lie where --config says that they go, and no more",
    )
    restore.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="how long to wait for a database that is away (default: not at all)",
    )
    which = restore.add_mutually_exclusive_group()
    which.add_argument(
        "--compose",
        type=Path,
        metavar="FOLDER",
        help="bring settings, keys and PINs of an installation in containers back "
        "into its folder, and make the rest of that (in the image); what is in volumes "
        "comes back by the service `recovery`",
    )
    _add_drill(restore, which)
    restore.set_defaults(run=_said(_restore))


def _add_drill(
    restore: argparse.ArgumentParser, which: "argparse._MutuallyExclusiveGroup"
) -> None:
    which.add_argument(
        "--drill",
        action="store_true",
        help="in a scratch folder, which is looked at and removed: nothing of this "
        "machine's installation, and no HSM, is touched. Status 0: it can be brought "
        "back; 1: it cannot, each fault in a line",
    )
    restore.add_argument(
        "--sample",
        type=_number,
        metavar="N",
        help="of a drill: how many documents are opened, by chance (default: all)",
    )
    restore.add_argument(
        "--signed",
        type=_number,
        default=20,
        metavar="N",
        help="of a drill: how many signed documents are verified, by chance "
        "(default: %(default)s)",
    )


def _number(text: str) -> int:
    """How many, of documents or of backups.

    Raises:
        ValueError: it is none.
    """
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def _said(
    work: Callable[[argparse.Namespace], int],
) -> Callable[[argparse.Namespace], int]:
    """The same, a fault of the system being one sentence."""

    def run(args: argparse.Namespace) -> int:
        # Told to stop, as by systemd or by the end of the terminal's session, it takes
        # away what it began, as at Ctrl-C: the database in clear, the more so.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # not by nohup(1)
            signal.signal(signal.SIGHUP, signal.default_int_handler)
        log_to_stderr()
        try:
            return work(args)
        except OSError as exc:
            # None: its traceback would tell nobody more.
            msg = f"{exc.filename or args.command}: {exc.strerror or exc}"
            raise SettingsError(msg) from None

    return run


def _wanted(args: argparse.Namespace) -> BackupConfig:
    """What the options say, and the file where they say nothing.

    Raises:
        SettingsError: the file cannot be used, or what must be said is not.
    """
    given = BackupConfig.read(args.config) if args.config else BackupConfig()
    keys, files = args.recipient, [Path(each) for each in args.recipients_file]
    if not keys and not files:
        keys, files = given.recipients, given.recipients_files
    wanted = BackupConfig(
        to=args.to or given.to,
        secrets_to=args.secrets_to or given.secrets_to,
        recipients=keys,
        recipients_files=files,
        keep=given.keep if args.keep is None else args.keep,
        bucket=given.bucket,
        secrets_bucket=given.secrets_bucket,
    )
    # What a configuration lacks is no fault of the command.
    kind = CommandError if args.config is None else SettingsError
    if wanted.to is None:
        msg = "backup: where to? Give --to, or --config"
        raise kind(msg)
    if not keys and not files:
        msg = "backup: who may read it? Give --recipient or --recipients-file"
        raise kind(msg)
    return wanted


def _backup(args: argparse.Namespace) -> int:
    from appliance.operations.backup import making, record  # noqa: PLC0415 (heavy)
    from appliance.operations.backup.bucket_destination import (  # noqa: PLC0415 (heavy)
        places_of,
    )

    settings = load_settings(args.settings)
    wanted = _wanted(args)
    recipients = [f"--recipient={each}" for each in wanted.recipients]
    recipients += [f"--recipients-file={each}" for each in wanted.recipients_files]
    place, secrets_place = places_of(settings, wanted)
    making.check_places(place, secrets_place)
    now = SystemClock().now()
    tables = record.table_version(settings)
    earlier = [each.file for each in place.files()]
    made = making.make_record(settings, args.settings, place, recipients, now, tables)
    # One after the other: a place of the secrets that is full keeps no record too many.
    _keep_newest(made, wanted.keep, earlier)
    whose = made.name.installation
    if secrets_place is not None:
        earlier = [each.file for each in secrets_place.files()]
        made = making.make_secrets(settings, secrets_place, recipients, now, whose)
        _keep_newest(made, wanted.keep, earlier)
        _tell_of_other_keys(settings)
    if wanted.keep > 0 and whose is None:
        say("nothing older is removed before rubrica migrate has marked the record")
    # Last: a figure tells how long ago all of it was well.
    record.note_backup(settings, now, int(tables))
    return 0


def _keep_newest(made: "Made", keep: int, earlier: list[str]) -> None:
    """Tell of a backup that is whole, and remove those that it makes one too many.

    Raises:
        SettingsError: one cannot be removed.
        OSError: the same.
    """
    from appliance.operations.backup.making import forget_older  # noqa: PLC0415 (heavy)

    say(f"{made.told}: {made.files} files, {made.size} bytes")
    for older in forget_older(made, keep, earlier) if keep > 0 else ():
        say(f"{older}: removed")


def _tell_of_other_keys(settings: Settings) -> None:
    """Say which keys are in no backup."""
    if settings.hsm.softhsm_conf is None:
        say("the HSM's keys are in none of them: back it up by its vendor's means")
    for one in settings.hsm.replicas:
        if one.config is not None:
            say(f"the keys of token {one.label} are in none of them: {one.config}")


def _drill(args: argparse.Namespace, backup: Path, secrets: Path | None) -> int:
    from appliance.operations.backup.drill import Drill, drill  # noqa: PLC0415 (heavy)

    assert secrets is not None  # noqa: S101 (see _refuse_missing)
    wanted = Drill(backup, secrets, args.identity, args.sample, args.signed)
    began = time.monotonic()
    say(f"drill of {backup.name} and {secrets.name}")
    well = True
    for part in drill(wanted):
        well = well and not part.faults
        if not part.faults:
            say(f"ok     {part.name}: {part.told}")
        for fault in part.faults:
            say(f"FAULT  {part.name}: {fault}")
    verdict = "can be brought back" if well else "can NOT be brought back as it is"
    say(f"this backup {verdict}; looked at in {time.monotonic() - began:.0f} s")
    return 0 if well else 1


def _restore(args: argparse.Namespace) -> int:
    from appliance.operations.backup.fetching import fetched  # noqa: PLC0415 (heavy)

    config = BackupConfig.read(args.config) if args.config else BackupConfig()
    if args.list:
        return _list(config)
    for option in ("backup", "identity"):
        if getattr(args, option) is None:
            msg = f"restore: give --{option}, or --list and --config"
            raise CommandError(msg)
    # Before what may take hours.
    _refuse_missing(args)
    with (
        fetched(args.backup, config.bucket, TABLES[0]) as backup,
        fetched(args.secrets, config.secrets_bucket, TABLES[1])
        if args.secrets
        else nullcontext() as secrets,
    ):
        work = _drill if args.drill else _bring_back
        if args.compose:
            work = _bring_folder_back
        return work(args, backup, secrets)


def _refuse_missing(args: argparse.Namespace) -> None:
    """Refuse files that are not there, and a drill without secrets.

    Raises:
        SettingsError: they are not.
    """
    needed = [args.backup, args.identity]
    needed += [args.secrets] if args.secrets or args.drill else []
    for given in needed:
        if given is None or (isinstance(given, Path) and not given.exists()):
            why = "; a drill needs it" if args.drill else ""
            msg = f"{given or '--secrets'}: is not there{why}"
            raise SettingsError(msg)


def _list(config: BackupConfig) -> int:
    """Tell of the backups of all installations that lie where backups go.

    Raises:
        CommandError: no configuration says where.
        SettingsError: a place cannot be looked at.
    """
    from appliance.operations.backup.bucket_destination import (  # noqa: PLC0415 (heavy)
        opened,
    )
    from appliance.operations.backup.names import BackupName  # noqa: PLC0415 (heavy)

    if config.to is None:
        msg = "restore: list of what? Give --config"
        raise CommandError(msg)
    for place in opened(config):
        if place is None:
            continue
        place.check()
        for each in sorted(place.files(), key=lambda one: one.file):
            if BackupName.of(each.file) is not None:
                say(f"{place.told}/{each.file}  {each.size} bytes")
    return 0


def _bring_folder_back(
    args: argparse.Namespace, backup: Path, secrets: Path | None
) -> int:
    """Make the folder that `docker compose up` starts from what it was.

    Raises:
        CommandError: the secrets are not given.
        SettingsError: this is not the image, or another file is there.
    """
    from appliance.operations import compose  # noqa: PLC0415 (heavy)
    from appliance.operations.backup import restoring  # noqa: PLC0415 (heavy)

    if secrets is None:
        msg = "restore: --compose brings keys back: give --secrets"
        raise CommandError(msg)
    folder: Path = args.compose
    restoring.refuse_apart(backup, secrets, args.identity)
    compose.make_folders(folder)
    settings_file = folder / compose.SETTINGS
    is_new = restoring.restore_settings(backup, args.identity, settings_file)
    say(f"{'made' if is_new else 'kept'}  {settings_file}")
    put = restoring.restore_secrets(
        secrets,
        args.identity,
        load_settings(settings_file),
        lambda path: compose.place_in(folder, path),
    )
    made = put.about.get("made")
    say(f"secrets of {made}: {put.files} files made, {put.kept} kept")
    compose.make(folder, None)
    say(compose.NEXT_OF_RESTORE)
    return 0


def _bring_back(args: argparse.Namespace, backup: Path, secrets: Path | None) -> int:
    from appliance.operations import compose, system  # noqa: PLC0415 (heavy)
    from appliance.operations.backup import record, restoring  # noqa: PLC0415 (heavy)

    if secrets is not None:
        restoring.refuse_apart(backup, secrets, args.identity)
    if restoring.restore_settings(backup, args.identity, args.settings):
        say(f"made  {args.settings}")
    else:
        say(f"kept  {args.settings}")
    settings = load_settings(args.settings)
    if args.wait and restoring.can_ask(settings):
        record.await_answer(settings, args.wait)
    if secrets is not None:
        put = restoring.restore_secrets(secrets, args.identity, settings)
        made = put.about.get("made")
        say(f"secrets of {made}: {put.files} files made, {put.kept} kept")
    found = restoring.restore_record(backup, args.identity, args.settings)
    made = found.about.get("made")
    say(f"record of {made}: {found.files} files made, {found.kept} kept")
    for integrator, sha256 in found.missing:
        say(f"MISSING  {integrator}/{sha256}.pdf")
    if system.COMPOSE.is_dir():  # in the image
        say(compose.NEXT_OF_RECORD)
    else:
        say("now: rubrica setup --no-start; rubrica documents recover; ")
        say("     rubrica hsm take-over; rubrica setup")
        say("take-over makes this host a new key; fronts of other machines: hsm admit")
    return 1 if found.missing else 0
