"""Keeping a person's keys under another derivation of their signing password.

What is in `outer` of each credential is opened with the unlock key of before and
locked with the one that holds from now on. The HSM has no part in it: what is
inside stays wrapped by it.

Source: design §4 "Password".
"""

from appliance.domain.errors import ActivationInvalidError
from appliance.domain.ids import PersonId
from appliance.domain.records import Records
from appliance.domain.vocab import TaskKind
from appliance.keys.key_encryption import lock_outer, open_outer
from appliance.keys.signing_password import NewSecret, UnlockKeys


async def is_in_use(records: Records, person: PersonId) -> bool:
    """Whether an unlock key of a person is on its way to a worker.

    It opens what is locked now: whoever locked it otherwise meanwhile would have
    the worker stand before a lock of another key.
    """
    return (
        await records.activations.keying(person)
        or await records.tasks.open_for(person, TaskKind.ISSUE)
        or await records.tasks.open_for(person, TaskKind.CSR)
    )


async def relock(
    records: Records,
    person: PersonId,
    installation: str,
    unlock: UnlockKeys,
    new: NewSecret,
) -> bool:
    """Lock every key of a person anew, and keep the new derivation.

    Call it with the person's signing secret locked for writing.

    Args:
        records: of the caller's transaction.
        person: whose keys.
        installation: the setting of that name.
        unlock: what opens them now.
        new: what is to hold from now on.

    Returns:
        False, and nothing is done, while an unlock key is in use, or when the
        person has got another key since `unlock` was derived.

    Raises:
        ActivationInvalidError: a key does not open; nothing was done.
    """
    if await is_in_use(records, person):
        return False
    credentials = await records.credentials.locked(person)
    if any(each.id not in unlock or each.id not in new.unlock for each in credentials):
        return False
    relocked = []
    for each in credentials:
        aad = each.aad(installation)
        inner = open_outer(unlock[each.id], each.outer, aad)
        relocked.append((each.id, lock_outer(new.unlock[each.id], inner, aad)))
    for credential, outer in relocked:
        await records.credentials.relock(credential, outer)
    await records.people.replace_signing_secret(person, new.secret)
    return True


async def try_relock(
    records: Records,
    person: PersonId,
    installation: str,
    unlock: UnlockKeys,
    new: NewSecret,
) -> bool:
    """As `relock`, but a key that does not open is left as it is."""
    try:
        return await relock(records, person, installation, unlock, new)
    except ActivationInvalidError:
        # Whoever signs with it is told; here somebody else's key may be meant.
        return False
