"""`rubrica demo otp`: stands in for a person's telephone; in trials only."""

import argparse
from typing import TYPE_CHECKING

from appliance.cli.fronts import operators_front
from appliance.cli.terminal import run_async, say
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.people.identity import Person, typed_cuil
from appliance.settings import Settings

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry


def register(parts: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `otp`.

    Args:
        parts: of the `demo` parser.
    """
    otp = parts.add_parser("otp", help="the next code of a demo person, not yet used")
    otp.add_argument("user", help="CUIL, e-mail address, or a console user's name")
    otp.set_defaults(run=_otp)


def _otp(args: argparse.Namespace) -> int:
    async def work(settings: Settings) -> int:
        if not settings.trial:
            raise ApplianceError(ErrorCode.NOT_A_TRIAL)
        async with operators_front(settings) as front:
            say(await next_code(front, args.user))
        return 0

    return run_async(work, args)


async def console_code(front: "ServiceRegistry", name: str) -> tuple[str, float] | None:
    """Make the next code of a console user that was not used yet.

    Args:
        front: opens the user's seed.
        name: of the user.

    Returns:
        The code, and the seconds until it is accepted (0: now); None if no console
        user has this name.
    """
    from appliance.identity import totp  # noqa: PLC0415 (heavy)
    from appliance.people.console_user_store import ConsoleUserStore  # noqa: PLC0415 (heavy)

    async with front.core.store.read() as transaction:
        secret = await ConsoleUserStore(transaction).by_name(name)
    if secret is None:
        return None
    seed = front.sealer.open(
        secret.totp_sealed,
        table="console_user",
        row=secret.user.id,
        column="totp_sealed",
    )
    return totp.next_unused(seed.decode("ascii"), secret.last_step, front.clock)


async def person_code(front: "ServiceRegistry", user: str) -> tuple[str, float]:
    """Make the next code of a person that was not used yet.

    Args:
        front: opens the person's seed.
        user: CUIL or e-mail address.

    Returns:
        The code, and the seconds until it is accepted (0: now).

    Raises:
        ApplianceError: `PERSON_NOT_FOUND`.
    """
    person = await _find(front, user)
    return await front.login.next_code(person.id)


async def next_code(front: "ServiceRegistry", user: str) -> str:
    """Wait for the next code that sign-in accepts and that was not used yet.

    Args:
        front: opens the seed.
        user: CUIL or e-mail address of a person, or a console user's name.

    Raises:
        ApplianceError: `PERSON_NOT_FOUND`.
    """
    import asyncio  # noqa: PLC0415 (heavy)

    while True:
        code, wait_s = await console_code(front, user) or await person_code(front, user)
        if wait_s <= 0:
            return code
        await asyncio.sleep(wait_s)


async def _find(front: "ServiceRegistry", user: str) -> Person:
    """A person by CUIL or e-mail address.

    Raises:
        ApplianceError: `PERSON_NOT_FOUND`.
    """
    from appliance.identity.login import email_indexes  # noqa: PLC0415 (heavy)
    from appliance.people.person_store import PersonStore  # noqa: PLC0415 (heavy)

    async with front.core.store.read() as transaction:
        try:
            person = await PersonStore(transaction).by_cuil(typed_cuil(user))
        except FieldInvalidError:
            indexes = email_indexes(front.lookup, user)
            person = await PersonStore(transaction).by_email_index(indexes)
    if person is None:
        raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
    return person
