"""What slowapi would read behind our back has no effect; what the database counts is tested over HTTP."""

import subprocess
import sys
from pathlib import Path

from local.tools import ROOT

SHOW = "from shared.limit import _limiter; print(_limiter.enabled, _limiter._swallow_errors)"


def test_no_variable_and_no_env_file_switches_the_limits_off(tmp_path: Path):
    (tmp_path / ".env").write_text("RATELIMIT_ENABLED=false\nRATELIMIT_SWALLOW_ERRORS=true\n")
    environment = {"PYTHONPATH": str(ROOT), "RATELIMIT_ENABLED": "false", "RATELIMIT_SWALLOW_ERRORS": "true"}
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "True False"
