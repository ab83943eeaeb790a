"""An open program, and its probe points."""

from __future__ import annotations

import os
from _thread import RLock

from fetchc.api import expect, expect_all, given
from fetchc.debuginfo.environment import DEFAULT
from fetchc.debuginfo.open_file import open_binary
from fetchc.diag.diagnostic import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fetchc.api.probe import Argument, Probe
    from fetchc.debuginfo.environment import Environment
    from fetchc.driver.btf_types import BtfFile
    from fetchc.driver.listings import Listing
    from fetchc.driver.type_layouts import Layout, Offset
    from fetchc.program import protocol
    from fetchc.program.entities import BuildInfo
    from fetchc.syntax.tree import Point
    from fetchc.target.kernel_versions import Kernel

__all__ = ["Program", "open"]


def open(
    path: str | os.PathLike[str],
    references: Sequence[str | os.PathLike[str]] = (),
    debug_file: str | os.PathLike[str] | None = None,
    debug_dirs: Sequence[str | os.PathLike[str]] = (),
    unsafe_return: bool = False,
    arch: str | None = None,
    environment: Environment = DEFAULT,
) -> Program:
    """Open the file at ``path``: ELF, or an image of .NET.

    ``references`` are folders of assemblies that an image refers to. ``debug_file`` has the debug
    information; without it one is looked for, in ``debug_dirs`` first. ``unsafe_return`` takes
    return probes that can end the program. ``arch`` is the machine of a BTF file, which
    names none. ``environment`` has a cache folder and a way to report progress; by default there is
    neither. Raises DebugInfoError when the file cannot be read or is neither.
    """
    return Program(path, references, debug_file, debug_dirs, unsafe_return, arch, environment)


