"""Time that a test gives to what it waits for, however slow the machine is.

No test measures by it: it only ends what would never end.
"""

from typing import Final

CALL_S: Final = 300.0
"""For one call over HTTP, or one command, in seconds."""
TEST_S: Final = 3600.0
"""For all that one test waits for, in seconds."""
