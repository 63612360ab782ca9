#include "trace/dependencies.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace simai {
namespace {

constexpr std::size_t kLongestPath = 16;  // nodes of a cycle that are named

// Positions of ids. Most files number their nodes without gaps, which needs no table.
class IdIndex {
  public:
    explicit IdIndex(const std::vector<TraceNode>& nodes) : nodes_(nodes) {
        bool dense = true;
        for (std::size_t i = 1; i < nodes.size() && dense; ++i)
            dense = nodes[i].id > nodes[i - 1].id && nodes[i].id - 1 == nodes[i - 1].id;
        if (dense) return;
        sorted_.resize(nodes.size());
        std::iota(sorted_.begin(), sorted_.end(), 0U);
        std::stable_sort(sorted_.begin(), sorted_.end(), [&](auto a, auto b) { return nodes[a].id < nodes[b].id; });
    }

    // The first node with an id.
    std::optional<std::uint32_t> find(std::int64_t id) const {
        if (sorted_.empty()) {
            if (nodes_.empty() || id < nodes_.front().id || id > nodes_.back().id) return std::nullopt;
            return static_cast<std::uint32_t>(id - nodes_.front().id);
        }
        const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), id,
                                         [&](std::uint32_t a, std::int64_t wanted) { return nodes_[a].id < wanted; });
        if (at == sorted_.end() || nodes_[*at].id != id) return std::nullopt;
        return *at;
    }

    // Calls found(first, later) for every node whose id an earlier one has.
    template <typename Found>
    void duplicates(Found found) const {
        std::size_t first = 0;
        for (std::size_t i = 1; i < sorted_.size(); ++i) {
            if (nodes_[sorted_[i]].id == nodes_[sorted_[first]].id)
                found(sorted_[first], sorted_[i]);
            else
                first = i;
        }
    }

  private:
    const std::vector<TraceNode>& nodes_;
    std::vector<std::uint32_t> sorted_;  // empty where ids have no gaps
};

std::string path_text(const Trace& trace, const std::vector<std::uint32_t>& cycle) {
    std::string text;
    for (std::size_t i = 0; i < cycle.size() && i < kLongestPath; ++i)
        text += std::to_string(trace.nodes[cycle[i]].id) + " -> ";
    if (cycle.size() > kLongestPath) text += "... (" + std::to_string(cycle.size()) + " nodes) -> ";
    return text + std::to_string(trace.nodes[cycle.front()].id);
}

// Every node that no order reaches waits for another one such. So a walk along these dependencies ends in a cycle;
// walks that meet an earlier one end there.
void find_cycles(const std::vector<std::uint32_t>& order, const std::vector<std::int64_t>& bytes, const Trace& trace,
                 Findings& findings) {
    std::vector<bool> reached(trace.nodes.size());
    for (const std::uint32_t node : order) reached[node] = true;
    std::vector<std::uint32_t> walk_of(trace.nodes.size());  // number of the walk that met a node; 0: none
    std::uint32_t walk = 0;
    for (std::uint32_t start = 0; start < trace.nodes.size(); ++start) {
        if (reached[start] || walk_of[start] != 0) continue;
        std::vector<std::uint32_t> path;
        std::uint32_t node = start;
        ++walk;
        while (walk_of[node] == 0) {
            walk_of[node] = walk;
            path.push_back(node);
            const auto deps = trace.deps_of(node);
            node = *std::find_if(deps.begin(), deps.end(), [&](std::uint32_t dep) { return !reached[dep]; });
        }
        if (walk_of[node] != walk) continue;
        path.erase(path.begin(), std::find(path.begin(), path.end(), node));
        findings.add(checks::kCycle, trace.nodes[node].id, node, bytes[node],
                     [&] { return "a cycle of dependencies, each waits for the next: " + path_text(trace, path); });
    }
}

}  // namespace

void resolve_dependencies(const RawDependencies& raw, const std::vector<std::int64_t>& bytes, Trace& trace,
                          Findings& findings) {
    const IdIndex index(trace.nodes);
    index.duplicates([&](std::uint32_t first, std::uint32_t later) {
        findings.add(checks::kDuplicateId, trace.nodes[later].id, later, bytes[later], [&] {
            return "the node at position " + std::to_string(later) + " has the id of the one at position " +
                   std::to_string(first);
        });
    });
    trace.deps.reserve(raw.ids.size());
    trace.dep_offsets.assign(1, 0);
    trace.dep_offsets.reserve(trace.nodes.size() + 1);
    for (std::uint32_t node = 0; node < trace.nodes.size(); ++node) {
        const std::ptrdiff_t begin = static_cast<std::ptrdiff_t>(trace.deps.size());
        for (std::size_t k = raw.offsets[node]; k < raw.offsets[node + 1]; ++k) {
            if (const auto found = index.find(static_cast<std::int64_t>(raw.ids[k])))
                trace.deps.push_back(*found);
            else
                findings.add(checks::kMissingDependency, trace.nodes[node].id, node, bytes[node],
                             [&] { return "waits for node " + std::to_string(raw.ids[k]) + ", which does not exist"; });
        }
        std::sort(trace.deps.begin() + begin, trace.deps.end());
        trace.deps.erase(std::unique(trace.deps.begin() + begin, trace.deps.end()), trace.deps.end());
        trace.dep_offsets.push_back(static_cast<std::uint32_t>(trace.deps.size()));
    }
    const std::vector<std::uint32_t> order = topological_order(trace);
    if (order.size() < trace.nodes.size()) find_cycles(order, bytes, trace, findings);
}

std::vector<std::uint32_t> topological_order(const Trace& trace) {
    const auto count = static_cast<std::uint32_t>(trace.nodes.size());
    std::vector<std::uint32_t> order;
    order.reserve(count);
    bool in_order = true;  // as most files are
    for (std::uint32_t node = 0; node < count && in_order; ++node) {
        const auto deps = trace.deps_of(node);
        in_order = deps.empty() || deps.back() < node;
    }
    if (in_order) {
        order.resize(count);
        std::iota(order.begin(), order.end(), 0U);
        return order;
    }
    // Who waits for a node, as a compressed table: after[starts[node]..starts[node + 1]).
    std::vector<std::uint32_t> starts(count + 1), after(trace.deps.size()), waiting(count);
    for (const std::uint32_t dep : trace.deps) ++starts[dep + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<std::uint32_t> filled(starts.begin(), starts.end() - 1);
    for (std::uint32_t node = 0; node < count; ++node) {
        for (const std::uint32_t dep : trace.deps_of(node)) after[filled[dep]++] = node;
        waiting[node] = static_cast<std::uint32_t>(trace.deps_of(node).size());
        if (waiting[node] == 0) order.push_back(node);
    }
    for (std::size_t done = 0; done < order.size(); ++done)
        for (std::uint32_t k = starts[order[done]]; k < starts[order[done] + 1]; ++k)
            if (--waiting[after[k]] == 0) order.push_back(after[k]);
    return order;
}

}  // namespace simai
