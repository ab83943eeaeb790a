"""``python -m fetchc``: the same as the command ``fetchc``."""

from __future__ import annotations

import sys

from fetchc.cli import main

if __name__ == "__main__":
    sys.exit(main())
