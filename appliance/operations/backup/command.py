"""`rubrica backup` and `rubrica restore`.

rubrica backup --to FOLDER --secrets-to OTHER --recipient age1…
rubrica restore --backup FILE --secrets FILE --identity KEYFILE
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from appliance.commands.terminal import say
from appliance.domain.clock import SystemClock
from appliance.settings import SettingsError, load_settings


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
        "and nothing of it is left.",
    )
    backup.add_argument(
        "--to", type=Path, required=True, help="folder of the record's backups"
    )
    backup.add_argument(
        "--secrets-to",
        type=Path,
        help="folder, in another place, of what opens the other: keys, PINs, tokens",
    )
    for name in ("recipient", "recipients-file"):
        backup.add_argument(
            f"--{name}", action="append", default=[], help="of age(1): who may read it"
        )
    backup.add_argument(
        "--keep", type=int, default=0, help="how many of each stay (default: all)"
    )
    backup.set_defaults(run=_said(_backup))
    restore = commands.add_parser(
        "restore",
        help="bring a backup back on a machine that has none of it",
        epilog="Exit status: 0, all is there; 1, documents are missing, each in a "
        "line; 78, what is told stood in the way: mend it and run it again.",
    )
    restore.add_argument("--backup", type=Path, required=True, help="of the record")
    restore.add_argument(
        "--secrets", type=Path, help="of the secrets, unless they are there"
    )
    restore.add_argument(
        "--identity", type=Path, required=True, help="of age(1): file of the key"
    )
    restore.set_defaults(run=_said(_restore))


def _said(
    work: Callable[[argparse.Namespace], int],
) -> Callable[[argparse.Namespace], int]:
    """The same, a fault of the system being one sentence."""

    def run(args: argparse.Namespace) -> int:
        try:
            return work(args)
        except OSError as exc:
            # None: its traceback would tell nobody more.
            msg = f"{exc.filename or args.command}: {exc.strerror}"
            raise SettingsError(msg) from None

    return run


def _backup(args: argparse.Namespace) -> int:
    from appliance.operations.backup import making, record  # noqa: PLC0415 (heavy)

    settings = load_settings(args.settings)
    recipients = [
        f"--{name}={each}"
        for name in ("recipient", "recipients-file")
        for each in getattr(args, name.replace("-", "_"))
    ]
    if not recipients:
        msg = "backup: who may read it? Give --recipient or --recipients-file"
        raise SettingsError(msg)
    making.check_folders(args.to, args.secrets_to)
    now = SystemClock().now()
    tables = record.table_version(settings)
    made = making.make_record(settings, args.settings, args.to, recipients, now, tables)
    say(f"{made.path}: {made.files} files, {made.size} bytes")
    folders = {args.to: "rubrica-"}
    if args.secrets_to is not None:
        made = making.make_secrets(settings, args.secrets_to, recipients, now)
        say(f"{made.path}: {made.files} files, {made.size} bytes")
        folders[args.secrets_to] = "rubrica-secrets-"
        if settings.hsm.softhsm_conf is None:
            say("the HSM's keys are in none of them: back it up by its vendor's means")
    for folder, prefix in folders.items() if args.keep > 0 else ():
        for path in making.forget_older(folder, prefix, args.keep):
            say(f"{path}: removed")
    return 0


def _restore(args: argparse.Namespace) -> int:
    from appliance.operations.backup import restoring  # noqa: PLC0415 (heavy)

    if restoring.restore_settings(args.backup, args.identity, args.settings):
        say(f"made  {args.settings}")
    else:
        say(f"kept  {args.settings}")
    if args.secrets is not None:
        secrets = restoring.restore_secrets(
            args.secrets, args.identity, load_settings(args.settings)
        )
        say(f"secrets: {secrets.files} files made, {secrets.kept} kept")
    found = restoring.restore_record(args.backup, args.identity, args.settings)
    say(f"record of {found.about['made']}: {found.files} files made, {found.kept} kept")
    for integrator, sha256 in found.missing:
        say(f"MISSING  {integrator}/{sha256}.pdf")
    say("now: rubrica migrate; rubrica documents recover; ")
    say("     rubrica hsm take-over; rubrica setup")
    return 1 if found.missing else 0
