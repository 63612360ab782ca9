// The capacity of a port: its rate, what a failure leaves of it, and the line rate while its bucket has tokens.
#pragma once

#include <algorithm>

#include "model/cluster.hpp"

namespace simai {

class ShapedPort {
  public:
    ShapedPort() = default;
    ShapedPort(double rate, double line_rate, double burst)
        : rate_(rate), line_(line_rate), burst_(burst), tokens_(burst), bursting_(burst > 0) {}

    double capacity() const { return fraction_ * (bursting_ ? line_ : rate_); }
    // The rate that plans count on: of a port that is down, the one it will have when it works.
    double planning() const { return (fraction_ > 0 ? fraction_ : 1) * (bursting_ ? line_ : rate_); }
    bool shaped() const { return burst_ > 0; }
    void set_fraction(double fraction) { fraction_ = fraction; }

    // Counts `usage` (bytes per second) since the last call against the bucket. A port that has run dry goes back
    // to its line rate only after it was idle: tokens that trickle in under load are not worth an event each.
    void advance(double now_s, double usage) {
        if (!shaped()) return;
        const double passed = now_s - since_s_;
        since_s_ = now_s;
        tokens_ = std::min(burst_, tokens_ + (fraction_ * rate_ - usage) * passed);
        if (tokens_ <= kDry * burst_) {
            tokens_ = std::max(tokens_, 0.0);
            bursting_ = false;
        } else if (usage == 0) {
            bursting_ = true;
        }
    }
    // The bucket is empty now. Late in a run a clock tick is worth more bytes than the rounding that advance allows.
    void run_dry(double now_s) {
        since_s_ = now_s;
        tokens_ = 0;
        bursting_ = false;
    }
    // When the bucket runs dry at this usage, in seconds from the last advance.
    double dry_in(double usage) const {
        const double drain = usage - fraction_ * rate_;
        return shaped() && bursting_ && drain > 0 ? tokens_ / drain : kUnlimited;
    }

  private:
    static constexpr double kDry = 1e-9;
    double rate_ = kUnlimited;
    double line_ = kUnlimited;
    double burst_ = 0;
    double tokens_ = 0;
    double since_s_ = 0;
    double fraction_ = 1;
    bool bursting_ = false;
};

}  // namespace simai
