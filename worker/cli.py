"""Sub-commands of the workers and the sandbox."""

import argparse
from pathlib import Path

from appliance.domain.pki.certificates import TSA_REASONS
from appliance.runtime.loading import loading
from appliance.runtime.process_title import set_title
from appliance.settings import load_settings


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `worker`, `timestamps` and `sandbox`.

    Args:
        commands: of the `rubrica` parser; handlers get the parsed arguments.
    """
    worker = commands.add_parser("worker", help="run one worker")
    worker.add_argument("kind", choices=["signing", "chores"])
    worker.add_argument(
        "--slot",
        type=int,
        default=1,
        help="number among this host's workers of the kind, from 1",
    )
    worker.set_defaults(run=_worker)
    timestamps = commands.add_parser("timestamps", help="timestamping authorities")
    parts = timestamps.add_subparsers(dest="part", required=True)
    trial = parts.add_parser(
        "try", help="ask each authority of the settings for a timestamp"
    )
    trial.set_defaults(run=_try_timestamps)
    listing = parts.add_parser("list", help="certificates of the internal TSA")
    listing.set_defaults(run=_list_tsa)
    revoke = parts.add_parser(
        "revoke", help="revoke one of them and every other one of its key, for good"
    )
    revoke.add_argument("serial", help="serial number, hexadecimal")
    revoke.add_argument(
        "--reason",
        required=True,
        choices=[reason.value for reason in TSA_REASONS],
        help="told to whoever checks (RFC 3161, 4)",
    )
    revoke.set_defaults(run=_revoke_tsa)
    stamped = parts.add_parser(
        "documents", help="documents that may bear a timestamp by one of them"
    )
    stamped.add_argument("serial", help="serial number, hexadecimal")
    stamped.set_defaults(run=_list_stamped)
    sandbox = commands.add_parser("sandbox", help="run the PDF sandbox")
    sandbox.set_defaults(run=_sandbox)


def register_hsm(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `join`, `rotate-master`, `move`, `renew-tsa` and others to `rubrica hsm`.

    Args:
        commands: of `rubrica hsm`.
    """
    join = commands.add_parser(
        "join",
        help="bring a token of `hsm.replicas` that came later, or in a lost one's "
        "place, behind the logical HSM; begun again, it goes on",
    )
    join.set_defaults(run=_join)
    rotate = commands.add_parser(
        "rotate-master",
        help="make a new master key and move all users' keys under it; "
        "begun again, it goes on",
    )
    rotate.add_argument(
        "--retire",
        type=int,
        metavar="N",
        help="destroy version N on every token instead; no key may be under it",
    )
    rotate.set_defaults(run=_rotate_master)
    tsa = commands.add_parser(
        "renew-tsa",
        help="make a new key of the internal TSA and certify it; workers take it up",
    )
    tsa.add_argument(
        "--retire",
        type=int,
        metavar="N",
        help="destroy key N instead, which must not be the newest",
    )
    tsa.set_defaults(run=_renew_tsa)
    move = commands.add_parser(
        "move", help="let users' keys follow to another HSM; tells which cannot"
    )
    move.add_argument(
        "--to",
        type=Path,
        required=True,
        metavar="FILE",
        help="settings file with the new HSM, prepared by `rubrica hsm init`",
    )
    move.set_defaults(run=_move)
    taking_over = commands.add_parser(
        "take-over",
        help="after a restore: have the HSM serve this record, and no earlier one",
    )
    taking_over.set_defaults(run=_take_over)
    anchors = commands.add_parser(
        "anchors",
        help="show and pin the roots of outside CAs that this signing host believes",
    )
    anchors.add_argument(
        "--file", type=Path, help="the root to pin; by default the trust store has it"
    )
    change = anchors.add_mutually_exclusive_group()
    change.add_argument(
        "--pin",
        metavar="SHA256",
        help="believe this root; the fingerprint is the one that its CA publishes",
    )
    change.add_argument("--unpin", metavar="SHA256", help="believe it no longer")
    change.add_argument(
        "--check",
        action="store_true",
        help="fail if the trust store has a root for signers that is not pinned here",
    )
    anchors.set_defaults(run=_anchors)


def _join(args: argparse.Namespace) -> int:
    from worker.hsm.cli import join  # noqa: PLC0415 (heavy)

    return join(args)


def _rotate_master(args: argparse.Namespace) -> int:
    from worker.hsm.cli import rotate_master  # noqa: PLC0415 (heavy)

    return rotate_master(args)


def _renew_tsa(args: argparse.Namespace) -> int:
    from worker.pki.tsa_rekey import renew_tsa  # noqa: PLC0415 (heavy)

    return renew_tsa(args)


def _move(args: argparse.Namespace) -> int:
    from worker.hsm.cli import move  # noqa: PLC0415 (heavy)

    return move(args)


def _take_over(args: argparse.Namespace) -> int:
    from worker.hsm.cli import take_over  # noqa: PLC0415 (heavy)

    return take_over(args)


def _anchors(args: argparse.Namespace) -> int:
    from worker.pki.anchors_cli import anchors  # noqa: PLC0415 (heavy)

    return anchors(args)


def _worker(args: argparse.Namespace) -> int:
    with loading():
        from appliance.runtime.logging import (  # noqa: PLC0415 (heavy)
            configure_logging,
        )
        from worker import roles  # noqa: PLC0415 (heavy)

    settings = load_settings(args.settings)
    set_title(f"{args.kind}-{args.slot}")
    configure_logging(settings.log, f"{args.kind}-{args.slot}")
    run = {"signing": roles.run_signing, "chores": roles.run_chores}[args.kind]
    return run(settings, args.slot, None)


def _try_timestamps(args: argparse.Namespace) -> int:
    from worker.pki.tsa_cli import try_timestamps  # noqa: PLC0415 (heavy)

    return try_timestamps(args)


def _list_tsa(args: argparse.Namespace) -> int:
    from worker.pki.tsa_cli import list_tsa  # noqa: PLC0415 (heavy)

    return list_tsa(args)


def _revoke_tsa(args: argparse.Namespace) -> int:
    from worker.pki.tsa_cli import revoke_tsa  # noqa: PLC0415 (heavy)

    return revoke_tsa(args)


def _list_stamped(args: argparse.Namespace) -> int:
    from worker.pki.tsa_cli import list_stamped  # noqa: PLC0415 (heavy)

    return list_stamped(args)


def _sandbox(args: argparse.Namespace) -> int:
    with loading():
        from appliance.runtime.logging import (  # noqa: PLC0415 (heavy)
            configure_logging,
        )
        from appliance.runtime.processes import bind  # noqa: PLC0415 (heavy)
        from worker.sandbox_role import run_sandbox  # noqa: PLC0415 (heavy)

    settings = load_settings(args.settings)
    set_title("sandbox")
    configure_logging(settings.log, "sandbox")
    listener = bind(f"unix:{settings.sandbox_socket}", 64)
    return run_sandbox(settings, 1, listener)
