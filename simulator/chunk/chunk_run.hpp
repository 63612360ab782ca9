// The chunk backend: every chunk on every hop is an event, with windows, acknowledgements and rollback.
#pragma once

#include "chunk/provenance.hpp"
#include "model/cluster.hpp"
#include "model/limits.hpp"
#include "model/outcome.hpp"
#include "model/schedule.hpp"

namespace simai {

struct ChunkOptions {
    RunLimits limits;
    Provenance* provenance = nullptr;  // filled as chunks arrive, if given
    // Whether a receiver drops a chunk that it already has. Off only to show that the checker catches what follows.
    bool drop_duplicates = true;
};

// Runs the schedule to its end, or to the first event that makes an end impossible. `react` may be empty: broken
// hops then migrate to the backups of the cluster.
Outcome run_chunk(const Cluster& cluster, const Schedule& schedule, const Binding& binding,
                  const std::vector<NicEvent>& events, const React& react, const ChunkOptions& options);

}  // namespace simai
