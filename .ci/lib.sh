# shellcheck shell=bash
# What ./quickstart and ./check share: the machine's packages and the virtual
# environment. Source it with `root` set to the repository's folder.

: "${root:?the repository folder, set before this file is sourced}"

readonly python_at_least='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'

say() {
  printf '%s\n' "$*" >&2
}

die() {
  say "$(basename "$0"): $*"
  exit 1
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "this needs root or sudo: $*"
  fi
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# ensure_packages PACKAGE… installs those of Debian's packages that are missing.
# `a|b` stands for the first of them that the machine's release has. A service
# that comes along is not started: what we run is private to us.
ensure_packages() {
  local wanted name missing=()
  command -v dpkg-query >/dev/null || {
    say "no dpkg here; make sure that you have: $*"
    return 0
  }
  for wanted in "$@"; do
    for name in ${wanted//|/ }; do
      is_installed "$name" && continue 2
    done
    missing+=("$wanted")
  done
  ((${#missing[@]})) || return 0
  say "installing: ${missing[*]}"
  as_root apt-get -qq -o DPkg::Lock::Timeout=300 update
  local chosen=()
  for wanted in "${missing[@]}"; do
    for name in ${wanted//|/ }; do
      apt-cache show --no-all-versions "$name" >/dev/null 2>&1 && break
    done
    chosen+=("$name")
  done
  # shellcheck disable=SC2016  # the inner shell expands these
  as_root sh -c '
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
      trap "rm -f $policy" EXIT
      trap "exit 130" HUP INT TERM
      printf "#!/bin/sh\nexit 101\n" >"$policy"
      chmod 755 "$policy"
    fi
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
      -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@" >/dev/null
  ' apt "${chosen[@]}"
}

# find_python prints the first Python that is new enough and can make
# environments; the system's own comes first, it lives as long as the machine.
find_python() {
  local candidate
  for candidate in /usr/bin/python3 /usr/bin/python3.{13,12,11} python3 python3.{13,12,11}; do
    if "$candidate" -c "$python_at_least" >/dev/null 2>&1; then
      command -v "$candidate"
      return 0
    fi
  done
  return 1
}

# ensure_python installs one where there is none; Ubuntu 22.04 has its 3.11 beside 3.10.
ensure_python() {
  find_python >/dev/null && return 0
  if [[ ! -x /usr/bin/python3 ]] ||
    /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    ensure_packages python3 python3-venv
  else
    ensure_packages python3.11 python3.11-venv
  fi
  find_python >/dev/null || die "no Python 3.11 or newer with venv was found"
}

# install_locks VENV LOCK… installs what the lock files name. One pip keeps one core busy
# for most of a minute, so two share the work; that nothing is missing is looked at after.
install_locks() {
  local venv=$1 part pips=() status=0
  local pip=("$venv/bin/python" -m pip --quiet --disable-pip-version-check --no-input)
  shift
  # An entry is a line with a name and the lines of hashes that follow it.
  cat -- "$@" | awk -v part="$venv/.part-" '
    /^[a-z0-9]/ { fresh = !seen[$1]++; if (fresh) n = 1 - n }
    !/^#/ && fresh { print > (part n) }'
  for part in "$venv"/.part-?; do
    # What is only for other Pythons cannot be compiled, and pip compiles on one core.
    "${pip[@]}" install --no-compile --no-deps --require-hashes -r "$part" &
    pips+=("$!")
  done
  for part in "${pips[@]}"; do
    wait "$part" || status=$?
  done
  rm -f "$venv"/.part-?
  ((status == 0)) || return "$status"
  "${pip[@]}" check
  say "compiling what was installed"
  "$venv/bin/python" -m compileall -q -j 0 "$venv/lib" >/dev/null || true
}

# ensure_venv LOCK… makes $root/.venv hold what the lock files name, by hash, and
# this checkout. What was done before is not done again: a stamp for each lock
# file holds its hash.
ensure_venv() {
  local venv=$root/.venv lock stamp sum stale=()
  local pip=("$venv/bin/python" -m pip --quiet --disable-pip-version-check --no-input)
  # An environment has absolute paths inside: a copied or moved one is no use.
  if [[ $(cat "$venv/.made-for" 2>/dev/null) != "$root" ]] ||
    ! "$venv/bin/python" -c '' 2>/dev/null; then
    say "making a Python environment in .venv"
    rm -rf "$venv"
    "$(find_python)" -m venv "$venv"
    printf '%s\n' "$root" >"$venv/.made-for"
  fi
  for lock in "$@"; do
    stamp=$venv/.installed-$lock
    sum=$(sha256sum <"$root/$lock")
    [[ $(cat "$stamp" 2>/dev/null) == "$sum" ]] || stale+=("$lock")
  done
  if ((${#stale[@]})); then
    say "installing ${stale[*]}: a minute or two"
    install_locks "$venv" "${stale[@]/#/$root/}"
    for lock in "${stale[@]}"; do
      sha256sum <"$root/$lock" >"$venv/.installed-$lock"
    done
  fi
  stamp=$venv/.installed-checkout
  sum=$(sha256sum <"$root/pyproject.toml")
  if [[ $(cat "$stamp" 2>/dev/null) != "$sum" ]]; then
    "${pip[@]}" install --no-deps --no-build-isolation -e "$root"
    printf '%s\n' "$sum" >"$stamp"
  fi
}

# ensure_browsers installs the browsers that tests drive, where the machine's release
# has them as packages of its own (Ubuntu has them as snaps alone, which no driver
# can run). Others are named by RUBRICA_CHROMIUM and RUBRICA_FIREFOX.
ensure_browsers() {
  local name variable
  for name in chromium firefox-esr; do
    variable=${name%-esr}
    variable=RUBRICA_${variable^^}
    [[ -n ${!variable-} || -x /usr/bin/$name ]] && continue
    if apt-cache show --no-all-versions "$name" >/dev/null 2>&1; then
      ensure_packages "$name"
    else
      say "no package $name here: its tests are skipped unless $variable names a program"
    fi
  done
  # The engine alone, for most tests; the same release as the browser, which serves
  # where there is none.
  name=chromium-headless-shell
  if [[ -z ${RUBRICA_CHROMIUM-} ]] && apt-cache show --no-all-versions "$name" >/dev/null 2>&1; then
    ensure_packages "$name"
  fi
}

# ensure_browser_libraries fetches pdf.js and htmx by their lock, unless they are
# there. npm comes from a Python package, so that no Node is needed on the machine;
# the environment is passed on whole: proxies, registries and certificate
# authorities of the machine are set there.
ensure_browser_libraries() {
  local folder=$root/appliance/web/vendor sum
  local stamp=$root/.venv/.browser-libraries
  sum=$(cat "$folder"/{fetch.py,package.json,package-lock.json,manifest.sha256} | sha256sum)
  [[ -d $folder/files && $(cat "$stamp" 2>/dev/null) == "$sum" ]] && return 0
  ensure_venv requirements-npm.lock
  say "fetching the browser libraries"
  "$root/.venv/bin/python" "$folder/fetch.py"
  printf '%s\n' "$sum" >"$stamp"
}

# ensure_sdks builds what the appliance serves to integrators, from sdk/; it fetches nothing.
ensure_sdks() {
  local folder=$root/sdk sum
  local stamp=$root/.venv/.sdks
  sum=$(cd "$folder" && find . -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
  [[ -d $root/appliance/web/sdk/files && $(cat "$stamp" 2>/dev/null) == "$sum" ]] && return 0
  ensure_venv requirements-build.lock
  say "building the SDKs"
  "$root/.venv/bin/python" "$folder/build.py"
  printf '%s\n' "$sum" >"$stamp"
}

# ensure_webhook_receiver fetches what tests read our webhooks by, as the above does.
ensure_webhook_receiver() {
  local folder=$root/tests/support/webhooks/node sum
  local stamp=$root/.venv/.webhook-receiver
  sum=$(cat "$folder"/package{,-lock}.json | sha256sum)
  [[ -d $folder/node_modules && $(cat "$stamp" 2>/dev/null) == "$sum" ]] && return 0
  ensure_venv requirements-npm.lock
  say "fetching the receiver of webhooks"
  (cd "$root" && .venv/bin/python -m tests.support.webhooks.node_receiver >/dev/null)
  printf '%s\n' "$sum" >"$stamp"
}

# ensure_client_generators fetches the generators for Node by their lock, as the above
# does; that for Python is in requirements-test.lock.
ensure_client_generators() {
  local folder=$root/tests/support/clients/node sum
  local stamp=$root/.venv/.client-generators
  sum=$(cat "$folder"/package{,-lock}.json | sha256sum)
  [[ -d $folder/node_modules && $(cat "$stamp" 2>/dev/null) == "$sum" ]] && return 0
  ensure_venv requirements-npm.lock
  say "fetching generators of clients"
  (cd "$root" && .venv/bin/python -m tests.support.clients.generators >/dev/null)
  printf '%s\n' "$sum" >"$stamp"
}

# find_fonts prints the folder of the Liberation 2 fonts; where fonts-liberation2
# is but a name for fonts-liberation they lie in the latter's folder.
find_fonts() {
  local folder
  for folder in /usr/share/fonts/truetype/liberation{2,}; do
    if [[ -e $folder/LiberationSerif-Regular.ttf ]]; then
      printf '%s\n' "$folder"
      return 0
    fi
  done
  return 1
}

# What running needs.
# shellcheck disable=SC2034  # used where this file is sourced
readonly run_packages=(softhsm2 redis-server libseccomp2 'fonts-liberation2|fonts-liberation')
