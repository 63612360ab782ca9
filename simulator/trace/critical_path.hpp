// The longest chain of compute through the dependencies of a trace.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.hpp"

namespace simai {

struct CriticalPath {
    double seconds = 0;                    // compute on the path; communication counts as nothing
    std::vector<std::uint32_t> positions;  // its nodes in order, communication nodes too
};

// longest(i) = duration(i) + max over the nodes j that i waits for of longest(j), duration 0 unless COMP. Of equally
// long chains, the one that ends, and comes by, the lowest positions. The trace must have no cycle.
CriticalPath critical_path(const Trace& trace);

}  // namespace simai
