"""Takes hard links away from a thread and the processes that it starts, as FAT and exFAT do."""

import ctypes
import errno
import platform
import struct
import sys

LINKS = {"x86_64": (86, 265), "aarch64": (37,)}
"""Machine -> the system calls that make one: link, linkat."""
_SET_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2  # prctl(2)
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # of a filter: its argument is the call's number
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


class CannotForbid(Exception):
    """This machine does not let a process restrict itself."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def forbid_links() -> None:
    """Let every link that this thread or a process of it makes fail with EPERM, for good.

    Raises:
        CannotForbid: Another system than Linux, another machine, or the kernel refuses.
    """
    numbers = LINKS.get(platform.machine())
    if sys.platform != "linux" or numbers is None:
        raise CannotForbid(f"{sys.platform} on {platform.machine()}")
    steps = [(_LOAD, 0, 0, 0)]
    steps += [(_IF_EQUAL, len(numbers) - n, 0, call) for n, call in enumerate(numbers)]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = _Program(len(steps), ctypes.addressof(packed))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in (
        (_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*call):
            raise CannotForbid(f"prctl: {errno.errorcode[ctypes.get_errno()]}")
