"""What drgn says of a function's parameters: ``ask_drgn.py FILE FUNCTION``, run by its Python."""

import sys

import drgn  # type: ignore[import-not-found]  # of another Python


def main(path: str, function: str) -> None:
    """Load one file and print the function's type."""
    program = drgn.Program()
    module = program.extra_module(path, create=True)
    module.try_file(path, force=True)
    print(program.function(function).type_)


if __name__ == "__main__":
    main(*sys.argv[1:])
