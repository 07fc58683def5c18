"""nginx with the configuration of deploy/nginx.conf.template."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template

import pytest

from local import ROOT
from local.child_processes import free_port, port_is_free, start, wait_until_ready

CONFIGURATION = ROOT / "deploy" / "nginx.conf.template"
# What the configuration's place in Debian's nginx.conf has, without a log of each request.
SURROUNDINGS = """
daemon off;
pid nginx.pid;
error_log stderr crit;
{user}
events {{ worker_connections 1024; }}
http {{
  access_log off;
  {paths}
{configuration}
}}
"""
PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextmanager
def reverse_proxy(functions: int, postgrest: int, folder: Path) -> Iterator[str]:
    """The URL of an nginx before two local ports. `folder` has its files. Skips the test if nginx is not
    installed; under CI the test fails."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        assert not os.environ.get("CI"), "apt-get install nginx-light"
        pytest.skip("no nginx here: apt-get install nginx-light")
    port = free_port()
    listen = f"127.0.0.1:{port}"
    ports = {"FUNCTIONS": f"127.0.0.1:{functions}", "POSTGREST": f"127.0.0.1:{postgrest}"}
    text = SURROUNDINGS.format(
        user="user root;" if os.geteuid() == 0 else "",
        paths="\n  ".join(f"{name}_temp_path {folder / name};" for name in PATHS),
        configuration=Template(CONFIGURATION.read_text()).safe_substitute(ports, LISTEN=listen),
    )
    (folder / "nginx.conf").write_text(text)
    log = folder / "nginx.log"
    child = start([program, "-p", folder, "-c", folder / "nginx.conf"], {}, log)
    try:
        wait_until_ready(lambda: not port_is_free(port), child, log)
        yield f"http://{listen}"
    finally:
        child.stop()
