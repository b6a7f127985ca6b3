#!/bin/sh
# A whole conversation with the demo model in a real terminal (tmux), checked on the screen.
# Use: scripts/tmux_chat.sh [PYTHON]. Prints some screens; ends with 1 where one is not as it should be.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python}
home=$(mktemp -d)
session="localglm-$$"
tmux="tmux -L $session"
trap '$tmux kill-server 2>/dev/null || true; rm -rf "$home"' EXIT

screen() { $tmux capture-pane -p -t chat; }

sees() {
    tries=0
    until screen | grep -qF -- "$1"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 300 ]; then
            echo "MISSING: $1"
            screen
            exit 1
        fi
        sleep 0.1
    done
    echo "== seen: $1"
}

keys() { $tmux send-keys -t chat "$@"; }

start="env HOME=$home XDG_DATA_HOME=$home/data PYTHONPATH=$PWD $python -m localglm"
$tmux new-session -d -s chat -x 100 -y 32 sh
$tmux set-option -t chat status off
keys "PS1='READY> '; clear" Enter
sees "READY>"

keys "$start" Enter
sees "models found"
sees "demo"
keys Enter
sees "context"
keys "Hello, who are you?" Enter
sees "thought for"
sees "tok/s"
keys Space
sees "▾ thought for"
screen

keys "/set nothink" Enter
sees "think off"
keys "Count from one to five." Enter
sees "Count from one to five."
sleep 1
sees "Enter sends"
keys F5
sees "version 2 of 2"
keys "/stats" Enter
sees "time of the last answer"
keys "/memory" Enter
sees "the engine process takes"
screen

keys C-r
sees "Enter opens"
keys Escape
sleep 1
keys "/bye" Enter
sees "READY>"
if [ "$($tmux display-message -p -t chat '#{alternate_on}')" != 0 ]; then
    echo "the terminal was left in the alternate screen"
    exit 1
fi

keys "clear; $start" Enter
sees "Hello, who are you?"
keys C-c
keys C-c
sees "READY>"

keys "clear; $start" Enter
sees "Enter sends"
pid=$(pgrep -n -f "$python -m localglm" || true)
kill -TERM "$pid"
sees "READY>"
keys "clear; stty -a | head -4" Enter
sees "READY>"
screen
echo "the whole conversation went well"
