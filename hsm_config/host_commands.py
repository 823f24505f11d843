"""`rubrica hsm host-key` and `rubrica hsm admit`: which signing hosts fronts believe.

    rubrica hsm host-key                    on the signing host
    rubrica hsm admit NAME KEY              on each machine with a front
    rubrica hsm admit --list
    rubrica hsm admit --remove NAME

Neither opens the HSM.
"""

import argparse
import sys

from appliance.core.secrets import admitted_hosts
from appliance.core.secrets.host_key import fingerprint, key_text
from appliance.core.secrets.own_host import prepare_own_host
from appliance.settings import Settings, SettingsError, load_settings


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
    settings = load_settings(args.settings)
    own = prepare_own_host(settings, here=args.here)
    _say(f"{'made' if own.is_key_new else 'kept'}  {settings.host_key_file}")
    if args.here:
        told = f"{own.name} on this machine, by {settings.signing_hosts_file}"
        _say(f"{'made' if own.is_newly_admitted else 'kept'}  {told}")
    _say(f"host         {own.name}")
    _say(f"fingerprint  {fingerprint(own.public)}")
    _say(f"on each {'other ' if args.here else ''}machine with a front:")
    _say(f"  rubrica hsm admit {own.name} {key_text(own.public)}")
    return 0


def _admit(args: argparse.Namespace) -> int:
    """Run the command; its exit status.

    Raises:
        SettingsError: name and key are missing, or a file cannot be used.
    """
    settings = load_settings(args.settings)
    if args.list or args.remove:
        if args.name:
            msg = "hsm admit: give NAME and KEY, or --list, or --remove NAME"
            raise SettingsError(msg)
        return _list(settings) if args.list else _remove(settings, args.remove)
    if not (args.name and args.key):
        msg = (
            "hsm admit: give NAME and KEY; on the signing host, "
            "`rubrica hsm host-key` shows both"
        )
        raise SettingsError(msg)
    public = admitted_hosts.parse_key(args.key)
    before = admitted_hosts.admit(settings.signing_hosts_file, args.name, public)
    if before == public:
        _say(f"kept  {args.name}: admitted by this key already")
    elif before is not None:
        _say(f"made  {args.name}: in the place of the key {fingerprint(before)}")
    else:
        _say(f"made  {args.name}: admitted")
    _say(f"fingerprint  {fingerprint(public)}")
    _say(f"compare it with the one that `rubrica hsm host-key` shows on {args.name}")
    return 0


def _list(settings: Settings) -> int:
    hosts = admitted_hosts.listed(settings.signing_hosts_file)
    for name, public in sorted(hosts.items()):
        _say(f"{name}  {fingerprint(public)}")
    if not hosts:
        _say("no signing host is admitted on this machine")
    return 0


def _remove(settings: Settings, name: str) -> int:
    if admitted_hosts.remove(settings.signing_hosts_file, name):
        _say(f"gone  {name}: no signing password is sealed to it any more")
        return 0
    sys.stderr.write(f"{name}: is not admitted on this machine\n")
    return 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
