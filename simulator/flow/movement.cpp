#include "flow/movement.hpp"

namespace simai {

Movement::Movement(const Cluster& cluster, const Schedule& plan, const Binding& binding, double equal)
    : schedule(plan), hops(cluster, plan, binding), copies(equal), shapes(plan.passes.size()) {
    hop_bytes.reserve(plan.passes.size());
    for (std::size_t i = 0; i < plan.passes.size(); ++i) {
        hop_bytes.push_back(plan.hop_bytes(plan.passes[i]));
        hops.require_bound(static_cast<int>(i), hop_bytes[i]);
    }
}

}  // namespace simai
