# shellcheck shell=sh
# Makes a virtual environment at $1 (once). Sourced by try.sh and check.sh.
make_environment() {
    [ -x "$1/bin/python" ] && return 0
    python=${PYTHON:-python3}
    if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))'; then
        echo "error: Python 3.11 to 3.14 is needed; $("$python" --version 2>&1) was found" >&2
        echo "  try: PYTHON=/path/to/python3.12 sh $0" >&2
        exit 2
    fi
    rm -rf "$1"
    if ! "$python" -m venv "$1" 2>/dev/null; then
        # Debian ships Python without ensurepip: virtualenv carries its own pip.
        rm -rf "$1"
        "$python" -m pip install --quiet --target "$1.bootstrap" virtualenv
        PYTHONPATH="$1.bootstrap" "$python" -m virtualenv --quiet "$1"
        rm -rf "$1.bootstrap"
    fi
}
