#!/bin/sh
# Installs localglm into .venv and opens a chat. Arguments: a GGUF model (default: the tiny one in this checkout).
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
make_environment .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check .
exec .venv/bin/localglm chat "${1:-tests/oracle/tiny-q8_0.gguf}" --plain
