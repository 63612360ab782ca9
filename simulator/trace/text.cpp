#include "trace/text.hpp"

#include <cstddef>
#include <cstdint>

namespace simai {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::size_t kLongestQuote = 60;

// Bytes of the character at the start of a text that is not empty; 0 if there is none. Unicode 15, table 3-7.
std::size_t character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const std::uint8_t first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
    const std::uint8_t lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (byte(1) < lowest || byte(1) > highest) return 0;
    for (std::size_t i = 2; i < size; ++i)
        if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
    return size;
}

}  // namespace

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t size = character(text);
        if (size == 0) return false;
        text.remove_prefix(size);
    }
    return true;
}

std::string repaired_utf8(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t size = character(text);
        out += size == 0 ? kReplacement : text.substr(0, size);
        text.remove_prefix(size == 0 ? 1 : size);
    }
    return out;
}

std::string quoted(std::string_view text) {
    const bool whole = text.size() <= kLongestQuote;
    return '\'' + repaired_utf8(text.substr(0, kLongestQuote)) + (whole ? "'" : "...'");
}

}  // namespace simai
