// Equal ports simulated as one: servers in the same situation carry the same, so one of them stands for all.
#pragma once

#include <vector>

namespace simai {

// By port in the numbering of Ports: which port stands for it, and for how many ports that one stands. Empty: each for
// itself. A port of a class carries (bytes of one movement on all ports of the class) x (equal movements) / (ports).
struct PortFold {
    std::vector<int> representative;
    std::vector<double> count;

    bool folds() const { return !representative.empty(); }
    int of(int port) const { return folds() ? representative[port] : port; }
    double share(int port, double copies) const { return folds() ? copies / count[representative[port]] : 1; }
};

}  // namespace simai
