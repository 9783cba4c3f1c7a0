# shellcheck shell=bash
# Installs packages with the machine's own apt, and, where its release is too old, three of them from the next one.

APT=(-o DPkg::Lock::Timeout=300) # apt is often busy just after the first boot

# apt_update: goes on where a mirror did not answer, for it may be one that is not needed; REACHED says so.
apt_update() {
  REACHED=every
  apt-get "${APT[@]}" -qq --error-on=any update >&2 || REACHED="not every"
}

# apt_install PACKAGE...: installs these and what they depend on; removes nothing, restarts nothing.
apt_install() {
  DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
    apt-get "${APT[@]}" -q -y --no-remove --no-install-recommends install "$@" >&2
}

# candidate PACKAGE: the version that apt would install; fails if there is none.
candidate() {
  apt-cache "${APT[@]}" policy "$1" | sed -n 's/^ *Candidate: *//p' | grep -v '^(none)$'
}

# knows_debian: do apt's sources name a Debian mirror, or a list of them? Their text says so before any index was read.
knows_debian() {
  local LIST PARTS here='[^[:space:]]/debian(\.list)?/?'
  eval "$(apt-config "${APT[@]}" shell LIST Dir::Etc::sourcelist/f PARTS Dir::Etc::sourceparts/d)"
  { cat "$LIST" "$PARTS"*.list "$PARTS"*.sources 2>/dev/null || true; } | sed '/^[[:space:]]*#/d' |
    grep -iE "^[[:space:]]*deb[[:space:]].*$here[[:space:]].*[[:space:]]main([[:space:]]|\$)|^(URIs:|[[:space:]]).*$here([[:space:]]|\$)" \
      >/dev/null
}

# signing_options FILE: the [options] by which an apt sources file has its repositories trusted.
signing_options() {
  local keys trusted
  keys=$(sed -nE -e '/^#/d' -e 's/^Signed-By: *(\/[^ ]+).*/\1/Ip' -e 's/.*[[ ]signed-by=([^] ]+).*/\1/p' "$1" |
    sort -u | paste -sd,)
  trusted=$(grep -v '^#' "$1" | grep -iqE '^Trusted: *yes|[[ ]trusted=yes' && echo trusted=yes) || true
  echo "[${keys:+signed-by=$keys }${trusted}]" | sed 's/ ]$/]/; s/^\[\]$//'
}

# next_suite FROM TO: where this machine gets Debian's suite FROM (-updates, -security), but for suite TO.
# apt itself reads .list and .sources files, whatever their form, and the mirrors' Release files say who is Debian.
next_suite() {
  local codename uri entry
  apt-get "${APT[@]}" indextargets \
    --format '$(ORIGIN)|$(COMPONENT)|$(CODENAME)|$(REPO_URI)|$(SOURCESENTRY)' 'Created-By: Packages' |
    sed -nE "s/^Debian\|main\|$1(-updates|-security)?\|(.*)\|(.*):[0-9]+$/$2\1|\2|\3/p" | sort -u |
    while IFS='|' read -r codename uri entry; do
      echo deb "$(signing_options "$entry")" "$uri" "$codename" main
    done
}

# borrow_from FROM TO PACKAGE...: from here on, apt takes these packages (and nothing else: no libc6, no base-files)
# from suite TO. It sees TO in a scratch state only; the machine's own apt configuration is read, never written.
borrow_from() {
  local from=$1 to=$2 file scratch=$SCRATCH/apt
  shift 2
  local LIST PARTS PREFERENCES PREFERENCES_PARTS LISTS
  eval "$(apt-config "${APT[@]}" shell LIST Dir::Etc::sourcelist/f PARTS Dir::Etc::sourceparts/d \
    PREFERENCES Dir::Etc::preferences/f PREFERENCES_PARTS Dir::Etc::preferencesparts/d LISTS Dir::State::lists/d)"
  mkdir -p "$scratch"/{sources,preferences,lists/partial,cache/archives/partial}
  if [ -f "$LIST" ]; then cp "$LIST" "$scratch/sources/machine.list"; fi
  for file in "$PARTS"*.list "$PARTS"*.sources; do
    if [ -f "$file" ]; then cp "$file" "$scratch/sources"; fi
  done
  for file in "$PREFERENCES" "$PREFERENCES_PARTS"*; do
    if [ -f "$file" ]; then cp "$file" "$scratch/preferences"; fi
  done
  next_suite "$from" "$to" >"$scratch/sources/borrowed.list"
  [ -s "$scratch/sources/borrowed.list" ] ||
    die "apt's sources name no Debian mirror with $from: add one, then run this again"
  cat >"$scratch/preferences/00borrowed" <<-END
	Package: $*
	Pin: release o=Debian,n=$to*
	Pin-Priority: 990

	Package: *
	Pin: release o=Debian,n=$to*
	Pin-Priority: 100
	END
  cp -r "$LISTS". "$scratch/lists" # spares downloading the machine's own indexes again
  APT+=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$scratch/sources"
    -o Dir::Etc::preferences=/dev/null -o "Dir::Etc::preferencesparts=$scratch/preferences"
    -o "Dir::State::lists=$scratch/lists" -o "Dir::Cache=$scratch/cache" -o Acquire::Languages=none)
  apt_update
}
