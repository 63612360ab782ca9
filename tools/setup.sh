#!/usr/bin/env bash
# Sets r2cc-simai up in a Python environment: system packages, the environment, the engine and the command line.
#
#   tools/setup.sh run|test ENVIRONMENT
#
# `test` adds what the tests need. The environment is made if it is this checkout's .venv. Nothing is done where
# nothing has changed since the last time. Exit code 4: a component is missing that cannot be installed from here;
# the last line says which command installs it.
set -euo pipefail
cd -P "$(dirname "$0")/.."
# shellcheck source=tools/components.sh
source tools/components.sh

readonly MODE=$1 ENVIRONMENT=$2
readonly PYTHON=$ENVIRONMENT/bin/python

# A stamp in the environment names the checkout that is installed there.
stamp() { say "$ENVIRONMENT/.r2cc-simai-$1"; }

is_current() {
    local stamp
    stamp=$(stamp "$1")
    [[ -x $ENVIRONMENT/bin/r2cc-simai && -f $stamp && $(<"$stamp") == "$PWD" ]] || return
    [[ -z $(find pyproject.toml CMakeLists.txt simulator ! -name '*_test.cpp' -newer "$stamp" -print -quit) ]]
}

# The interpreter that counts: the environment's own, or the one to make .venv with.
interpreter() {
    if is_recent_python "$PYTHON"; then say "$PYTHON"; else find_python; fi
}

missing_packages() {
    local python version compiler
    python=$(interpreter)
    if [[ -z $python ]]; then
        # Without any Python the release's own will do; beside an older one (Ubuntu 22.04) 3.11 has its own packages.
        version=$(type -P python3 >/dev/null && say 3.11 || say 3)
        printf 'python%s\n' "$version" "$version-venv" "$version-dev"
    else
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        [[ $python == "$PYTHON" ]] || makes_environments "$python" || say "python$version-venv"
        has_headers "$python" || say "python$version-dev"
    fi
    compiler=$(find_compiler)
    [[ -n $compiler ]] || say g++
    [[ $MODE != test ]] || has_doctest "$compiler" || say doctest-dev
    # Elsewhere a browser is no package of the system's own, or has another name; without one its tests say so.
    [[ $MODE != test ]] || has_browser || ! is_debian || say chromium
}

install_packages() {
    local packages="$*" command
    command="apt-get update && apt-get install -y --no-install-recommends $packages"
    type -P apt-get >/dev/null || fail "missing: $packages (names as on Debian); install them, then run this again"
    say "      missing: $packages"
    if ((EUID == 0)); then
        DEBIAN_FRONTEND=noninteractive sh -c "$command" || fail "apt-get could not install: $packages"
    elif sudo -n true 2>/dev/null; then
        sudo -n env DEBIAN_FRONTEND=noninteractive sh -c "$command" || fail "apt-get could not install: $packages"
    else
        fail "system packages are missing and need root; run this one command, then make again:
sudo sh -c '$command'"
    fi
}

prepare_system() {
    local packages
    if [[ -n ${CXX:-} && -z $(find_compiler) ]]; then
        fail "CXX=$CXX does not build C++20; g++ 11 or newer is needed (unset CXX to let it be found)"
    fi
    mapfile -t packages < <(missing_packages)
    if ((${#packages[@]})); then
        install_packages "${packages[@]}"
        mapfile -t packages < <(missing_packages)
        ((${#packages[@]} == 0)) || fail "still missing after the installation: ${packages[*]}"
    else
        say "      nothing is missing"
    fi
}

prepare_environment() {
    if is_recent_python "$PYTHON"; then
        say "      $ENVIRONMENT"
    elif [[ $ENVIRONMENT == "$PWD/.venv" ]]; then
        say "      making .venv with $(find_python)"
        "$(find_python)" -m venv --clear .venv
    else
        fail "$ENVIRONMENT has no Python 3.11 or newer; deactivate it, and .venv is made and used"
    fi
    "$PYTHON" -m pip --version >/dev/null 2>&1 || "$PYTHON" -m ensurepip >/dev/null || fail "$ENVIRONMENT has no pip"
}

pip_install() { "$PYTHON" -m pip --disable-pip-version-check install "$@"; }

# Without build isolation, so that a later build compiles only what has changed.
install_simai() {
    local requires extra="" options=()
    mapfile -t requires < <("$PYTHON" -c \
        'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")')
    type -P cmake >/dev/null || requires+=(cmake)
    type -P ninja >/dev/null || requires+=(ninja)
    if [[ $MODE == test ]]; then
        extra="[test,docs]"
        options=(--config-settings cmake.define.SIMAI_WERROR=ON)
    fi
    pip_install --quiet "${requires[@]}"
    CXX=$(find_compiler) pip_install --no-build-isolation "${options[@]}" --editable ".$extra"
}

# The stamp is as old as the sources that were built, not as the end of the build.
begin() {
    rm -f "$(stamp run)" "$(stamp test)"
    say "$PWD" >"$(stamp new)"
}

finish() {
    cp -p "$(stamp new)" "$(stamp run)"
    [[ $MODE != test ]] || cp -p "$(stamp new)" "$(stamp test)"
    rm "$(stamp new)"
}

if is_current "$MODE"; then
    exit
fi
say "[1/3] system packages"
prepare_system
say "[2/3] Python environment"
prepare_environment
say "[3/3] engine, command line and Python packages (a minute or two the first time)"
begin
install_simai
finish
say "ready: $ENVIRONMENT/bin/r2cc-simai"
