"""A start looks for no garbage, and what runs after it does."""

import gc

import pytest

from appliance.runtime.loading import loading


def test_nothing_is_collected_while_a_process_loads() -> None:
    """Afterwards collections go on, and leave alone what was loaded."""
    gc.unfreeze()
    with loading():
        inside = gc.isenabled()
        loaded = [[number] for number in range(1000)]
    assert (inside, gc.isenabled()) == (False, True)
    assert gc.get_freeze_count() > len(loaded)


def test_collections_go_on_after_a_load_that_failed() -> None:
    """A command that cannot load a module goes on to say so."""
    with pytest.raises(ModuleNotFoundError), loading():
        raise ModuleNotFoundError
    assert gc.isenabled()
