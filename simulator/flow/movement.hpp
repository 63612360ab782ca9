// A plan made ready to move: its connections, and what each pass moves over each of its hops.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "flow/pipeline.hpp"
#include "flow/solver.hpp"
#include "model/hops.hpp"

namespace simai {

// What a pass takes of the ports for each byte of its progress, and how latency bounds it.
struct Shape {
    std::vector<Load> loads;      // on the wire
    std::vector<double> payload;  // of the same entries
    Pipeline pipeline;
};

// `schedule` has to outlive it. `copies` equal movements go on at the same time in other places (PortFold).
struct Movement {
    Movement(const Cluster& cluster, const Schedule& plan, const Binding& binding, double equal = 1);

    const Schedule& schedule;
    Hops hops;
    std::vector<std::vector<std::int64_t>> hop_bytes;  // per pass and position of its route
    double copies;

    // Shapes of the passes as they were last computed, valid for that state of the ports only.
    struct Cached {
        std::uint64_t state = 0;
        std::shared_ptr<const Shape> shape;
    };
    mutable std::vector<Cached> shapes;
    mutable std::uint64_t alive_at = 0;  // the state of knowledge in which no connection was found on a dead NIC
};

}  // namespace simai
