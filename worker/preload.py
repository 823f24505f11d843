"""What `rubrica up` prepares once, before it forks the roles that share it."""

from collections.abc import Callable

from appliance.settings import Settings, SettingsError
from appliance.system.late_imports import WORKERS, load_late
from worker.pades.appearance.embedded_font import FontsUnusableError
from worker.pades.appearance.fonts import begin_cutting, load_fonts


def prepare_modules(settings: Settings) -> None:
    """Import what workers and the sandbox import as they start."""
    del settings
    from worker.sandbox import prewarm  # noqa: PLC0415 (heavy: fonts begin before)

    load_late(WORKERS)
    load_late(prewarm.LATE)


def prepare_fonts(settings: Settings) -> Callable[[], None]:
    """Begin to cut the stamp's fonts down, for workers and sandbox alike.

    Half a second and some megabytes that each of them would need by itself; a
    worker that is killed is back without that wait.

    Returns:
        What waits for them; it raises a SettingsError where they cannot be used.
    """

    def wait() -> None:
        try:
            load_fonts(settings.fonts_dir)
        except FontsUnusableError as exc:
            msg = f"fonts_dir: {exc}"
            raise SettingsError(msg) from exc

    begin_cutting(settings.fonts_dir)
    return wait
