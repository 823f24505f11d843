"""Keeping a person's keys under another derivation of their signing password.

What is in `outer` of each credential is opened with the unlock key of before and
locked with the one that holds from now on. The HSM has no part in it: what is
inside stays wrapped by it.

Source: design §4 "Password".
"""

from appliance.domain.errors import ActivationInvalidError
from appliance.domain.ids import PersonId
from appliance.domain.vocab import TaskKind
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.key_encryption import lock_outer, open_outer
from appliance.keys.signing_password import NewSecret, UnlockKeys
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Transaction
from appliance.signing.activations.activation_store import ActivationStore


async def is_in_use(transaction: Transaction, person: PersonId) -> bool:
    """Whether an unlock key of a person is on its way to a worker.

    It opens what is locked now: whoever locked it otherwise meanwhile would have
    the worker stand before a lock of another key.
    """
    return (
        await ActivationStore(transaction).keying(person)
        or await HsmTaskStore(transaction).open_for(person, TaskKind.ISSUE)
        or await HsmTaskStore(transaction).open_for(person, TaskKind.CSR)
    )


async def relock(
    transaction: Transaction,
    person: PersonId,
    installation: str,
    unlock: UnlockKeys,
    new: NewSecret,
) -> bool:
    """Lock every key of a person anew, and keep the new derivation.

    Call it with the person's signing secret locked for writing.

    Args:
        transaction: the caller's.
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
    if await is_in_use(transaction, person):
        return False
    credentials = await CredentialStore(transaction).locked(person)
    if any(each.id not in unlock or each.id not in new.unlock for each in credentials):
        return False
    relocked = []
    for each in credentials:
        aad = each.aad(installation)
        inner = open_outer(unlock[each.id], each.outer, aad)
        relocked.append((each.id, lock_outer(new.unlock[each.id], inner, aad)))
    for credential, outer in relocked:
        await CredentialStore(transaction).relock(credential, outer)
    await PersonStore(transaction).replace_signing_secret(person, new.secret)
    return True


async def try_relock(
    transaction: Transaction,
    person: PersonId,
    installation: str,
    unlock: UnlockKeys,
    new: NewSecret,
) -> bool:
    """As `relock`, but a key that does not open is left as it is."""
    try:
        return await relock(transaction, person, installation, unlock, new)
    except ActivationInvalidError:
        # Whoever signs with it is told; here somebody else's key may be meant.
        return False
