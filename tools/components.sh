#!/usr/bin/env bash
# What r2cc-simai needs of the system, and how to see whether it is there. Sourced by setup.sh;
# `tools/components.sh compiler` prints the C++ compiler that builds use.

readonly MISSING_COMPONENT=4

say() { printf '%s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit "$MISSING_COMPONENT"
}

is_recent_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

# Debian ships the modules that make environments apart from the interpreter.
makes_environments() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

has_headers() {
    local folder
    folder=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))') && [[ -f $folder/Python.h ]]
}

# The interpreter to make an environment with: complete if there is one, else the first that is recent enough.
find_python() {
    local name path first=""
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        path=$(type -P "$name") && is_recent_python "$path" || continue
        makes_environments "$path" && has_headers "$path" && say "$path" && return
        first=${first:-$path}
    done
    say "$first"
}

# Whether a compiler builds C++20 as this project writes it (g++ 11 or newer, or a clang of that age).
builds_cpp20() {
    "$1" -std=c++20 -fsyntax-only -x c++ - >/dev/null 2>&1 <<'CPP'
#include <algorithm>
#include <compare>
#include <concepts>
#include <span>
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 11
#error too old
#endif
template <std::totally_ordered T> bool below(T a, T b) { return (a <=> b) < 0; }
struct Pair { int a, b; auto operator<=>(const Pair&) const = default; };
int main() { return below(Pair{.a = 1, .b = 2}, Pair{.a = 1, .b = 3}) ? 0 : 1; }
CPP
}

# CXX where it is set, else the first that builds C++20; prints nothing where there is none.
find_compiler() {
    local name
    for name in ${CXX:-c++ g++ g++-14 g++-13 g++-12 g++-11 clang++}; do
        builds_cpp20 "$name" && say "$name" && return
    done
    return 0
}

has_doctest() { say '#include <doctest/doctest.h>' | "$1" -std=c++20 -fsyntax-only -x c++ - >/dev/null 2>&1; }

# A browser for the tests of the report page.
has_browser() {
    local name
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        type -P "$name" >/dev/null && return
    done
    return 1
}

is_debian() { grep -qx 'ID=debian' /etc/os-release 2>/dev/null; }

if [[ ${BASH_SOURCE[0]} == "$0" && ${1:-} == compiler ]]; then
    find_compiler
fi
