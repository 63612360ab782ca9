// Who sends which bytes to whom, in which order. The engine knows schedules, not the algorithms that wrote them.
#pragma once

#include <cstdint>
#include <vector>

namespace simai {

// A range of the buffer that starts at one position of the route and travels along it.
struct Section {
    std::int64_t lo = 0;
    std::int64_t hi = 0;
    int start = 0;  // position on the route
    std::int64_t bytes() const { return hi - lo; }
};

// One pipelined movement of sections along a route of ranks. Every section makes `reduce_hops` hops on which
// the receiver adds what arrives to its own data, then `copy_hops` hops on which it takes what arrives.
// Passes of one channel run in order over the same connections; `after` names passes that must be complete.
struct Pass {
    int channel = 0;
    int route = 0;
    bool cyclic = false;
    int reduce_hops = 0;
    int copy_hops = 0;
    int chunks = 1;  // pieces in which a section is pipelined
    double weight = 0;
    std::vector<Section> sections;
    std::vector<int> after;

    int hops() const { return reduce_hops + copy_hops; }
    std::int64_t bytes() const;
};

struct Schedule {
    int n_ranks = 0;
    std::int64_t bytes = 0;
    double wire_factor = 1;  // bytes moved for each payload byte by the wire protocol
    std::vector<std::vector<int>> routes;
    std::vector<Pass> passes;

    void validate() const;  // throws std::invalid_argument that names the pass

    int positions(const Pass& pass) const {  // hops of the route, used or not
        const int n = static_cast<int>(routes[pass.route].size());
        return pass.cyclic ? n : n - 1;
    }
    // Payload bytes that the pass moves over each hop of its route.
    std::vector<std::int64_t> hop_bytes(const Pass& pass) const;
    // Chunks that the pass moves over each hop of its route; a chunk without a byte does not travel.
    std::vector<std::int64_t> hop_chunks(const Pass& pass) const;
};

// Piece `i` of `n` of [lo, hi): pieces differ by at most one byte and cover the range.
inline std::int64_t piece(std::int64_t lo, std::int64_t hi, int i, int n) {
    const std::int64_t whole = (hi - lo) / n, rest = (hi - lo) % n;
    return lo + whole * i + rest * i / n;
}

// Pieces of a section that hold a byte at all.
inline std::int64_t travelling_pieces(const Section& section, int chunks) {
    return section.bytes() < chunks ? section.bytes() : chunks;
}

// Which NIC pair carries what share of the traffic of one hop of one channel.
struct BindingRow {
    int channel = 0;
    int src = 0;
    int dst = 0;
    int src_nic = 0;
    int dst_nic = 0;
    double share = 1;
};

struct Binding : std::vector<BindingRow> {
    using std::vector<BindingRow>::vector;
};

}  // namespace simai
