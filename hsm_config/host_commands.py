"""Work of `rubrica hsm host-key` and `rubrica hsm admit`; neither opens the HSM."""

import argparse
import sys

from appliance.secrets import admitted_hosts
from appliance.secrets.host_key import fingerprint, key_text
from appliance.secrets.own_host import prepare_own_host
from appliance.settings import CommandError, Settings, load_settings


def host_key(args: argparse.Namespace) -> int:
    """Show the key of this signing host, made where there is none; the exit status.

    Raises:
        SettingsError: a file cannot be used.
    """
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


def admit(args: argparse.Namespace) -> int:
    """Run the command; its exit status.

    Raises:
        SettingsError: name and key are missing, or a file cannot be used.
    """
    settings = load_settings(args.settings)
    if args.list or args.remove:
        if args.name:
            msg = "hsm admit: give NAME and KEY, or --list, or --remove NAME"
            raise CommandError(msg)
        return _list(settings) if args.list else _remove(settings, args.remove)
    if not (args.name and args.key):
        msg = (
            "hsm admit: give NAME and KEY; on the signing host, "
            "`rubrica hsm host-key` shows both"
        )
        raise CommandError(msg)
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
