"""Operators' commands around integrators' webhooks.

rubrica integrator webhook add demo https://app.example/rubrica
"""

import argparse
from typing import TYPE_CHECKING

from appliance.cli.arguments import Subparsers
from appliance.cli.fronts import handle
from appliance.cli.terminal import say, table
from appliance.domain.ids import IntegratorId
from appliance.domain.vocab import WebhookEvent

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry
    from appliance.webhooks.endpoints import NewWebhookSecret

_ACTOR = "operator"


def register(parts: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `integrator webhook`.

    Args:
        parts: of the parser of `integrator`.
    """
    webhook = parts.add_parser("webhook", help="where an integrator is told of events")
    actions = webhook.add_subparsers(dest="action", required=True)
    add = actions.add_parser("add", help="make one; its secret is shown this once")
    add.add_argument("code", help="of the integrator")
    add.add_argument("url", help="where messages go: https://app.example/rubrica")
    add.add_argument("--label", default="", help="what tells it from others")
    add.add_argument(
        "--event",
        action="append",
        default=[],
        choices=[*map(str, WebhookEvent)],
        metavar="TYPE",
        help="what it is told of, such as solicitud.firmada; again for more "
        "(default: everything)",
    )
    handle(add, _add)
    listing = actions.add_parser("list", help="an integrator's webhooks")
    listing.add_argument("code")
    handle(listing, _list)
    rotate = _one(actions, "rotate", "make another secret; it is shown this once")
    rotate.add_argument(
        "--now",
        action="store_true",
        help="the secret before signs no more (default: for another 24 hours)",
    )
    handle(rotate, _rotate)
    handle(_one(actions, "test", "have a test event sent"), _test)
    handle(_one(actions, "enable", "send to it again"), _enable)
    handle(_one(actions, "disable", "send it nothing more"), _disable)
    handle(_one(actions, "remove", "send it nothing ever again"), _remove)


def _one(
    actions: "Subparsers[argparse.ArgumentParser]", name: str, told: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=told)
    parser.add_argument("code", help="of the integrator")
    parser.add_argument("webhook", help="its id (`webhook list` shows it)")
    return parser


async def _whose(front: "ServiceRegistry", args: argparse.Namespace) -> IntegratorId:
    return (await front.integrators.get(args.code)).id


async def _add(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    made = await front.webhooks.create(
        _ACTOR,
        await _whose(front, args),
        args.url,
        args.label,
        [WebhookEvent(each) for each in args.event],
    )
    _show(made)
    return 0


def _show(made: "NewWebhookSecret") -> None:
    say(f"webhook {made.endpoint.id}; its secret, shown this once:")
    say(made.secret)


async def _list(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    whose = await _whose(front, args)
    pending = await front.webhooks.pending(whose)
    rows = [
        (
            each.id,
            each.label,
            "on" if each.is_on else f"off: {each.disabled_reason}",
            ""
            if each.failing_since is None
            else f"{each.failing_since:%Y-%m-%d %H:%M}",
            str(pending.get(each.id, 0)),
            ", ".join(each.events) or "everything",
            each.url,
        )
        for each in await front.webhooks.list(whose)
    ]
    head = ("id", "label", "state", "failing since", "to be sent", "told of", "url")
    say(table(head, rows))
    return 0


async def _rotate(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    whose = await _whose(front, args)
    _show(await front.webhooks.rotate(_ACTOR, whose, args.webhook, at_once=args.now))
    return 0


async def _test(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    sent = await front.webhooks.test(_ACTOR, await _whose(front, args), args.webhook)
    say(f"on its way: {sent.id}")
    return 0


async def _enable(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    return await _turn(front, args, is_on=True)


async def _disable(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    return await _turn(front, args, is_on=False)


async def _turn(
    front: "ServiceRegistry", args: argparse.Namespace, *, is_on: bool
) -> int:
    # Of the services, which are heavy, only where a command runs.
    from appliance.webhooks.endpoints import EndpointChange  # noqa: PLC0415 (heavy)

    whose = await _whose(front, args)
    change = EndpointChange(is_on=is_on)
    await front.webhooks.change(_ACTOR, whose, args.webhook, change)
    say("on" if is_on else "off")
    return 0


async def _remove(front: "ServiceRegistry", args: argparse.Namespace) -> int:
    await front.webhooks.remove(_ACTOR, await _whose(front, args), args.webhook)
    say("removed")
    return 0
