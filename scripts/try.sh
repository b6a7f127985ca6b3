#!/bin/sh
# Installs localglm into .venv and opens a chat. Argument: a GGUF model (default: the demonstration model).
set -eu
model=${1:-}
case $model in "" | /* | demo) ;; *) model=$PWD/$model ;; esac
cd "$(dirname "$0")/.."
. scripts/environment.sh
make_environment .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check .
exec .venv/bin/localglm chat "${model:-demo}" --plain
