"""`rubrica demo host`: run the demo integrator's site."""

import argparse
import signal
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from appliance.settings import CommandError, load_settings
from appliance.system.held_listeners import close_held
from embed.demo.config import HostConfig, read_config

if TYPE_CHECKING:
    from embed.demo.desk import TrialDesk
    from embed.demo.mail_catcher import MailCatcher

CONFIG_FILE: Final = "demo-host.json"
"""Name of the configuration in the data folder."""


def register(parts: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `host` to `rubrica demo`.

    Args:
        parts: of the `demo` parser.
    """
    host = parts.add_parser("host", help="run the site of a demo integrator")
    host.add_argument(
        "--config", type=Path, help=f"(default: {CONFIG_FILE} in the data folder)"
    )
    host.add_argument(
        "--integrator",
        metavar="ID",
        help="be this integrator instead, with --api-key-file",
    )
    host.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help="that integrator's API key"
    )
    host.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="serve there instead; http://HOST:PORT is the integrator's domain",
    )
    host.set_defaults(run=_host)


def _configured(args: argparse.Namespace) -> HostConfig:
    """The configuration, and what was said to be otherwise.

    Raises:
        CommandError: an integrator with another one's key.
        SettingsError: no configuration.
    """
    if (args.integrator is None) != (args.api_key_file is None):
        msg = "--integrator and --api-key-file go together"
        raise CommandError(msg)
    path = args.config or load_settings(args.settings).data_dir / CONFIG_FILE
    config = read_config(path)
    return replace(
        config,
        integrator_id=args.integrator or config.integrator_id,
        api_key_file=args.api_key_file or config.api_key_file,
        listen=args.listen or config.listen,
        # The demo integrator's own site catches them.
        mail_listen="" if args.integrator else config.mail_listen,
    )


def _host(args: argparse.Namespace) -> int:
    """Serve until told to stop.

    Raises:
        SettingsError: no configuration, or its address cannot be had.
    """
    config = _configured(args)
    with ExitStack() as stack:
        catcher = None
        if config.mail_listen:
            catcher = stack.enter_context(_catching(config.mail_listen))
        desk = _desk(args, config)
        if desk is not None:
            stack.enter_context(desk)
        _serve(config, catcher, desk)
    return 0


def _desk(args: argparse.Namespace, config: HostConfig) -> "TrialDesk | None":
    """Return what has the trial's passwords and codes, if this site may show them.

    Only the demo integrator's own site may, of a trial, and on this machine's
    loopback, or with a visit key behind the front that `rubrica demo network` is.
    """
    from embed.demo.desk import TrialDesk  # noqa: PLC0415 (heavy)

    is_own = args.config is None and args.integrator is None
    is_shared = bool(config.public_origin)
    if not is_own or not config.is_on_this_machine:
        return None
    if is_shared and config.visit_key_file is None:
        return None
    settings = load_settings(args.settings)
    return TrialDesk(settings) if settings.trial else None


def _catching(listen: str) -> "MailCatcher":
    """What catches the trial's mails.

    Raises:
        SettingsError: its address cannot be had.
    """
    from embed.demo.mail_catcher import MailCatcher  # noqa: PLC0415 (heavy)

    return MailCatcher(listen)


def _serve(
    config: HostConfig, catcher: "MailCatcher | None", desk: "TrialDesk | None"
) -> None:
    """Serve the site until told to stop.

    Raises:
        SettingsError: its address cannot be had.
    """
    from embed.demo.host import DemoHost  # noqa: PLC0415 (heavy)

    server = DemoHost(config, catcher=catcher, desk=desk)
    close_held()
    # shutdown() waits for the loop that the handler interrupts: another thread.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(
            number, lambda *_: threading.Thread(target=server.shutdown).start()
        )
    print(f"demo integrator: {config.origin}", flush=True)  # noqa: T201 (a command)
    with server:
        server.serve_forever()
