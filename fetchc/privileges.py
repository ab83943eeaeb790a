"""Give up root for good: what a process that parses untrusted files may still do.

It keeps two capabilities, to read files (CAP_DAC_READ_SEARCH) and to look into ``/proc/PID``
(CAP_SYS_PTRACE), and loses every way to use them for more: a filter of system calls leaves it no
network, no other process, no program to start, no file to write to, and no terminal to type into.

Sources: capabilities(7), capset(2), prctl(2), seccomp(2), ioctl_tty(2), fcntl(2), prlimit(2);
linux/filter.h, linux/seccomp.h and linux/audit.h of the kernel; numbers of system calls:
arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
"""

from __future__ import annotations

import os

__all__ = [
    "CAPABILITIES",
    "NOBODY",
    "allow_more_files",
    "end_with",
    "give_up_root",
    "held_capabilities",
    "let_go",
]

NOBODY = 65534
"""The user and group without rights. Source: kernel/sys.c, DEFAULT_OVERFLOWUID."""

CAPABILITIES = {"SYS_ADMIN": 21, "PERFMON": 38, "BPF": 39, "DAC_READ_SEARCH": 2, "SYS_PTRACE": 19}
"""The numbers of those that tracing needs. Source: include/uapi/linux/capability.h."""

_DAC_READ_SEARCH, _SYS_PTRACE = CAPABILITIES["DAC_READ_SEARCH"], CAPABILITIES["SYS_PTRACE"]
_CAPABILITY_VERSION_3 = 0x20080522
_PR_SET_KEEPCAPS, _PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 8, 1, 38, 22
_SECCOMP_MODE_FILTER = 2
_SIGKILL = 9

# Refused with EPERM. The number on x86-64, on aarch64; None: the machine has no such call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # the network
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200),
    # other processes, among them those of others that run as nobody
    "kill": (62, 129), "tgkill": (234, 131), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274), "process_mrelease": (448, 448),
    "move_pages": (279, 239), "migrate_pages": (256, 238),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "tkill": (200, 130),
    "execve": (59, 221), "execveat": (322, 281),
    # the system
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430),
    "fsmount": (432, 432), "mount_setattr": (442, 442), "setns": (308, 268),
    "unshare": (272, 97), "bpf": (321, 280), "perf_event_open": (298, 241),
    "open_by_handle_at": (304, 265), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "sethostname": (170, 161),
    "setdomainname": (171, 162), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "acct": (163, 89), "quotactl": (179, 60),
    # what stays in the kernel
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    # files: what makes, removes or changes one
    "creat": (85, None), "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "unlink": (87, None),
    "unlinkat": (263, 35), "symlink": (88, None), "symlinkat": (266, 36), "link": (86, None),
    "linkat": (265, 37), "mknod": (133, None), "mknodat": (259, 33), "chmod": (90, None),
    "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "truncate": (76, 45),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
}  # fmt: skip
# Not there, as far as the process can see: their arguments are in memory, where no filter looks.
# The C library then takes the older call.
_ABSENT = {"openat2": (437, 437), "clone3": (435, 435)}
# And all numbers from here on, on both machines: setxattrat and later ones, and the x32 ABI.
_NEWER = 463
# Refused where this argument has one of these bits.
_WRITING = 0o1 | 0o2 | 0o100 | 0o1000  # O_WRONLY O_RDWR O_CREAT O_TRUNC
_NAMESPACES = 0x7E020080  # CLONE_NEW*
_CLONE_PARENT = 0x8000  # a child of the process that keeps root
_BY_ARGUMENT = (
    ((2, None), 1, _WRITING),  # open
    ((257, 56), 2, _WRITING),  # openat
    ((56, 220), 0, _NAMESPACES | _CLONE_PARENT),  # clone
)
# Refused where this argument, of 32 bits, is none of these.
_LISTED = {
    # TCGETS TIOCGWINSZ FIONREAD FIONCLEX FIOCLEX TCGETS2: none that types into a terminal (TIOCSTI)
    "ioctl": ((16, 29), 1, (0x5401, 0x5413, 0x541B, 0x5450, 0x5451, 0x802C542A)),
    # F_DUPFD F_GETFD F_SETFD F_GETFL F_SETFL F_GETLK F_SETLK F_SETLKW F_DUPFD_CLOEXEC
    # F_ADD_SEALS F_GET_SEALS: no signals to others (F_SETOWN), no leases
    "fcntl": ((72, 25), 1, (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1033, 1034)),
    # the process itself
    "prlimit64": ((302, 261), 0, (0,)),
}

