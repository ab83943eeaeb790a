"""What runs in a guest of the kernel lab: fetches of a drawn program, by both engines at once.

The first word names a file with the path of the program and what is asked of it, pickled. What
came of it is printed as JSON. Only fetchc and the standard library are there.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

from fetchc.conformance.engines import ENGINES, recorded


def main() -> None:
    with open(sys.argv[1], "rb") as file:
        path, asked = pickle.load(file)
    printed: list[bytes] = []
    shown = recorded(ENGINES, asked, lambda: printed.append(subprocess.check_output([path])))
    print("\n" + json.dumps({"shown": shown, "printed": printed[0].hex()}))


if __name__ == "__main__":
    main()
