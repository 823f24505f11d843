"""`rubrica setup`: the questions, the settings file, then step by step."""

import argparse
import os
import sys
from pathlib import Path

from appliance.cli.terminal import say
from appliance.operations import system
from appliance.operations.setup import proxy
from appliance.operations.setup_answers import Answers, settings_text
from appliance.settings import CommandError, SettingsError, load_settings


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `setup`.

    Args:
        commands: of the `rubrica` parser.
    """
    setup = commands.add_parser(
        "setup",
        help="set up an installation on this machine, or mend one",
        epilog="Exit status: 0, it is ready (or written, by --no-start); 78, what is "
        "told stands in the way: mend it and run it again, which keeps what it made.",
    )
    which = setup.add_mutually_exclusive_group()
    which.add_argument(
        "--answers", type=Path, help="TOML file of answers; the rest is usual"
    )
    which.add_argument("--yes", action="store_true", help="every answer is the usual")
    setup.add_argument(
        "--compose",
        type=Path,
        metavar="FOLDER",
        help="write what containers need: compose.yaml, settings, keys (in the image)",
    )
    setup.add_argument(
        "--no-start",
        action="store_true",
        help="write settings, keys, units and tables, touch no HSM and start nothing: "
        "before `hsm take-over` of a restore, or a key ceremony",
    )
    setup.set_defaults(run=_said)


def _said(args: argparse.Namespace) -> int:
    """The same as `_setup`, a fault of the system being one sentence.

    Raises:
        SettingsError: in the place of `OSError`, as of a disk that is full.
        BrokenPipeError: nobody reads what is told any more.
    """
    try:
        return _setup(args)
    except BrokenPipeError:
        raise
    except OSError as exc:
        msg = f"setup: {exc.filename or 'the system'}: {exc.strerror or exc}"
        raise SettingsError(msg) from exc


def _setup(args: argparse.Namespace) -> int:
    from appliance.operations.setup import backups, servers, steps  # noqa: PLC0415 (heavy)
    from appliance.operations.setup.questions import (  # noqa: PLC0415 (heavy)
        ask_all,
        look_again,
    )

    if os.geteuid() != 0:
        msg = "setup: makes users and units: run it as root"
        raise SettingsError(msg)
    given = Answers.read(args.answers) if args.answers else {}
    if args.compose and args.no_start:
        msg = "setup: --compose starts nothing; leave --no-start out"
        raise CommandError(msg)
    if args.compose:
        return _for_containers(args, given)
    steps.make_users_and_folders()
    if system.SETTINGS.exists():
        say(f"kept  {system.SETTINGS}; its answers are not asked for again")
        answers = look_again(given)
    else:
        answers = ask_all(given, interactive=_is_interactive(args))
        # Before the settings, after which nothing is asked: they need the answers.
        _write_sample(answers, system.SETTINGS.parent)
        servers.bring_files(answers)
        text = settings_text(answers)
        system.write_if_missing(system.SETTINGS, text, mode=0o644, owner="root")
    settings = load_settings(system.SETTINGS)
    steps.make_secrets(settings)
    steps.make_documents_place(settings)
    steps.make_servers(settings, answers)
    steps.take_pins()
    steps.warn_of_hsm()
    steps.make_database(settings)
    if args.no_start:
        say("written; nothing was started: rubrica setup goes on from here")
        later = [
            key for key in ("administrator", "backup_file") if getattr(answers, key)
        ]
        if later:
            say(f"not used yet: {', '.join(later)}; give it --answers with them again")
        return 0
    steps.prepare_hsm()
    steps.check_settings()
    steps.start(settings)
    steps.make_administrator(
        answers.administrator,
        answers.administrator_password_file,
        interactive=not args.yes and not args.answers and sys.stdin.isatty(),
    )
    steps.sign_sample(settings)
    # Last: people sign, whatever is amiss with a place of backups.
    is_new = backups.bring_file(answers)
    backups.make_way(settings, starts=is_new)
    return 0


def _is_interactive(args: argparse.Namespace) -> bool:
    """Whether there is somebody to ask.

    Raises:
        CommandError: there is nobody, nor answers.
    """
    interactive = not args.yes and not args.answers and sys.stdin.isatty()
    if not (interactive or args.yes or args.answers):
        msg = "setup: nobody to ask; give --answers FILE, or --yes"
        raise CommandError(msg)
    return interactive


def _for_containers(args: argparse.Namespace, given: dict[str, str]) -> int:
    """Make the folder that `docker compose up` starts an installation from."""
    from appliance.operations import compose  # noqa: PLC0415 (heavy)
    from appliance.operations.setup import steps  # noqa: PLC0415 (heavy)
    from appliance.operations.setup.questions import ask_all  # noqa: PLC0415 (heavy)

    folder: Path = args.compose
    settings_file = folder / compose.SETTINGS
    answers = None
    if settings_file.exists():
        say(f"kept  {settings_file}; its answers are not asked for again")
    else:
        answers = ask_all(
            given, interactive=_is_interactive(args), layout=compose.LAYOUT
        )
    compose.make(folder, answers)
    steps.warn_of_hsm(settings_file)
    if answers is not None:
        _write_sample(answers, folder)
    say(compose.NEXT)
    return 0


def _write_sample(answers: Answers, place: Path) -> None:
    folder = system.DOCS / "samples"
    if not folder.is_dir() or not proxy.fits(answers):
        if answers.proxy != "none":
            say(
                "no sample for the web server is written: it takes three hosts, by "
                f"https, and one of {', '.join(proxy.SAMPLES)}; see {folder}"
            )
        return
    name, text = proxy.sample_for(answers, folder)
    system.write_if_missing(place / name, text, mode=0o644, owner="root")
