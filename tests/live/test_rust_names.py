"""Functions of Rust's `impl` blocks have the names of the source, not numbers of the compiler."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.live.rustc import COMPILERS
from tests.live.traced import trace
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = """
struct Circle { r: u32 }
trait Shape { fn area(&self, times: u32) -> u32; }
impl Shape for Circle {
    #[inline(never)]
    fn area(&self, times: u32) -> u32 { let both = |n: u32| n * self.r; both(times) }
}
fn main() { println!("EVENT {}", Circle { r: 7 }.area(3)); }
"""
AREA = "<app::Circle as app::Shape>::area"


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("mangling", ["legacy", "v0"])
def test_a_method_of_a_trait(
    compiler: str, mangling: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    binary = tmp_path / "app"
    (tmp_path / "app.rs").write_text(SOURCE)
    flags = ["-g", "-C", f"symbol-mangling-version={mangling}", "-Z", "unstable-options"]
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}  # up to 1.96, legacy is an unstable choice
    command = [compiler, *flags, str(tmp_path / "app.rs"), "-o", str(binary)]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    seen = trace(
        capfd, "times", "-x", binary, "-f", AREA, "--at", "body", "--format", "jsonl", "--", binary
    )
    (event,) = seen.objects
    assert (event["function"], event["args"]) == (AREA, {"times": 3})