class Program:
    """One file: an executable or a shared library, with or without debug information."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        references: Sequence[str | os.PathLike[str]] = (),
        debug_file: str | os.PathLike[str] | None = None,
        debug_dirs: Sequence[str | os.PathLike[str]] = (),
        unsafe_return: bool = False,
        arch: str | None = None,
        environment: Environment = DEFAULT,
        breakpoints: bool = False,
        types: Program | None = None,
    ) -> None:
        # ``breakpoints``: probe points are for breakpoints of the processor, not for uprobes.
        # ``types``: what has types for casts, of code that a process compiled without any.
        for folders_given, what in ((references, "references"), (debug_dirs, "debug_dirs")):
            if folders_given:
                expect_all(folders_given, (str, bytes, os.PathLike), what)
        search = None
        if debug_file is not None or debug_dirs:
            from fetchc.debuginfo.separate.debug_file_search import Search

            own = None if debug_file is None else _path(debug_file)
            search = Search(own, tuple([_path(each) for each in debug_dirs]))
        machine = None
        if arch is not None:
            from fetchc.target.machines import architecture_key

            machine = architecture_key(arch)
        folders = tuple([_path(each) for each in references])
        described = None if types is None else types._program
        self._program: protocol.Program = open_binary(
            _path(path), folders, search, machine, environment, described
        )
        self._environment = environment
        self._listing: Listing | None = None
        self._lock = RLock()
        self._unsafe_return = unsafe_return
        self._breakpoints = breakpoints
        self._kernels: dict[str, Kernel] = {}  # of thousands of probes all have the same

    def _rules(self, version: str | None) -> Kernel:
        from fetchc.target.kernel_versions import kernel, running_version

        wanted = version or running_version()
        if wanted not in self._kernels:
            self._kernels[wanted] = kernel(wanted)
        return self._kernels[wanted]

    def __repr__(self) -> str:
        return f"<fetchc.Program {self.path} ({self.architecture})>"

    @property
    def path(self) -> str:
        """The file, as it was given; one of a process by a path that others resolve, too."""
        return self._program.path

    @property
    def build_id(self) -> str | None:
        """The build-id in lower-case hexadecimal, None where the file has none."""
        return self._program.build_id

    @property
    def identity(self) -> str:
        """What tells the file that was read from all others, and from itself when it was changed.

        Empty for a kernel.
        """
        return self._program.identity

    @property
    def architecture(self) -> str:
        """The machine: ``x86_64``, ``aarch64``, ..."""
        return self._program.architecture

    def build_info(self) -> BuildInfo | None:
        """What Go's linker wrote of the toolchain and the modules; None of other programs."""
        with self._lock:
            return None if self._program.go is None else self._program.go.build_info()

    def functions(self, glob: str = "*") -> Iterator[str]:
        """Names of functions with code and of static probes that match ``glob``, sorted."""
        given(glob, "a glob")
        with self._lock:
            if self._program.in_kernel and ":" in glob:
                from fetchc.driver.kernel_points import kernel_names
                from fetchc.driver.listings import matching

                names = matching(kernel_names(self._program, glob), glob)
            else:
                names = self._listed().matching(glob)
        yield from names

    def versions(self, address: int) -> tuple[int, ...]:
        """Where a process has code now of the method with run-time code at ``address``; the newest
        first. Empty for code of a file.
        """
        from fetchc.debuginfo.without_dwarf import WithoutDwarf

        with self._lock:
            program = self._program
            return program.versions(address) if isinstance(program, WithoutDwarf) else ()

    def returns(self, function: str) -> tuple[int, ...]:
        """Where a process now returns from a method with run-time code; empty where it has none.

        Raises CompileError FC0409 where that cannot be found for certain.
        """
        from fetchc.debuginfo.without_dwarf import WithoutDwarf
        from fetchc.driver.return_points import return_addresses

        probe = self.probe(function)
        now, program = self.versions(probe.address), self._program
        if not now or probe.function is None or not isinstance(program, WithoutDwarf):
            return ()
        with self._lock:
            method = program.compiled(probe.function, now[0])
            return return_addresses(program, method, by_breakpoints=True)[0]

    def spelled(self, names: Iterable[str]) -> list[str]:
        """What :meth:`functions` has, as people write it: those of C++ and Rust demangled.

        Sorted. Each can be probed by that name; symbols that would be written alike stay.
        """
        with self._lock:
            return self._listed().spelled(names)

    def _listed(self) -> Listing:
        if self._listing is None:
            from fetchc.driver.listings import Listing

            self._listing = Listing(self._program, self._environment)
        return self._listing

    def meant(self, name: str) -> list[str]:
        """Names of the functions that :meth:`probe` takes ``name`` for, a part of their names."""
        given(name, "a name")
        from fetchc.check.locations import without_parts
        from fetchc.driver.function_lookup import meant

        with self._lock:
            named = [each.symbol for each in self._program.functions_named(name)]
            return sorted(without_parts(list(dict.fromkeys(named))) or meant(self._program, name))

    def types(self, glob: str = "*") -> Iterator[str]:
        """Names of the types that match ``glob``, sorted."""
        given(glob, "a glob")
        from fetchc.driver.listings import matching

        with self._lock:
            names = matching(self._program.type_names(), glob)
        yield from names

    def layouts(self, glob: str) -> list[Layout]:
        """The layouts of the types whose names match ``glob``, by name."""
        given(glob, "a glob")
        from fetchc.driver.type_layouts import layouts

        with self._lock:
            return layouts(self._program, glob)

    def offsets(self, text: str) -> tuple[Offset, ...]:
        """Where ``TYPE.FIELD`` is in its type; of a ``TYPE`` itself and all its members.

        Raises CompileError where there is none, or several that differ.
        """
        given(text, "a type")
        from fetchc.driver.type_layouts import offsets

        with self._lock:
            return offsets(self._program, text)

    def btf(self, types: Sequence[str] = (), functions: Sequence[str] = ()) -> BtfFile:
        """BTF of the types whose names match the globs, of prototypes, and of all they lead to.

        Raises CompileError where a name is unknown.
        """
        for text in types:
            given(text, "a type")
        for text in functions:
            given(text, "a function")
        from fetchc.driver.btf_types import btf_of

        with self._lock:
            return btf_of(self._program, types, functions)

    def described(self, name: str) -> list[dict[str, object]]:
        """Every function of exactly this name: name, address, signature, source line."""
        given(name, "a name")
        from fetchc.driver.function_signatures import described

        with self._lock:
            return described(self._program, name)

    def instances(self, name: str) -> list[str]:
        """The symbols of the functions that ``name`` means, where all have one declaration.

        Those of a generic function or a template, one for each of its types. Empty where the name
        means nothing, or functions of several declarations.
        """
        given(name, "a name")
        from fetchc.driver.function_lookup import instances

        with self._lock:
            return instances(self._program, name)

    def without_code(self, glob: str = "*") -> list[dict[str, object]]:
        """Functions that match and cannot be probed, as in ``described``, and ``why``."""
        given(glob, "a glob")
        from fetchc.driver.function_signatures import without_code

        with self._lock:
            return without_code(self._program, glob)

    def probe(
        self,
        function: str | None = None,
        at: str | None = None,
        returns: bool = False,
        kernel: str | None = None,
        active: int | None = None,
    ) -> Probe:
        """A probe point: a function's entry, ``at="+0x10"`` bytes into it, or its return.

        ``kernel`` is the version whose rules hold: the running one's by default. ``active`` is for
        how many calls at a time a return probe of the kernel has room. Raises CompileError where
        the point cannot be found or probed.
        """
        for text, what in ((function, "a function"), (at, "a point"), (kernel, "a kernel")):
            if text is not None:
                given(text, what)
        if active is not None:
            expect(active, int, "`active` is a number")
        from fetchc.syntax.expression_parser import parse_point

        try:
            place = None if at is None else parse_point(at)
            return self._probe(function, place, returns, kernel, active)
        except CompileError as refused:
            refused.text = (function or "") if at is None else at
            raise

    def outside(self) -> Probe:
        """A place in no function, where names are those of the whole file."""
        from fetchc.api.probe import Probe
        from fetchc.driver.probe_points import outside

        with self._lock:
            return Probe(self._program, self._lock, outside(self._program), self._rules(None))

    def point(
        self,
        text: str,
        returns: bool = False,
        kernel: str | None = None,
        active: int | None = None,
    ) -> tuple[Probe, str]:
        """The probe that an argument names itself (``x @ main.f``), and the argument without it.

        The others are as in :meth:`probe`.
        """
        given(text, "an argument", None)
        from fetchc.syntax.expression_parser import parse_argument, written

        tree = parse_argument(text)
        _, end = written(tree, text)
        return self._probe(None, tree.point, returns, kernel, active), text[:end]

    def argument(
        self,
        text: str,
        returns: bool = False,
        kernel: str | None = None,
        active: int | None = None,
        computes: bool = False,
    ) -> Argument:
        """Compile an argument at the point that it names itself.

        The others are as in :meth:`probe` and :meth:`.Probe.compile`.
        """
        given(text, "an argument", None)
        from fetchc.api.probe import Argument
        from fetchc.syntax.expression_parser import parse_argument

        tree = parse_argument(text)
        probe = self._probe(None, tree.point, returns, kernel, active)
        return Argument(probe, text, tree, computes)

    def _probe(
        self,
        function: str | None,
        point: Point | None,
        returns: bool,
        kernel: str | None,
        active: int | None,
    ) -> Probe:
        # What compiles is loaded here: a listing needs none of it.
        from fetchc.api.probe import Probe
        from fetchc.driver.probe_points import PointRequest, find_site

        rules = self._rules(kernel)
        unsafe, breakpoints = self._unsafe_return, self._breakpoints
        request = PointRequest(function, point, returns, rules, active, unsafe, breakpoints)
        with self._lock:
            found = find_site(self._program, request)
        return Probe(self._program, self._lock, found, rules)


def _path(given: str | os.PathLike[str]) -> str:
    try:
        return os.fsdecode(given)
    except TypeError:
        what = f"a path is a string or of pathlib, not of type {type(given).__name__}"
        raise TypeError(what) from None
