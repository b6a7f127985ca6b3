#!/bin/sh
# Installs what development needs into .venv-dev and runs every check and test. Arguments go to nox (e.g. -s long).
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
make_environment .venv-dev
.venv-dev/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
PATH="$PWD/.venv-dev/bin:$PATH"
export PATH
exec nox "$@"
