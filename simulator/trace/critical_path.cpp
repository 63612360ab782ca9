#include "trace/critical_path.hpp"

#include <algorithm>

#include "trace/dependencies.hpp"

namespace simai {

CriticalPath critical_path(const Trace& trace) {
    constexpr std::uint32_t kNone = 0xFFFFFFFF;
    std::vector<double> longest(trace.nodes.size());
    std::vector<std::uint32_t> before(trace.nodes.size(), kNone);
    for (const std::uint32_t node : topological_order(trace)) {
        double start = 0;
        for (const std::uint32_t dep : trace.deps_of(node)) {
            if (longest[dep] <= start) continue;
            start = longest[dep];
            before[node] = dep;
        }
        const TraceNode& one = trace.nodes[node];
        longest[node] = start + (one.type == NodeType::kComp ? one.duration_s : 0);
    }
    CriticalPath path;
    const auto last = std::max_element(longest.begin(), longest.end());
    if (last == longest.end() || *last <= 0) return path;
    path.seconds = *last;
    for (auto node = static_cast<std::uint32_t>(last - longest.begin()); node != kNone; node = before[node])
        path.positions.push_back(node);
    std::reverse(path.positions.begin(), path.positions.end());
    return path;
}

}  // namespace simai
