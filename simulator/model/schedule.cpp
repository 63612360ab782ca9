#include "model/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace simai {

std::int64_t Pass::bytes() const {
    std::int64_t sum = 0;
    for (const Section& s : sections) sum += s.bytes();
    return sum;
}

void Schedule::validate() const {
    if (bytes < 0) throw std::invalid_argument("schedule: bytes must be >= 0");
    if (!(wire_factor > 0)) throw std::invalid_argument("schedule: wire_factor must be > 0");
    for (std::size_t i = 0; i < passes.size(); ++i) {
        const Pass& pass = passes[i];
        const auto bad = [i](const std::string& what) {
            throw std::invalid_argument("pass " + std::to_string(i) + ": " + what);
        };
        if (pass.route < 0 || pass.route >= static_cast<int>(routes.size())) bad("no such route");
        const int length = static_cast<int>(routes[pass.route].size());
        if (length == 0) bad("a route needs a rank");
        for (int rank : routes[pass.route])
            if (rank < 0 || rank >= n_ranks) bad("route names a rank that does not exist");
        for (int h = 0; h < positions(pass); ++h)
            if (routes[pass.route][h] == routes[pass.route][(h + 1) % length])
                bad("a rank of the route follows itself");
        if (pass.reduce_hops < 0 || pass.copy_hops < 0) bad("hops must be >= 0");
        if (pass.chunks < 1) bad("chunks must be >= 1");
        if (!(pass.weight > 0 && std::isfinite(pass.weight)) && pass.bytes() > 0) bad("weight must be > 0 and finite");
        if (pass.hops() > 0 && length < 2) bad("a route needs two ranks");
        for (const Section& s : pass.sections) {
            if (s.lo < 0 || s.hi < s.lo || s.hi > bytes) bad("section outside the buffer");
            if (s.start < 0 || s.start >= length) bad("section starts outside the route");
            if (!pass.cyclic && s.start + pass.hops() >= length) bad("section runs past the end of the route");
        }
        for (int before : pass.after)
            if (before < 0 || before >= static_cast<int>(i)) bad("waits for a pass that does not come before it");
    }
}

namespace {

// What each hop of the route carries in all when every section puts its `amount` on each hop that it makes.
template <typename Amount>
std::vector<std::int64_t> load_hops(const Pass& pass, int n, Amount amount) {
    if (pass.hops() == 0) return std::vector<std::int64_t>(n, 0);  // also a route of one rank
    std::vector<std::int64_t> diff(n + 1, 0);
    std::int64_t laps = 0;  // whole laps load every hop alike
    for (const Section& s : pass.sections) {
        const std::int64_t value = amount(s);
        const int rest = pass.hops() % n;
        laps += value * (pass.hops() / n);
        if (rest == 0) continue;
        const int end = s.start + rest;
        diff[s.start] += value;
        if (end <= n) {
            diff[end] -= value;
        } else {
            diff[0] += value;
            diff[end - n] -= value;
        }
    }
    std::vector<std::int64_t> load(n);
    std::int64_t sum = laps;
    for (int h = 0; h < n; ++h) load[h] = sum += diff[h];
    return load;
}

}  // namespace

std::vector<std::int64_t> Schedule::hop_bytes(const Pass& pass) const {
    if (pass.hops() == 0) return std::vector<std::int64_t>(std::max(0, positions(pass)), 0);
    return load_hops(pass, positions(pass), [](const Section& s) { return s.bytes(); });
}

std::vector<std::int64_t> Schedule::hop_chunks(const Pass& pass) const {
    if (pass.hops() == 0) return std::vector<std::int64_t>(std::max(0, positions(pass)), 0);
    return load_hops(pass, positions(pass), [&](const Section& s) { return travelling_pieces(s, pass.chunks); });
}

}  // namespace simai
