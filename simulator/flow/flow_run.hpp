// The fluid backend: each pass of a schedule is one flow over every port on its way.
#pragma once

#include "model/cluster.hpp"
#include "model/limits.hpp"
#include "model/outcome.hpp"
#include "model/schedule.hpp"

namespace simai {

// Runs the schedule to its end, or to the first event that makes an end impossible. `react` may be empty: broken
// hops then migrate to the backups of the cluster.
Outcome run_flow(const Cluster& cluster, const Schedule& schedule, const Binding& binding,
                 const std::vector<NicEvent>& events, const React& react, const RunLimits& limits);

}  // namespace simai
