# shellcheck shell=bash
# What every script here shares: messages, version numbers, finding a usable Python.

readonly NOT_READY=4 # exit code: this machine or its engine is not ready

say() { printf '%s\n' "$*" >&2; }

# die MESSAGE...: one line each, then exit 4.
die() {
  printf '%s\n' "$@" >&2
  exit "$NOT_READY"
}

# major VERSION: 1:26.1.5+dfsg1-9 -> 26; nothing, or no number -> 0.
major() {
  local version=${1#*:}
  version=${version%%[!0-9]*}
  printf '%s\n' "${version:-0}"
}

# every COMMAND: each path of it on PATH, in order, once.
every() { type -aP "$1" | awk '!seen[$0]++'; }

# find_python: path of the first python3 on PATH that is >= 3.10 and can make environments.
find_python() {
  local candidate
  while read -r candidate; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
  done < <(every python3)
  return 1
}

# find_browser: path of a Chromium that can be driven; TFENV_BROWSER names another. Ubuntu's chromium-browser is a snap.
find_browser() {
  local name
  for name in "${TFENV_BROWSER:-}" chromium google-chrome-stable google-chrome; do
    if [ -n "$name" ] && type -P "$name"; then return; fi
  done
  return 1
}
