"""The npm package as it would be published: its files, its size, and that of a browser's bundle."""

import gzip
import subprocess
import tarfile
from pathlib import Path

from local.npm_tools import npm_program
from local.tools import build_typescript_sdk
from tests.sdk.typescript_package import Package

SOURCE = build_typescript_sdk.SOURCE


def test_the_package_has_the_compiled_modules_and_is_small(tmp_path: Path):
    path = build_typescript_sdk.pack(tmp_path)
    assert path.stat().st_size < 45_000
    with tarfile.open(path) as archive:
        files = {name.removeprefix("package/") for name in archive.getnames()}
    modules = [module.relative_to(SOURCE / "src") for module in (SOURCE / "src").rglob("*.ts")]
    compiled = {f"dist/{module.with_suffix(suffix)}" for module in modules for suffix in (".js", ".d.ts")}
    assert files == {"package.json", "README.md", "LICENSE", *compiled}


def test_a_bundle_for_browsers_is_built_without_a_module_of_node_and_is_small(typescript: Package):
    options = ["--bundle", "--minify", "--format=esm", "--platform=browser"]
    command = [str(npm_program("esbuild")), str(typescript.sdk / "dist" / "index.js"), *options]
    process = subprocess.run(command, capture_output=True, check=True)
    assert process.stderr == b""
    assert len(gzip.compress(process.stdout)) < 12_000
