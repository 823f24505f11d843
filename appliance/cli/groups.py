"""Sub-commands of the core: settings, tables, roles, and operators' work."""

import argparse
import os
import sys
from importlib.metadata import entry_points
from typing import Final

from appliance.cli.arguments import Subparsers
from appliance.runtime.loading import loading
from appliance.runtime.process_title import set_title
from appliance.settings import Settings, SettingsError, load_settings

_EX_CONFIG: Final = 78


def register(commands: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add the core's commands.

    Args:
        commands: of the `rubrica` parser; handlers get the parsed arguments.
    """
    from appliance.cli import (  # noqa: PLC0415 (heavy)
        audit,
        certificates,
        documents,
        integrators,
        levels,
        logos,
        mail,
        operators,
        trust,
        verify,
    )
    from appliance.cli.demo import commands as demo  # noqa: PLC0415 (heavy)
    from appliance.cli.installation import (  # noqa: PLC0415 (heavy)
        check_config,
        check_ports,
        database,
        health,
        init,
        migrate,
        ready,
        secret_keys,
    )
    from appliance.cli.webhooks import listener  # noqa: PLC0415 (heavy)

    check_config.register(commands)
    migrate.register(commands)
    database.register(commands)
    up = commands.add_parser("up", help="run all roles on this machine, for a trial")
    up.set_defaults(run=_up)
    serve = commands.add_parser("serve", help="run one HTTP role")
    serve.add_argument("face", choices=["api", "embed", "admin", "metrics"])
    serve.set_defaults(run=_serve)
    init.register(commands)
    ready.register(commands)
    health.register(commands)
    check_ports.register(commands)
    integrators.register(commands)
    audit.register(commands)
    levels.register(commands)
    logos.register(commands)
    mail.register(commands)
    operators.register(commands)
    trust.register(commands)
    secret_keys.register(commands)
    documents.register(commands)
    certificates.register(commands)
    demo.register(commands)
    verify.register(commands)
    listener.register(commands)


def _up(args: argparse.Namespace) -> int:
    from appliance.runtime import supervisor  # noqa: PLC0415 (heavy)
    from appliance.runtime.logging import configure_logging  # noqa: PLC0415 (heavy)

    settings = load_settings(args.settings)
    set_title("up")
    configure_logging(settings.log, "up")
    if settings.worker_identity_file.exists():
        _prepare_own_host(settings)
    with loading():
        preloads = entry_points(group="rubrica.preloads")
        begun = [each.load()(settings) for each in preloads]
        roles = {each.name: each.load() for each in entry_points(group="rubrica.roles")}
    return supervisor.up(settings, roles, [wait for wait in begun if wait])


def _prepare_own_host(settings: Settings) -> None:
    """Admit this machine, whatever its name is by now: all roles are its own.

    In a process of its own: the roles that are forked from here must not find the
    host's private key in their memory.

    Raises:
        SettingsError: the key cannot be used, or a file cannot be written.
    """
    child = os.fork()
    if child == 0:
        status = _EX_CONFIG
        try:
            from appliance.secrets.own_host import prepare_own_host  # noqa: PLC0415 (apart)

            prepare_own_host(settings)
            status = 0
        except SettingsError as exc:
            sys.stderr.write(f"{exc}\n")
            sys.stderr.flush()
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(ended) != 0:
        msg = f"{settings.host_key_file}: this host's key cannot be used"
        raise SettingsError(msg)


def _serve(args: argparse.Namespace) -> int:
    import structlog  # noqa: PLC0415 (heavy)

    from appliance.runtime.logging import configure_logging  # noqa: PLC0415 (heavy)
    from appliance.runtime.processes import bind  # noqa: PLC0415 (heavy)

    settings = load_settings(args.settings)
    set_title(args.face)
    configure_logging(settings.log, args.face)
    if not settings.listen(args.face):
        # Of the figures' role alone: the others' settings say where.
        log = structlog.get_logger(__name__)
        log.info("metrics.not_served", reason="metrics.listen is empty")
        return 0
    listener = bind(settings.listen(args.face), settings.web.backlog)
    from appliance.runtime.supervisor import load_role  # noqa: PLC0415 (heavy)

    with loading():
        role = load_role(args.face)
    return role(settings, 1, listener)
