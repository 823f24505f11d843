"""Forms that make a secret which is shown once, and so can be sent but once.

Sent again, as by a page that is loaded anew, such a form would make another secret,
and the one just copied would be worth nothing. The form carries when the secret in
force was made; once there is another one, it is over.
"""

from datetime import datetime
from typing import Final

from admin_ui import session, words
from admin_ui.render import NONE, Faults

FIELD: Final = "instead_of"


def stamp(at: datetime | None) -> str:
    """What a form carries, in field `instead_of`.

    Args:
        at: a time that every new secret changes; None where there is none.
    """
    return "" if at is None else at.isoformat()


def check(at: datetime | None) -> Faults:
    """What is wrong with the form that was sent: nothing, or that it is over.

    Args:
        at: as for `stamp`, by what stands recorded now.
    """
    if session.form().text(FIELD) == stamp(at):
        return NONE
    told = words.say("It was created already: the one that was shown last is in force.")
    return Faults(general=told)
