#include "model/pass_order.hpp"

namespace simai {

PassOrder::PassOrder(const Schedule& schedule, bool one_at_a_time)
    : schedule_(schedule), one_at_a_time_(one_at_a_time), dependents_(schedule.passes.size()) {
    for (std::size_t i = 0; i < schedule.passes.size(); ++i) {
        const Pass& pass = schedule.passes[i];
        const int id = static_cast<int>(i);
        waits_for_.push_back(static_cast<int>(pass.after.size()));
        for (int before : pass.after) dependents_[before].push_back(id);
        if (pass.channel >= static_cast<int>(channel_.size())) channel_.resize(pass.channel + 1);
        channel_[pass.channel].push_back(id);
    }
    handed_out_.assign(channel_.size(), 0);
    busy_.assign(channel_.size(), 0);
    for (std::size_t c = 0; c < channel_.size(); ++c) to_look_at_.push_back(static_cast<int>(c));
}

int PassOrder::next() {
    while (!to_look_at_.empty()) {
        const int c = to_look_at_.back();
        const bool more = !busy_[c] && handed_out_[c] < channel_[c].size();
        if (more && waits_for_[channel_[c][handed_out_[c]]] == 0) {
            busy_[c] = one_at_a_time_;
            return channel_[c][handed_out_[c]++];
        }
        to_look_at_.pop_back();
    }
    return -1;
}

void PassOrder::complete(int pass) {
    ++complete_;
    for (int next : dependents_[pass])
        if (--waits_for_[next] == 0) to_look_at_.push_back(schedule_.passes[next].channel);
}

void PassOrder::free(int channel) {
    busy_[channel] = 0;
    to_look_at_.push_back(channel);
}

}  // namespace simai
