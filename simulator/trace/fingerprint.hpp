// Whether ranks do the same, and whether they agree on what they do together, by numbers instead of traces.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trace/trace.hpp"

namespace simai {

struct Fingerprint {
    // Of everything but the nodes' numbers, and which groups and peers the roles stand for: ranks with equal ones share
    // a class.
    std::array<std::uint64_t, 2> digest{};
    // Per group role: of the sequence of collectives, each with its type and size.
    std::vector<std::uint64_t> collectives;
    // Per peer role: of the messages to and from it, each with tag and size, whatever their order; 0 if there are none.
    std::vector<std::uint64_t> sends, receives;
};

Fingerprint fingerprint(const Trace& trace);

}  // namespace simai
