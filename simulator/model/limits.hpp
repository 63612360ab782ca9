// What ends a run that would not end by itself.
#pragma once

#include <cstdint>

namespace simai {

struct RunLimits {
    double max_time_s = 1e6;  // simulated; what is unfinished then is reported so
    std::int64_t max_steps = 2'000'000'000;
};

}  // namespace simai
