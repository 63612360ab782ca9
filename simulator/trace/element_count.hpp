// Sizes that were written as numbers of elements where bytes are wanted: two or four times too small.
#pragma once

#include <cstdint>
#include <string>

#include "trace/trace.hpp"
#include "trace/wire.hpp"

namespace simai {

// What makes a communication node's size look like a number of elements; empty if nothing does. `inputs` and `outputs`
// are the node's IOInfo messages, `tensor_size` its attribute or -1. Throws WireError.
std::string element_count(const TraceNode& node, const std::uint8_t* file, Bytes inputs, Bytes outputs,
                          std::int64_t tensor_size);

}  // namespace simai
