// How latency bounds a pipelined pass: what the fluid model takes from its chunks.
#pragma once

#include <vector>

#include "model/hops.hpp"
#include "model/schedule.hpp"

namespace simai {

struct Pipeline {
    // The pass cannot progress faster than this (bytes of progress per second).
    double cap = 0;
    // What the busiest port does not hide: filling the pipe up to it and draining the pipe behind it.
    double fill_s = 0;
};

// `rate` is the present rate of every port (0: a port that is down counts at its sustained rate), `hop_bytes` what
// the pass moves over each hop of its route.
Pipeline pipeline_of(const Cluster& cluster, const Schedule& schedule, const Hops& hops, int pass,
                     const std::vector<std::int64_t>& hop_bytes, const std::vector<double>& rate);

}  // namespace simai
