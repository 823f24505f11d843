"""A test fails if a page that it renders reads a value which its route did not pass.

Each application, page and mail that a test renders in its own process is checked.
"""

from collections.abc import Generator

import pytest

from tests.support.faces.template_inputs import checked_inputs


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Check what fixtures render."""
    with checked_inputs():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Check what the test renders."""
    with checked_inputs():
        return (yield)
