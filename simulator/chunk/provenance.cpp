#include "chunk/provenance.hpp"

#include <algorithm>
#include <stdexcept>

namespace simai {

Provenance::Provenance(const Schedule& schedule) : cuts_{0, schedule.bytes}, words_((schedule.n_ranks + 63) / 64) {
    for (const Pass& pass : schedule.passes)
        for (const Section& s : pass.sections)
            for (int i = 0; i <= pass.chunks; ++i) cuts_.push_back(piece(s.lo, s.hi, i, pass.chunks));
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    if (cuts_.size() == 1) cuts_.push_back(cuts_.front());  // an empty buffer is one empty interval
    const std::size_t size =
        static_cast<std::size_t>(schedule.n_ranks) * (cuts_.size() - 1) * static_cast<std::size_t>(words_);
    if (size > (std::size_t{1} << 28))
        throw std::invalid_argument("provenance: the schedule has too many ranks and chunks to track (over 4 GiB)");
    once_.assign(size, 0);
    more_.assign(size, 0);
    for (int r = 0; r < schedule.n_ranks; ++r)
        for (std::size_t i = 0; i + 1 < cuts_.size(); ++i)
            once_[at(r, i) + static_cast<std::size_t>(r / 64)] = std::uint64_t{1} << (r % 64);
}

void Provenance::arrive(int src, int dst, std::int64_t lo, std::int64_t hi, bool reduce) {
    const auto first = std::lower_bound(cuts_.begin(), cuts_.end(), lo) - cuts_.begin();
    for (auto i = static_cast<std::size_t>(first); i + 1 < cuts_.size() && cuts_[i] < hi; ++i) {
        const std::size_t from = at(src, i), to = at(dst, i);
        for (std::size_t w = 0; w < static_cast<std::size_t>(words_); ++w) {
            const std::uint64_t twice = reduce ? more_[to + w] | (once_[to + w] & once_[from + w]) : 0;
            more_[to + w] = twice | more_[from + w];
            once_[to + w] = (reduce ? once_[to + w] : 0) | once_[from + w];
        }
    }
}

}  // namespace simai
