"""How many examples of a property are drawn."""

from hypothesis import settings


def examples(whole: int) -> int:
    """Return `whole` where new ones are drawn, by night; a tenth in the gate, always the same."""
    return whole if settings.get_current_profile_name() == "search" else max(1, whole // 10)
