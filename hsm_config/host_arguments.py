"""`rubrica hsm host-key` and `rubrica hsm admit`: which signing hosts fronts believe.

rubrica hsm host-key                    on the signing host
rubrica hsm admit NAME KEY              on each machine with a front
rubrica hsm admit --list
rubrica hsm admit --remove NAME
"""

import argparse


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add both commands.

    Args:
        commands: of `rubrica hsm`.
    """
    key = commands.add_parser(
        "host-key",
        help="show this signing host's public key, for `hsm admit` on the fronts",
        epilog="The key is made where there is none. Nobody signs by it: fronts seal "
        "signing passwords to hosts that they know by their keys.",
    )
    key.add_argument(
        "--here",
        action="store_true",
        help="admit this host to the fronts of this machine, as `hsm init` does",
    )
    key.set_defaults(run=_host_key, ask_pin=False)
    admit = commands.add_parser(
        "admit",
        help="let the fronts of this machine believe a signing host by its key",
        epilog="Compare the fingerprint with the one that the host shows. Fronts take "
        "the change up by themselves. Exit status: 0; 1, --remove found no such host; "
        "78, the name, the key or the file cannot be used.",
    )
    admit.add_argument("name", nargs="?", help="as `hsm host-key` shows it")
    admit.add_argument("key", nargs="?", help="as `hsm host-key` shows it")
    other = admit.add_mutually_exclusive_group()
    other.add_argument("--list", action="store_true", help="show the admitted hosts")
    other.add_argument("--remove", metavar="NAME", help="admit a host no longer")
    admit.set_defaults(run=_admit, ask_pin=False)


def _host_key(args: argparse.Namespace) -> int:
    from hsm_config.host_commands import host_key  # noqa: PLC0415 (heavy, when it runs)

    return host_key(args)


def _admit(args: argparse.Namespace) -> int:
    from hsm_config.host_commands import admit  # noqa: PLC0415 (heavy, when it runs)

    return admit(args)
