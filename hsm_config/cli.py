"""`rubrica hsm init`, `check`, `pins`, and what the worker adds to them.

    rubrica --settings var/settings.toml hsm init

The only commands that open the HSM by themselves (`pins` does not); everything else
asks a worker. What they need is imported when they run.
"""

import argparse
import getpass
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, Literal

from appliance.domain.errors import (
    ApplianceError,
    HsmRefusedError,
    HsmUnavailableError,
)
from appliance.settings import (
    Fault,
    HsmSettings,
    Settings,
    SettingsError,
    load_settings,
)
from hsm_config import host_arguments

_EX_CONFIG: Final = 78
"""Exit code of an unusable settings file. Source: sysexits(3)."""
_NO_PINS: Final = "no PIN is there yet; `rubrica hsm init` makes them."
_REMEDY: Final = (
    "`rubrica hsm init` makes missing ones, `rubrica hsm pins` has systemd hand over "
    "those that are there"
)


def register(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add the `hsm` commands.

    Args:
        subparsers: of the `rubrica` command; handlers are given the parsed
            arguments with `settings`, the path of the settings file.
    """
    parser = subparsers.add_parser("hsm", help="prepare and check the HSM")
    commands = parser.add_subparsers(dest="hsm_command", required=True)
    init = commands.add_parser(
        "init",
        help="make tokens, PINs, the CA's key and certificate, where missing",
    )
    init.set_defaults(run=_init)
    check = commands.add_parser(
        "check", help="look whether the HSM does what is needed, and how fast"
    )
    less = check.add_mutually_exclusive_group()
    less.add_argument(
        "--quick",
        action="store_true",
        help="try keys of `hsm.key_algorithm` alone, and measure nothing",
    )
    less.add_argument(
        "--own",
        action="store_true",
        help="look at this installation's own keys alone: make none, measure nothing",
    )
    check.set_defaults(run=_check)
    kind = commands.add_parser(
        "kind",
        help="name the make of HSM; opens none",
        epilog="Exit status: 0, keys may be kept in it; 1, this is PROD and it is a "
        "software token; 78, the settings or the profile cannot be used.",
    )
    kind.set_defaults(run=_kind, ask_pin=False)
    record = commands.add_parser(
        "ceremony-record", help="write the sheet of a key ceremony (Markdown)"
    )
    record.add_argument("--out", type=Path, help="instead of the terminal")
    record.set_defaults(run=_record)
    pins = commands.add_parser(
        "pins",
        help="make PIN files root's own and have systemd hand them over (as root)",
        epilog="It opens no HSM and restarts nothing: roles that run have their PINs.",
    )
    pins.add_argument(
        "--make",
        action="store_true",
        help="make missing PINs, where `hsm init` makes the tokens; that runs this",
    )
    pins.set_defaults(run=_pins, ask_pin=False)
    pins.add_argument(
        "--ask-pin",
        action="store_true",
        dest="asked",
        help="make SO PINs alone: `init --ask-pin` asks for the others",
    )
    for command in (init, check, record):
        command.add_argument(
            "--ask-pin",
            action="store_true",
            help="ask for the tokens' PINs, wherever else the settings have them",
        )
    host_arguments.register(commands)
    for point in sorted(entry_points(group="rubrica.hsm")):
        point.load()(commands)


def _check_profile(hsm: HsmSettings) -> Iterator[Fault]:
    """What is wrong with the profile, or with what it shall do."""
    from hsm_config.profile import load_profile, refuse_sessions  # noqa: PLC0415 (as below)

    try:
        profile = load_profile(hsm.profile)
    except SettingsError as exc:
        yield "hsm.profile", str(exc).removeprefix("hsm.profile: ")
        return
    try:
        refuse_sessions(hsm, profile)
    except SettingsError as exc:
        yield "hsm.sessions", str(exc).removeprefix("hsm.sessions: ")


def check_settings(settings: Settings, role: str | None) -> Iterator[Fault]:
    """What `rubrica check-config` tells of the HSM's profile, module and PINs.

    Args:
        settings: of the file.
        role: whose files are looked at; None: everybody's.
    """
    from hsm_config.pkcs11.pin import pin_path, read_pin  # noqa: PLC0415 (only here)

    if role not in {None, "signing"}:
        return
    hsm = settings.hsm
    yield from _check_profile(hsm)
    modules = [("hsm.module", hsm.module)]
    tokens = [("hsm.firma", hsm.firma), ("hsm.pki", hsm.pki)]
    for number, replica in enumerate(hsm.replicas):
        tokens.append((f"hsm.replicas.{number}", replica))
        modules.append((f"hsm.replicas.{number}.module", replica.module))
    for key, module in modules:
        try:
            is_there = module is None or module.is_file()
        except PermissionError as exc:
            yield key, f"{module}: cannot be read ({exc.strerror}); let this user in"
            continue
        if not is_there:
            yield (
                key,
                f"{module}: is not there; install the module, or correct the path",
            )
    for key, token in tokens:
        # systemd gives a credential to the role alone, so it is not looked for here.
        if token.pin_source != "file":
            continue
        try:
            read_pin(pin_path(token), settings.environment)
        except SettingsError as exc:
            yield f"{key}.pin_file", f"{exc}; {_REMEDY}"


def _init(args: argparse.Namespace) -> int:
    from hsm_config.provisioning.init import provision  # noqa: PLC0415 (heavy, when it runs)

    def run(settings: Settings) -> int:
        report = provision(settings, ask=ask_at_terminal)
        for line in report.kept:
            _say(f"kept  {line}")
        for line in report.made:
            _say(f"made  {line}")
        _say("Ready." if report.changed else "Nothing to do: all is there.")
        return 0

    return _with_settings(args, run)


def _check(args: argparse.Namespace) -> int:
    from hsm_config.self_check.check import check  # noqa: PLC0415 (heavy, when it runs)

    def run(settings: Settings) -> int:
        kinds = () if args.own else (settings.hsm.key_algorithm,)
        report = (
            check(settings, ask=ask_at_terminal, algorithms=kinds, processes=())
            if args.quick or args.own
            else check(settings, ask=ask_at_terminal)
        )
        _say(report.table())
        return 0 if report.good else 1

    return _with_settings(args, run)


def _kind(args: argparse.Namespace) -> int:
    from appliance.domain.vocab import Environment  # noqa: PLC0415 (only here)
    from hsm_config.profile import load_profile  # noqa: PLC0415 (only here)

    def run(settings: Settings) -> int:
        profile = load_profile(settings.hsm.profile)
        if not profile.quirks.software:
            _say(profile.name)
            return 0
        is_production = settings.environment is Environment.PROD
        where = "PROD keeps its keys in it" if is_production else "for trials"
        _say(
            f"{profile.name}: a software token, {where}: whoever has its files and "
            "its PIN has every key on it"
        )
        return 1 if is_production else 0

    return _with_settings(args, run)


def _record(args: argparse.Namespace) -> int:
    from hsm_config.key_ceremony import ceremony_record  # noqa: PLC0415 (heavy)

    def run(settings: Settings) -> int:
        if args.out is not None:
            # All kinds of keys are tried first, which takes a minute on some HSMs.
            _write(args.out, "", "a")
        sheet = ceremony_record(settings, ask=ask_at_terminal)
        if args.out is None:
            _say(sheet)
        else:
            _write(args.out, sheet)
            _say(f"written to {args.out}")
        return 0

    return _with_settings(args, run)


def _pins(args: argparse.Namespace) -> int:
    from appliance.secrets.pin_places import tokens_of  # noqa: PLC0415 (only here)
    from hsm_config.provisioning.own_pins import OwnPins  # noqa: PLC0415 (only here)

    def run(settings: Settings) -> int:
        if os.geteuid() != 0:
            msg = "hsm pins: they become root's own: run it as root"
            raise SettingsError(msg)
        try:
            told = OwnPins(settings).take(make=args.make, asked=args.asked)
        except OSError as exc:
            msg = f"{exc.filename or 'hsm pins'}: {exc.strerror}"
            raise SettingsError(msg) from exc
        for line in told:
            _say(line)
        if not (told or args.make):
            has_pins = any(each.pin_file.exists() for _, each in tokens_of(settings))
            what = "PINs that are there are root's own." if has_pins else _NO_PINS
            _say(f"Nothing to do: {what}")
        return 0

    return _with_settings(args, run)


def _write(path: Path, text: str, mode: Literal["a", "w"] = "w") -> None:
    """Write a file that the command was told to.

    Args:
        path: of the file.
        text: its content.
        mode: `a` keeps what is there and adds to it.

    Raises:
        SettingsError: it cannot be written.
    """
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as exc:
        msg = f"{path}: cannot be written ({exc.strerror})"
        raise SettingsError(msg) from exc


def _with_settings(args: argparse.Namespace, run: Callable[[Settings], int]) -> int:
    """Run a command on the settings; say in one line why it cannot."""
    try:
        settings = load_settings(args.settings)
        return run(_asking(settings) if args.ask_pin else settings)
    except SettingsError as exc:
        sys.stderr.write(f"{exc}\n")
        return _EX_CONFIG
    except (HsmRefusedError, HsmUnavailableError) as exc:
        sys.stderr.write(f"{exc.code}: {exc.reason}\n")
        return 1
    except ApplianceError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1


def _asking(settings: Settings) -> Settings:
    """The settings with every PIN asked for."""
    prompt = {"pin_source": "prompt"}
    hsm = settings.hsm
    tokens = {
        "firma": hsm.firma.model_copy(update=prompt),
        "pki": hsm.pki.model_copy(update=prompt),
        "replicas": tuple(one.model_copy(update=prompt) for one in hsm.replicas),
    }
    return settings.model_copy(update={"hsm": hsm.model_copy(update=tokens)})


@cache
def ask_at_terminal(prompt: str) -> str:
    """Ask a person at the terminal, once for each token.

    Raises:
        SettingsError: there is no terminal.
    """
    if not sys.stdin.isatty():
        msg = f"{prompt.rstrip(': ')}: there is no terminal to ask at"
        raise SettingsError(msg)
    return getpass.getpass(prompt)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