# AUDIT_ARCH_*, and which of the two numbers of a call is the machine's.
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF, classic
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16  # in struct seccomp_data
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38


def held_capabilities(status: str = "/proc/self/status") -> set[str]:
    """Which of :data:`CAPABILITIES` the process has. Source: proc_pid_status(5), CapEff.

    None where /proc is not mounted: nothing can be traced there.
    """
    try:
        with open(status, encoding="ascii", errors="replace") as file:
            fields = dict(line.split(":", 1) for line in file)
    except FileNotFoundError:
        return set()
    mask = int(fields["CapEff"], 16)
    return {name for name, bit in CAPABILITIES.items() if mask >> bit & 1}


def end_with(parent: int) -> None:
    """Have this process end when its parent, which has that PID, ends in whatever way.

    Raises OSError where the kernel refuses.
    """
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0):
        error = ctypes.get_errno()
        raise OSError(error, f"prctl: {os.strerror(error)}")
    if os.getppid() != parent:
        os._exit(1)


def let_go(kept: tuple[int, ...], first: int = 3) -> None:
    """Let go of the open files from number ``first`` on, but for ``kept``: in a child process.

    They are the parent's, or a shell handed them down to it: a file that root alone may write to, a
    socket, a pipe that somebody reads to its end. They are not closed, but nothing: no object of
    Python's is left with a number that means another file later.
    """
    import resource

    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number < first or number in (*kept, nothing):
            continue
        if number < limit:
            os.dup2(nothing, number, inheritable=False)
        else:  # no file gets that number any more
            os.close(number)


def allow_more_files() -> bool:
    """Raise the limit of open files as far as this process may; False: it is there already.

    Who calls it has imported ``resource`` before: to load that takes an open file.
    """
    try:
        import resource
    except ImportError:
        return False

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return True


def give_up_root() -> None:
    """Become a user without rights, for good; the calling process must have one thread.

    Raises OSError where the kernel refuses a step: in a user namespace without that user, on a
    machine whose system calls are not known here. The process may then have lost some rights, and
    must end.
    """
    # Who keeps root does not wait for it.
    import ctypes
    from struct import pack

    machine = os.uname().machine
    if machine not in _MACHINES:
        raise OSError(_ENOSYS, f"the system calls of {machine} are not known")
    library = ctypes.CDLL(None, use_errno=True)

    def step(what: str, status: int) -> None:
        if status:
            error = ctypes.get_errno()
            raise OSError(error, f"{what}: {os.strerror(error)}")

    step("prctl", library.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0))
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    kept = 1 << _DAC_READ_SEARCH | 1 << _SYS_PTRACE
    # effective, permitted, inheritable: of capabilities 0 to 31, of those from 32 on
    header, data = pack("=Ii", _CAPABILITY_VERSION_3, 0), pack("=6I", kept, kept, 0, 0, 0, 0)
    step("capset", library.capset(header, data))
    end_with(os.getppid())  # the change of user has cleared what was asked for before
    step("prctl", library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    program = filter_program(machine)
    code = b"".join([pack("=HBBI", *instruction) for instruction in program])
    buffer = ctypes.create_string_buffer(code, len(code))
    described = pack("@HxxxxxxP", len(program), ctypes.addressof(buffer))  # struct sock_fprog
    step("seccomp", library.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, described, 0, 0))


def filter_program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter of system calls: (code, jump if true, jump if false, operand) an instruction.

    ``machine`` is one of uname(2). A jump counts the instructions that it skips.
    """
    audit, column = _MACHINES[machine]
    program = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    program += [(_AT_LEAST, 0, 1, _NEWER), (_RETURN, 0, 0, _ERROR | _ENOSYS)]
    for calls, error in ((_REFUSED, _EPERM), (_ABSENT, _ENOSYS)):
        for numbers in calls.values():
            number = numbers[column]
            if number is not None:
                program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | error)]
    for numbers, argument, bits in _BY_ARGUMENT:
        number = numbers[column]
        if number is not None:
            program += [
                (_EQUAL, 0, 4, number),
                (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument),
                (_ANY_BIT, 0, 1, bits),
                (_RETURN, 0, 0, _ERROR | _EPERM),
                (_RETURN, 0, 0, _ALLOW),
            ]
    for numbers, argument, values in _LISTED.values():
        count = len(values)
        program += [
            (_EQUAL, 0, count + 3, numbers[column]),
            (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument),
            *((_EQUAL, count - at, 0, value) for at, value in enumerate(values)),
            (_RETURN, 0, 0, _ERROR | _EPERM),
            (_RETURN, 0, 0, _ALLOW),
        ]
    return [*program, (_RETURN, 0, 0, _ALLOW)]
