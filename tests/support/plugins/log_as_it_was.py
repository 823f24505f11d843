"""A test that sets up the log, as commands do, leaves it to the next one as it was."""

import pytest
import structlog


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Take back what the test, or a command that it ran here, set up."""
    if structlog.is_configured():
        structlog.reset_defaults()
