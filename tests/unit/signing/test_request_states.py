"""The states of a request and the moves between them.

Source: decisions "estados", "GET /solicitudes".
"""

import pytest

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.requests.request import LISTED, check_move
from appliance.domain.vocab import RequestState

# Word for word the row of decisions, and one more.
LEGAL = {
    ("en_espera", "pendiente"),
    ("en_espera", "cancelada"),
    ("en_espera", "vencida"),
    ("pendiente", "en_proceso"),
    ("pendiente", "rechazada"),
    ("pendiente", "cancelada"),
    ("pendiente", "vencida"),
    # An upgrade came, and takes its document no more.
    ("pendiente", "fallida"),
    ("en_proceso", "firmada"),
    ("en_proceso", "pendiente"),
    ("en_proceso", "fallida"),
}
EVERY = [(now, then) for now in RequestState for then in RequestState]


def test_states_are_those_of_the_contract() -> None:
    """The eight words, and no other."""
    assert {state.value for state in RequestState} == {
        "en_espera",
        "pendiente",
        "en_proceso",
        "firmada",
        "rechazada",
        "cancelada",
        "vencida",
        "fallida",
    }


@pytest.mark.parametrize(("now", "then"), EVERY)
def test_move_taken_when_legal_alone(now: RequestState, then: RequestState) -> None:
    """Each of the 64 moves is legal or refused with the state it was in."""
    if (now.value, then.value) in LEGAL:
        check_move(now, then)
        return
    with pytest.raises(ApplianceError) as caught:
        check_move(now, then)

    assert caught.value.code is ErrorCode.STATE
    assert caught.value.params == {"estado": now.value}


def test_listed_is_what_is_open() -> None:
    """A request does not vanish while it is being signed."""
    assert {RequestState.PENDING, RequestState.IN_PROGRESS} == LISTED
