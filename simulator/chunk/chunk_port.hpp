// A port as chunks meet it: one chunk after another at the port's rate, the first bytes of a burst at line rate.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "chunk/event_queue.hpp"
#include "model/cluster.hpp"

namespace simai {

struct ChunkPort {
    double rate = kUnlimited;  // bytes per second
    double line_rate = kUnlimited;
    double burst = 0;
    double fraction = 1;  // what a failure leaves of it
    double tokens = 0;
    Ps counted = 0;  // until when `tokens` is right
    Ps busy_until = 0;
    Ps wake_at = -1;          // when it will look for its next chunk; -1: no such event
    double virtual_time = 0;  // start tag of the chunk that it served last
    std::vector<int> connections;

    // Occupies the port with `bytes` from `start` on; returns when they are through.
    Ps serve(Ps start, double bytes) {
        busy_until = start + static_cast<Ps>(std::llround(seconds(start, bytes) * kPsPerSecond));
        return busy_until;
    }

  private:
    double seconds(Ps start, double bytes) {
        const double r = rate * fraction;
        if (burst <= 0) return std::isfinite(r) ? bytes / r : 0.0;
        const double line = line_rate * fraction;
        tokens = std::min(burst, tokens + r * static_cast<double>(std::max<Ps>(0, start - counted)) / kPsPerSecond);
        // At line rate the bucket drains by (line - r) a second until it is dry; the rest goes at the sustained rate.
        const double at_line = std::min(bytes / line, line > r ? tokens / (line - r) : bytes / line);
        const double total = at_line + (bytes - at_line * line) / r;
        tokens = std::max(0.0, tokens - (line - r) * at_line);
        counted = start + static_cast<Ps>(std::llround(total * kPsPerSecond));
        return total;
    }
};

}  // namespace simai
