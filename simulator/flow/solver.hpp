// Weighted max-min shares of ports among flows.
#pragma once

#include <vector>

namespace simai {

// What a flow takes of a port: bytes on the port for each byte of the flow's progress.
struct Load {
    int port = 0;
    double bytes_per_byte = 0;
};

// A flow as the solver sees it. `cap` bounds its rate (bytes of progress per second; may be infinite).
struct SolverFlow {
    double weight = 1;
    double cap = 0;
    const std::vector<Load>* loads = nullptr;
};

// Progressive filling: all flows grow in proportion to their weights until a port is full or a flow is at its
// cap; those freeze, the rest grow on. Buffers are kept between calls; only ports that the flows use are touched.
class MaxMinSolver {
  public:
    explicit MaxMinSolver(int n_ports) : slot_(n_ports, -1) {}

    // Rates of `flows`, in their order. `capacity` is indexed by port number.
    void solve(const std::vector<SolverFlow>& flows, const std::vector<double>& capacity, std::vector<double>& rates);

  private:
    struct PortState {
        int port = 0;
        double capacity = 0;
        double left = 0;
        double load = 0;
        int active = 0;  // flows that still grow
    };
    std::vector<int> slot_;  // port -> index in ports_, -1 between calls
    std::vector<PortState> ports_;
    std::vector<int> active_;
};

}  // namespace simai
