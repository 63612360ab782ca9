#include "flow/pipeline.hpp"

#include <algorithm>
#include <cmath>

namespace simai {
namespace {

// Cost of one chunk on one hop of the route.
struct HopCost {
    double seconds_per_byte = 0;   // serialisation on the slowest port of the slowest lane
    double stream_s_per_byte = 0;  // of many chunks that all lanes carry together
    double latency_s = 0;
    double work_s = 0;                // all that the pass moves over the hop, at full rate
    double window_rate = kUnlimited;  // payload bytes per second that the window allows
};

// Payload bytes per second that the window allows on a hop. N chunks leave in windows of W: each but the last is
// followed by the next one only when its first chunk is acknowledged.
double window_rate(const Cluster& cluster, const Hop& hop, double bytes, double chunk, double round_trip_s,
                   const HopCost& cost) {
    const double window = static_cast<double>(cluster.window_chunks) * static_cast<double>(hop.lanes.size());
    const double one_s = cost.stream_s_per_byte * chunk;  // a chunk, on all lanes together
    if (window <= 0 || bytes <= 0 || chunk <= 0 || round_trip_s <= window * one_s) return kUnlimited;
    const double chunks = std::ceil(bytes / chunk - 1e-9);
    const double waits = std::ceil(chunks / window) - 1;
    return bytes / (waits * round_trip_s + (chunks - waits * window) * one_s);
}

std::vector<HopCost> hop_costs(const Cluster& cluster, const Schedule& schedule, const Hops& hops, int pass,
                               const std::vector<std::int64_t>& hop_bytes, const std::vector<double>& rate,
                               double chunk) {
    const Pass& p = schedule.passes[pass];
    std::vector<HopCost> costs(schedule.positions(p));
    for (std::size_t h = 0; h < costs.size(); ++h) {
        const Hop& hop = hops.at(hops.of(pass, static_cast<int>(h)));
        HopCost& cost = costs[h];
        double round_trip_s = 0;  // from a chunk's first byte to its acknowledgement
        for (const Lane& lane : hop.lanes) {
            const LanePath path = hops.path(hop, lane);
            double slowest = 0;
            for (int i = 0; i < path.count; ++i)
                slowest = std::max(slowest, path.use[i].bytes_per_byte / rate[path.use[i].port]);
            cost.seconds_per_byte = std::max(cost.seconds_per_byte, slowest);
            cost.latency_s = std::max(cost.latency_s, path.latency_s);
            cost.stream_s_per_byte = std::max(cost.stream_s_per_byte, slowest * lane.share);
            round_trip_s = std::max(round_trip_s, slowest * chunk + 2 * path.latency_s);
        }
        cost.window_rate = window_rate(cluster, hop, static_cast<double>(hop_bytes[h]), chunk, round_trip_s, cost);
        cost.work_s = cost.stream_s_per_byte * static_cast<double>(hop_bytes[h]);
    }
    return costs;
}

// When a section is at its end at the earliest: it may have to wait at a hop for the sections that started nearer to
// it, which all pass first, and from there its first chunk goes all the way, the others behind it. Looked at are the
// sections that come to a hop first, and the last ones: behind a slow hop those may meet another one.
template <typename Span>
double longest_way(const Pass& pass, int n, int length, double chunk, const std::vector<HopCost>& costs,
                   const std::vector<std::int64_t>& hop_bytes, const Span& span) {
    constexpr int kFirst = 32, kLast = 8;
    std::vector<double> starting(n + 1, 0.0);  // bytes by position; the end of a chain starts nothing
    for (const Section& s : pass.sections) starting[s.start] += static_cast<double>(s.bytes());
    double longest = 0;
    for (int h = 0; h < n; ++h) {
        const int reach = pass.cyclic ? length : std::min(length, h + 1);
        const auto look = [&](int far, double ahead) {
            const double bytes = starting[((h - far) % n + n) % n];
            if (bytes > 0) {
                const double queue = ahead + std::max(0.0, bytes - chunk);
                longest = std::max(longest, queue * costs[h].stream_s_per_byte + span(h, length - far));
            }
            return bytes;
        };
        double ahead = 0;  // bytes of the sections that pass the hop first
        const int first = std::min(reach, kFirst);
        for (int far = 0; far < first; ++far) ahead += look(far, ahead);
        double left = static_cast<double>(hop_bytes[h]);
        for (int far = reach - 1; far >= std::max(first, reach - kLast); --far) {
            left -= starting[((h - far) % n + n) % n];
            look(far, left);
        }
    }
    return longest;
}

}  // namespace

Pipeline pipeline_of(const Cluster& cluster, const Schedule& schedule, const Hops& hops, int pass,
                     const std::vector<std::int64_t>& hop_bytes, const std::vector<double>& rate) {
    const Pass& p = schedule.passes[pass];
    const int n = schedule.positions(p);
    const int length = p.hops();
    const double total = static_cast<double>(p.bytes());
    if (n == 0 || length == 0 || total == 0) return {kUnlimited, 0};
    std::int64_t largest = 0;
    for (const Section& s : p.sections) largest = std::max(largest, s.bytes());
    const double section = static_cast<double>(largest);
    const double chunk = section / p.chunks;
    const std::vector<HopCost> costs = hop_costs(cluster, schedule, hops, pass, hop_bytes, rate, chunk);

    std::vector<double> until(n + 1, 0.0);  // prefix sums of a chunk's time over the hops
    for (int h = 0; h < n; ++h) until[h + 1] = until[h] + costs[h].seconds_per_byte * chunk + costs[h].latency_s;
    const auto span = [&](int from, int hops_made) {  // time over hops_made hops from position `from`
        const double laps = until[n] * (hops_made / n);
        const int end = from + hops_made % n;
        return laps + (end <= n ? until[end] - until[from] : until[n] - until[from] + until[end - n]);
    };
    const double path = longest_way(p, n, length, chunk, costs, hop_bytes, span);
    // Filling: the shortest way from a section's start to the hop; draining: from the hop to a section's end.
    const int reach = std::min(length, n);
    std::vector<int> since_start(n, reach), until_end(n, reach);
    for (const Section& s : p.sections) {
        since_start[s.start] = 0;
        until_end[(s.start + length - 1) % n] = 0;
    }
    for (int i = 0; i < 2 * n; ++i) {
        const int h = i % n, back = n - 1 - h;
        if (p.cyclic || h > 0) since_start[h] = std::min(since_start[h], since_start[(h + n - 1) % n] + 1);
        if (p.cyclic || back < n - 1) until_end[back] = std::min(until_end[back], until_end[(back + 1) % n] + 1);
    }
    double busiest = -1, fill = 0, cap = kUnlimited;
    for (int h = 0; h < n; ++h) {
        if (hop_bytes[h] == 0) continue;
        const int before = since_start[h], behind = until_end[h];
        if (before >= length || behind >= length) continue;
        const double head = span((h - before % n + n) % n, before);
        const double tail = costs[h].latency_s + span((h + 1) % n, behind);
        if (costs[h].work_s + head + tail > busiest) {
            busiest = costs[h].work_s + head + tail;
            fill = head + tail;
        }
        cap = std::min(cap, costs[h].window_rate * total / static_cast<double>(hop_bytes[h]));
    }
    const double bound = path - fill;
    if (bound > 0) cap = std::min(cap, total / bound);
    return {cap, fill};
}

}  // namespace simai
