// Text from files, which may hold any bytes.
#pragma once

#include <string>
#include <string_view>

namespace simai {

bool is_utf8(std::string_view text);

// The text with U+FFFD in place of every byte that is not UTF-8.
std::string repaired_utf8(std::string_view text);

// The beginning of a text in quotes, for a message.
std::string quoted(std::string_view text);

}  // namespace simai
