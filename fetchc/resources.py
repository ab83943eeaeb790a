"""The only module that knows where the data trees ``grammar/`` and ``targets/`` live."""

from __future__ import annotations

import os

__all__ = ["DataNotFoundError", "data_path"]


class DataNotFoundError(Exception):
    """The installation lacks a data tree: a packaging bug."""


def data_path(tree: str) -> str:
    """Directory of ``tree`` (``grammar`` or ``targets``): the wheel's, else the checkout's."""
    package = os.path.dirname(os.path.abspath(__file__))
    packaged = os.path.join(package, tree)
    if os.path.isdir(packaged):
        return packaged
    checkout = os.path.dirname(package)
    # pyproject.toml marks a checkout: beside an installed package, ../grammar may be
    # some other distribution's.
    unpackaged = os.path.join(checkout, tree)
    if os.path.isfile(os.path.join(checkout, "pyproject.toml")) and os.path.isdir(unpackaged):
        return unpackaged
    raise DataNotFoundError(f"no {tree}/ beside {package}")
