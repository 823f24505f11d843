"""Faults that are told together, and those that are not."""

import pytest

from appliance.api.declaring import codes
from appliance.api.wire import batches
from appliance.domain.errors import (
    FAULTS_TOLD,
    ApplianceError,
    ErrorCode,
    Faults,
    FieldInvalidError,
    SeveralFaultsError,
)
from appliance.domain.errors.several import NOT_OF_WHAT_CAME
from appliance.web import problems


def test_only_what_is_wrong_with_a_call_is_collected() -> None:
    """What may pass by itself ends the call, as does every code of that category."""
    faults = Faults()
    with pytest.raises(ApplianceError, match="OVERLOADED"), faults.collected():
        raise ApplianceError(ErrorCode.OVERLOADED)
    assert faults.found == []
    passing = {
        code
        for code in codes.ORDERED | codes.ANY
        if problems.ANSWERS[code].category is problems.Category.RETRY
    }
    assert passing <= NOT_OF_WHAT_CAME


def test_one_fault_is_told_as_ever() -> None:
    """Several are the first one, with a list of all."""
    first, second = FieldInvalidError("a", "once"), FieldInvalidError("b")
    faults = Faults([first])
    with pytest.raises(FieldInvalidError) as one:
        faults.demand_none()
    faults.add(second)
    with pytest.raises(SeveralFaultsError) as several:
        faults.demand_none()

    assert one.value is first
    told = problems.problem(several.value, "0" * 24, "es")
    assert (told["field"], told["allowed"]) == ("a", ["una sola vez"])
    assert told["errors"] == [
        problems.members(first, "es"),
        problems.members(second, "es"),
    ]


def test_unknown_names_are_bounded() -> None:
    """However many there are."""
    faults = Faults()
    body = {str(number): None for number in range(1_000)}

    assert batches.NewBatch.read_all(body, faults) is None
    assert len(faults.found) == FAULTS_TOLD
