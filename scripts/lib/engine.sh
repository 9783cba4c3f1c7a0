# shellcheck shell=bash
# The Docker Engine: what is there, and, if it is ours to do, installing, starting and stopping it.

readonly OLDEST=26 # as builder/tfenv/facts/engine.json, which says why; a test holds the two together
readonly RUN=${TFENV_RUN:-/run/tfenv} # where the dockerd that we start has its pid and log
CONFIG=/etc/docker/daemon.json
OLD_STORE=/var/lib/docker/image # where an engine without the containerd image store keeps its images
CLIENT='' VERSION='' ENGINE='' WHY=''

# probe_engine: sets ENGINE to ready | too-old | no-store | no-buildx (an engine answers), denied | silent (it does not),
# stopped | absent; CLIENT and VERSION where an engine answers; WHY to what the client said.
probe_engine() {
  local client asked='' out buildx=''
  CLIENT='' VERSION='' ENGINE='' WHY=''
  while read -r client; do
    if "$client" --version 2>/dev/null | grep -qi podman; then continue; fi
    if out=$(timeout 30 "$client" version --format '{{.Server.Version}}' 2>&1); then
      CLIENT=$client VERSION=${out##*$'\n'}
      if "$client" buildx version >/dev/null 2>&1; then
        buildx=yes
        break
      fi
    else
      asked=$client WHY=$out
    fi
  done < <(every docker)
  if [ -n "$CLIENT" ]; then
    if [ "$(major "$VERSION")" -lt "$OLDEST" ]; then
      ENGINE=too-old
    elif ! "$CLIENT" info --format '{{.DriverStatus}}' 2>/dev/null | grep -q io.containerd.snapshotter; then
      ENGINE=no-store
    elif [ -z "$buildx" ]; then
      ENGINE=no-buildx
    else
      ENGINE=ready
    fi
  elif grep -qi 'permission denied' <<<"$WHY"; then
    ENGINE=denied
  elif [ -n "${DOCKER_HOST:-}" ] || [ "$("${asked:-false}" context show 2>/dev/null || echo default)" != default ]; then
    ENGINE=silent
  elif command -v dockerd >/dev/null; then
    VERSION=$(dockerd --version | sed 's/.*version //; s/,.*//') || true
    ENGINE=stopped
    if [ "$(major "$VERSION")" -lt "$OLDEST" ]; then ENGINE=too-old; fi
  else
    ENGINE=absent
  fi
}

# refuse_engine: an engine that is there is never replaced, reconfigured or restarted: say what to change, and stop.
refuse_engine() {
  case $ENGINE in
    too-old)
      die "Docker Engine $VERSION is too old: $OLDEST or newer is needed, with the containerd image store." \
        "Upgrade it where it came from. If it is the distribution's docker.io and nothing else needs it," \
        "'apt-get remove docker.io' as root and run scripts/setup again: that installs a newer one."
      ;;
    no-store)
      die "Docker Engine $VERSION keeps its images in the old store, which gives them other digests than they were built with." \
        "Add \"features\": {\"containerd-snapshotter\": true} to $CONFIG and restart the engine" \
        "(Docker Desktop: Settings > General > Use containerd for pulling and storing images)." \
        "The images of the old store are hidden then, not deleted: they come back when the line is taken out."
      ;;
    denied)
      die "There is a Docker Engine, but $(id -un) may not use it: permission denied on its socket." \
        "Run this as root, or 'usermod -aG docker $(id -un)' as root, then log in again." \
        "(Who may use the engine is as good as root on this machine.)"
      ;;
    silent)
      die "The Docker Engine of ${DOCKER_HOST-the current docker context} does not answer:" \
        "  ${WHY##*$'\n'}" "Start it there, or unset DOCKER_HOST ('docker context use default') to use this machine's."
      ;;
  esac
}

