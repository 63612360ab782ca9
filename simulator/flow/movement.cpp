#include "flow/movement.hpp"

namespace simai {

Movement::Movement(const Cluster& cluster, const Schedule& plan, const Binding& binding, double equal, double scale)
    : schedule(plan), hops(cluster, plan, binding), copies(equal), weight_scale(scale), shapes(plan.passes.size()) {
    hop_bytes.reserve(plan.passes.size());
    for (std::size_t i = 0; i < plan.passes.size(); ++i) {
        hop_bytes.push_back(plan.hop_bytes(plan.passes[i]));
        hops.require_bound(static_cast<int>(i), hop_bytes[i]);
    }
}

double Movement::scale_of_one(const Schedule& schedule) {
    double sum = 0;
    int counted = 0;
    for (const Pass& pass : schedule.passes) {
        if (!(pass.weight > 0)) continue;
        sum += pass.weight;
        ++counted;
    }
    return counted > 0 ? counted / sum : 1;
}

}  // namespace simai
