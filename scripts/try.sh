#!/bin/sh
# Installs localglm into .venv and opens a chat. Arguments: a GGUF model (default: the tiny one in this checkout).
set -eu
model=${1:-}
case $model in "" | /*) ;; *) model=$PWD/$model ;; esac
cd "$(dirname "$0")/.."
. scripts/environment.sh
make_environment .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check .
exec .venv/bin/localglm chat "${model:-tests/oracle/tiny-q8_0.gguf}" --plain
