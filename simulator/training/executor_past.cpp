#include <algorithm>
#include <stdexcept>

#include "training/executor.hpp"

namespace simai {
namespace {

constexpr double kApart = 4e-3;  // of the time: quiet points are at least so far apart

}  // namespace

void Executor::set_up_past(int rank_class) {
    const RankClass& one = job_.ranks[rank_class];
    RankState& state = ranks_[rank_class];
    const Resumed& from = resumed(one);
    state.waits_for = from.waits_for;
    state.left = from.left;
    state.since_s = one.resume_s;
    for (int at : from.running) {
        const int node = one.past->nodes[at];
        state.streams[one.trace->nodes[node].on_cpu ? 1 : 0].busy = true;
        queue_.push({one.past->end_s[at], sequence_++, rank_class, node, one.past->start_s[at]});
    }
    queue_.push({one.resume_s, sequence_++, rank_class, kResumes, one.resume_s});
}

const Executor::Resumed& Executor::resumed(const RankClass& one) {
    const auto [entry, fresh] = resumed_.try_emplace({one.trace, one.past.get(), one.resume_s});
    Resumed& from = entry->second;
    if (!fresh) return from;
    const Trace& trace = *one.trace;
    const Past& past = *one.past;
    const std::size_t n = trace.nodes.size();
    if (past.ended.size() != n)
        throw std::invalid_argument("rank " + std::to_string(one.rank) + ": its past is not that of its trace");
    std::vector<double> end_s(n, kUnlimited);
    std::vector<char> runs(n, 0);
    for (std::size_t i = 0; i < n; ++i)
        if (past.ended[i]) end_s[i] = 0;
    for (std::size_t k = 0; k < past.nodes.size(); ++k) {
        const int i = past.nodes[k];
        if (past.end_s[k] <= one.resume_s) end_s[i] = past.end_s[k];
        if (past.end_s[k] <= one.resume_s || !(past.start_s[k] < one.resume_s)) continue;
        const NodeType type = trace.nodes[i].type;
        if (type == NodeType::kColl || type == NodeType::kSend || type == NodeType::kRecv)
            throw std::invalid_argument(describe({static_cast<int>(&one - job_.ranks.data()), i}) +
                                        " is under way where its rank resumes");
        runs[i] = 1;
        from.running.push_back(static_cast<int>(k));
    }
    from.waits_for.assign(n, 0);
    std::vector<std::pair<double, int>> ready;
    for (std::size_t i = 0; i < n; ++i) {
        if (end_s[i] < kUnlimited) continue;
        ++from.left;
        double last = 0;
        for (const std::uint32_t before : trace.deps_of(i)) {
            const bool ended = end_s[before] < kUnlimited;
            if (ended) last = std::max(last, end_s[before]);
            from.waits_for[i] += ended ? 0 : 1;
        }
        if (from.waits_for[i] == 0 && !runs[i]) ready.emplace_back(last, static_cast<int>(i));
    }
    std::sort(ready.begin(), ready.end());
    for (const auto& [time, node] : ready) from.ready.push_back(node);
    return from;
}

void Executor::resume(int rank_class) {
    for (int node : resumed(job_.ranks[rank_class]).ready) issue(rank_class, node);
}

// Whether the same was moved with the same plan before its ranks resumed.
bool Executor::paid_before(const Meeting& meeting, const PlanRequest& request) const {
    const End& end = meeting.ends.front();
    const RankClass& one = job_.ranks[end.rank_class];
    if (!one.past) return false;
    const TraceNode& what = node_of(end);
    const Past& past = *one.past;
    for (std::size_t k = 0; k < past.nodes.size(); ++k) {
        const TraceNode& node = one.trace->nodes[past.nodes[k]];
        const bool same = node.type == what.type && node.comm == what.comm && node.bytes == what.bytes &&
                          node.group == what.group && node.peer == what.peer;
        if (same && past.end_s[k] <= one.resume_s && epoch(past.start_s[k]) == request.epoch) return true;
    }
    return false;
}

// Keeps the last quiet point before any rank came to a held communicator, and some of those that follow; for a run that
// comes to nothing the last one before any NIC changed, too.
void Executor::keep_quiet_point(double next_s) {
    if (under_way_ > 0 || !(next_s > now_)) return;
    const double time_s = next_s < kUnlimited ? now_ + (next_s - now_) / 2 : now_;
    std::vector<QuietPoint>& kept = out_.quiet_points;
    if (held_met_ && !kept.empty() && time_s < kept.back().time_s * (1 + kApart)) return;
    if (held_met_ || kept.empty()) kept.emplace_back();
    const bool calm = std::none_of(events_.begin(), events_.end(),
                                   [&](const NicEvent& e) { return e.time_s > 0 && e.time_s <= time_s; });
    kept.back() = quiet_point(time_s);
    if (calm) before_events_ = kept.back();
}

QuietPoint Executor::quiet_point(double time_s) {
    const double back_s = now_;
    now_ = time_s;
    for (std::size_t c = 0; c < ranks_.size(); ++c)
        if (ranks_[c].left > 0) settle(static_cast<int>(c));
    now_ = back_s;
    QuietPoint point{time_s, out_.classes, {}};
    for (int nic : job_.quiet_nics) point.nics.push_back(network_.count(nic));
    return point;
}

}  // namespace simai