# install_engine: the distribution's engine, or, on Debian 12 whose engine is too old, Debian 13's as it is.
install_engine() {
  local packages=(docker.io docker-buildx)
  apt_update
  if [ "$(major "$(candidate docker.io)")" -lt "$OLDEST" ]; then
    # They need no newer libc6 than Debian 12's own.
    borrow_from bookworm trixie docker.io docker-cli docker-buildx
    if [ "$(major "$(candidate docker.io)")" -lt "$OLDEST" ]; then
      die "No docker.io >= $OLDEST in reach of apt (found: $(candidate docker.io || echo none)); $REACHED mirror answered." \
        "Debian >= 12 or Ubuntu >= 22.04 with its -updates and universe has one; elsewhere install Docker Engine" \
        ">= $OLDEST with buildx as its makers say, then run this again."
    fi
  fi
  if candidate docker-cli >/dev/null; then packages+=(docker-cli); fi # elsewhere the client is in docker.io
  if grep -qs Y /sys/module/apparmor/parameters/enabled; then packages+=(apparmor); fi # or no container starts
  if ! [ -e "$CONFIG" ]; then # before the engine starts for the first time, so that no restart is needed
    mkdir -p "$(dirname "$CONFIG")"
    echo '{"features": {"containerd-snapshotter": true}}' >"$CONFIG"
  fi
  apt_install "${packages[@]}"
}

# install_buildx: the client's plug-in alone; from the engine's makers where apt knows them.
install_buildx() {
  apt_update
  if candidate docker-buildx-plugin >/dev/null; then
    apt_install docker-buildx-plugin
    return
  fi
  candidate docker-buildx >/dev/null || borrow_from bookworm trixie docker-buildx
  apt_install docker-buildx
}

# started_at PID: when a process started, in clock ticks; fails if it is gone. Its name may hold spaces and brackets.
started_at() {
  local line
  { line=$(<"/proc/$1/stat"); } 2>/dev/null || return
  line=${line##*) }
  set -- $line
  echo "${20}"
}

# our_engine: the pid of the dockerd that we started, if it still runs: a pid alone may be another process by now.
our_engine() {
  local pid start command
  read -r pid start 2>/dev/null <"$RUN/dockerd.pid" || return
  [ "$(started_at "$pid")" = "$start" ] || return
  command=$({ tr '\0' '\n' <"/proc/$pid/cmdline"; } 2>/dev/null | head -n 1)
  [ "${command##*/}" = dockerd ] && echo "$pid"
}

has_systemd() { [ -d /run/systemd/system ]; }

start_engine() {
  local pid options=()
  if has_systemd; then
    systemctl start docker >&2
  else
    mkdir -p "$RUN"
    # An engine that nobody has configured or used yet: the store that keeps digests, for this start alone.
    if ! [ -e "$CONFIG" ] && ! [ -d "$OLD_STORE" ]; then
      echo '{"features": {"containerd-snapshotter": true}}' >"$RUN/daemon.json"
      options=(--config-file "$RUN/daemon.json")
    fi
    setsid dockerd "${options[@]}" >"$RUN/dockerd.log" 2>&1 </dev/null &
    pid=$!
    echo "$pid $(started_at "$pid")" >"$RUN/dockerd.pid"
  fi
  for _ in $(seq 120); do
    probe_engine
    if [ -n "$CLIENT" ]; then return; fi
    if ! has_systemd && ! our_engine >/dev/null; then break; fi
    sleep 0.5
  done
  if has_systemd; then
    die "The Docker Engine did not start. Its log: journalctl -u docker"
  fi
  tail -n 5 "$RUN/dockerd.log" >&2
  die "The Docker Engine did not start. Its log: $RUN/dockerd.log"
}

# stop_engine: ends the dockerd that start_engine started by hand, and no other.
stop_engine() {
  local pid
  if ! pid=$(our_engine); then
    say "no engine to stop: scripts/setup has started none that still runs"
    return
  fi
  say "stopping Docker Engine (process $pid)"
  kill "$pid"
  for _ in $(seq 120); do
    if ! our_engine >/dev/null; then
      rm -f "$RUN/dockerd.pid"
      return
    fi
    sleep 0.5
  done
  die "Docker Engine (process $pid) did not end within a minute; its log: $RUN/dockerd.log"
}
