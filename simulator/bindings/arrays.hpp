// Views of one-dimensional numpy arrays, and columns that must have one length.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace simai {

template <typename T>
using Column = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Ints = Column<std::int64_t>;
using Doubles = Column<double>;

inline void same_length(std::size_t want, std::initializer_list<std::size_t> sizes, const char* what) {
    for (std::size_t size : sizes)
        if (size != want) throw std::invalid_argument(std::string(what) + ": columns of unequal length");
}

// Rows of a compressed table: row i is [offsets[i], offsets[i + 1]) of `size` values.
inline void check_offsets(const Ints& offsets, std::size_t rows, std::size_t size, const char* what) {
    if (offsets.size() != rows + 1 || offsets(0) != 0 || offsets(rows) != static_cast<std::int64_t>(size))
        throw std::invalid_argument(std::string(what) + ": offsets do not match");
    for (std::size_t i = 0; i < rows; ++i)
        if (offsets(i + 1) < offsets(i)) throw std::invalid_argument(std::string(what) + ": offsets must not fall");
}

inline std::vector<int> row_of(const Ints& offsets, const Ints& values, std::size_t i) {
    std::vector<int> row;
    row.reserve(static_cast<std::size_t>(offsets(i + 1) - offsets(i)));
    for (std::int64_t k = offsets(i); k < offsets(i + 1); ++k)
        row.push_back(static_cast<int>(values(static_cast<std::size_t>(k))));
    return row;
}

}  // namespace simai
