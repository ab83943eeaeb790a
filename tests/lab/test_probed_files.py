"""Which file a definition is of, in a booted kernel: by a descriptor, and asked for afterwards."""

from __future__ import annotations

import json

import pytest

from tests.support.kernel_lab import LabKernel
from tests.support.kernel_lab_calls import program
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter, why_no_python

SCRIPT = """
import json, os, shutil
from fetchc.debuginfo.safe_open import file_identity
from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.install import ProbedFiles, install, listed, uninstall
from fetchc.tracer.tracefs import find_tracefs
tracefs, found = find_tracefs(), {}
for name in ("/a", "/b"):
    shutil.copy("/calls", name)
probed = ProbedFiles()
probed.open("/a", file_identity(os.stat("/a")))
line = "p:fetchc_lab/e /a:0x1000 a=%di b=+0(%si):u8"
def checked():
    install(tracefs, [line])
    try:
        probed.check(tracefs, [line])
        return ""
    except TracerError as refused:
        return str(refused)[:6]
    finally:
        uninstall(tracefs, [("fetchc_lab", "e")])
found["same"] = checked()
os.rename("/a", "/c")
found["moved"] = listed(tracefs)
os.symlink("/b", "/a")
found["other"] = checked()
install(tracefs, [probed.named(line)])
try:
    install(tracefs, [line.replace("/a", "/c")])
    found["descriptor"] = "of another file"
except TracerError as refused:
    found["descriptor"] = str(refused)[:6]
(kept,) = listed(tracefs)
found["shown"] = "/fd/" in kept
uninstall(tracefs, [("fetchc_lab", "e")])
found["left"] = listed(tracefs)
print(json.dumps(found))
"""


def test_the_kernel_says_whether_a_probe_is_in_the_file(lab_kernel: LabKernel) -> None:
    reason = why_no_python(lab_kernel)
    if reason:
        pytest.skip(reason)
    content = {**files(lab_kernel), "calls": program(lab_kernel)}
    with Guest(lab_kernel, content, 300) as guest:
        shown = guest.run(interpreter(guest.kernel), "-c", SCRIPT)
    assert json.loads(shown) == {
        "same": "",
        "moved": [],
        "other": "FC0719",
        "descriptor": "FC0706",  # the very probe is there already
        "shown": True,
        "left": [],
    }
