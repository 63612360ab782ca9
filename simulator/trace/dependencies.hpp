// Which node waits for which: from ids to positions, and what is wrong with them.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/finding.hpp"
#include "trace/trace.hpp"

namespace simai {

// Dependencies as the file has them: node i waits for ids[offsets[i]..offsets[i + 1]).
struct RawDependencies {
    std::vector<std::uint64_t> ids;
    std::vector<std::size_t> offsets{0};
};

// Fills in `deps` and `dep_offsets`. Ids that occur twice, missing nodes and cycles are errors; `bytes` tells where
// each node begins in the file.
void resolve_dependencies(const RawDependencies& raw, const std::vector<std::int64_t>& bytes, Trace& trace,
                          Findings& findings);

// Positions in an order in which every node comes after those that it waits for, lower positions first among equals of
// one round; nodes on a cycle, and those that wait for them, are left out.
std::vector<std::uint32_t> topological_order(const Trace& trace);

}  // namespace simai
