"""When it is a topic's turn, where each has times of its own and all processes agree on them."""

from zlib import crc32


def until_turn_s(topic: str, interval_s: float, wall_s: float) -> float:
    """Return the time until the topic's next turn, s; 0 if it is now.

    Turns are `interval_s` apart on the wall clock, and spread over the interval by topics' names.

    Args:
        topic: Its name.
        interval_s: Above 0.
        wall_s: Now, seconds since 1970.
    """
    return (crc32(topic.encode()) / 2**32 * interval_s - wall_s) % interval_s
