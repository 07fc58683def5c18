"""The Python SDK as a package: its wheel, and its synchronous half as it is made of the asynchronous one.
Asked by a developer."""

import subprocess
import sys
import zipfile
from pathlib import Path

from local.tools import generate_sync_sdk
from mnemosyne import __version__
from tests.sdk.python_client import SOURCE


def test_the_sync_half_is_generated_from_the_async_half():
    for name, text in generate_sync_sdk.generate().items():
        assert (generate_sync_sdk.PACKAGE / name).read_text() == text, f"{name} is stale; run: make generated"
        assert "async" not in text.lower(), name


def test_the_wheel_is_built_installed_and_imported_offline(tmp_path: Path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
    wheels, place = tmp_path / "wheels", tmp_path / "place"
    build = [
        "wheel",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(wheels),
        str(SOURCE),
    ]
    subprocess.run([*pip, *build], check=True, cwd=tmp_path)
    (wheel,) = wheels.iterdir()
    assert wheel.name == f"mnemosyne_ai-{__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < 80_000
    with zipfile.ZipFile(wheel) as opened:
        files = set(opened.namelist())
    built = {
        f"mnemosyne/{path.relative_to(generate_sync_sdk.PACKAGE)}"
        for path in generate_sync_sdk.PACKAGE.rglob("*.py")
    }
    assert built | {"mnemosyne/py.typed"} == {name for name in files if name.startswith("mnemosyne/")}
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--offline"]
    subprocess.run([*uv, "--no-deps", "--target", str(place), str(wheel)], check=True, cwd=tmp_path)
    text = "import mnemosyne; print(mnemosyne.__file__, mnemosyne.__version__, mnemosyne.Mnemosyne('k'))"
    output = subprocess.run(
        [sys.executable, "-c", text],
        check=True, cwd=tmp_path, env={"PYTHONPATH": str(place)}, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert output.startswith(f"{place / 'mnemosyne' / '__init__.py'} {__version__} Mnemosyne(base_url=")
