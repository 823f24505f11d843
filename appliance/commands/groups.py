"""Sub-commands of the core: settings, tables, roles, and operators' work."""

import argparse
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from appliance.commands.terminal import run_async, say
from appliance.settings import Settings, load_settings

if TYPE_CHECKING:
    from appliance.supervisor import RunRole

Subparsers = argparse._SubParsersAction  # noqa: SLF001 (argparse names it no better)


def register(commands: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add the core's commands.

    Args:
        commands: of the `rubrica` parser; handlers get the parsed arguments.
    """
    from appliance.commands import (  # noqa: PLC0415 (heavy)
        certificates,
        demo,
        documents,
        init,
        integrators,
        levels,
        logos,
        operators,
        secret_keys,
        trust,
        verify,
    )

    check = commands.add_parser("check-config", help="check the settings file")
    check.set_defaults(run=_check_config)
    migrate = commands.add_parser("migrate", help="bring the tables to this version")
    migrate.set_defaults(run=_migrate)
    up = commands.add_parser("up", help="run all roles on this machine, for a trial")
    up.set_defaults(run=_up)
    serve = commands.add_parser("serve", help="run one HTTP role")
    serve.add_argument("face", choices=["api", "embed", "admin"])
    serve.set_defaults(run=_serve)
    init.register(commands)
    ready = commands.add_parser("ready", help="ask the running api whether it is ready")
    ready.add_argument("--wait", type=float, default=0.0, help="seconds to wait for it")
    ready.set_defaults(run=_ready)
    integrators.register(commands)
    levels.register(commands)
    logos.register(commands)
    operators.register(commands)
    trust.register(commands)
    secret_keys.register(commands)
    documents.register(commands)
    certificates.register(commands)
    demo.register(commands)
    verify.register(commands)


def load_role(name: str) -> "RunRole":
    """A role's entry point, of the group `rubrica.roles`."""
    (point,) = entry_points(group="rubrica.roles", name=name)
    role: RunRole = point.load()
    return role


def _check_config(args: argparse.Namespace) -> int:
    settings = load_settings(args.settings)
    say(f"{args.settings}: good ({settings.environment.value})")
    return 0


def _migrate(args: argparse.Namespace) -> int:
    from appliance.storage.migrate import migrate  # noqa: PLC0415 (heavy)

    async def work(settings: Settings) -> int:
        before, after = await migrate(settings)
        say(f"tables: {before or 'none'} -> {after}" if before != after else "current")
        return 0

    return run_async(work, args)


def _up(args: argparse.Namespace) -> int:
    from appliance import supervisor  # noqa: PLC0415 (heavy)
    from appliance.logs import configure_logging  # noqa: PLC0415 (heavy)

    settings = load_settings(args.settings)
    configure_logging(settings.log, "up")
    roles = {point.name: point.load() for point in entry_points(group="rubrica.roles")}
    preloads = [point.load() for point in entry_points(group="rubrica.preloads")]
    return supervisor.up(settings, roles, preloads)


def _serve(args: argparse.Namespace) -> int:
    from appliance.logs import configure_logging  # noqa: PLC0415 (heavy)
    from appliance.processes import bind  # noqa: PLC0415 (heavy)

    settings = load_settings(args.settings)
    configure_logging(settings.log, args.face)
    listener = bind(settings.web.listen(args.face), settings.web.backlog)
    return load_role(args.face)(settings, 1, listener)


def _ready(args: argparse.Namespace) -> int:
    import time  # noqa: PLC0415 (only here)
    import urllib.error  # noqa: PLC0415 (only here)
    import urllib.request  # noqa: PLC0415 (only here)

    url = load_settings(args.settings).web.base_url + "/readyz"
    deadline = time.monotonic() + args.wait
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 (our own address)
                say(answer.read().decode())
                return 0
        except urllib.error.HTTPError as exc:
            told = exc.read().decode(errors="replace")
        except OSError as exc:
            told = str(exc)
        if time.monotonic() >= deadline:
            say(told)
            return 1
        time.sleep(0.2)
