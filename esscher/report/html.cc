#include "esscher/report/html.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"

namespace esscher {
namespace {

const std::set<std::string, std::less<>> kMathElements{
    "math",          "mrow",       "mi",      "mn",       "mo",       "mtext",
    "mspace",        "msup",       "msub",    "mfrac",    "mover",    "msubsup",
    "munder",        "munderover", "msqrt",   "mroot",    "mtable",   "mtr",
    "mtd",           "mstyle",     "mpadded", "mphantom", "menclose", "mfenced",
    "mmultiscripts", "mprescripts"};
const std::set<std::string, std::less<>> kMathAttributes{
    "display",      "mathvariant", "stretchy",      "fence",       "separator",     "form",
    "lspace",       "rspace",      "width",         "accent",      "largeop",       "movablelimits",
    "displaystyle", "scriptlevel", "xmlns",         "columnalign", "linethickness", "open",
    "close",        "notation",    "accentunder",   "minsize",     "maxsize",       "symmetric",
    "height",       "depth",       "columnspacing", "rowspacing"};

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Reads name="value" pairs; false at anything else.
bool harmless_attributes(std::string_view text) {
  while (true) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (text.empty() || text == "/") return true;
    std::size_t n = 0;
    while (n < text.size() && is_name(text[n])) ++n;
    if (n == 0 || !kMathAttributes.contains(text.substr(0, n))) return false;
    text.remove_prefix(n);
    if (!text.starts_with("=\"")) return false;
    const auto end = text.find('"', 2);
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
}

bool harmless_math(std::string_view text) {
  if (!text.starts_with("<math")) return false;
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const auto end = text.find('>', at);
    if (end == std::string_view::npos) return false;
    std::string_view tag = text.substr(at + 1, end - at - 1);
    const bool closing = tag.starts_with("/");
    if (closing) tag.remove_prefix(1);
    std::size_t n = 0;
    while (n < tag.size() && is_name(tag[n])) ++n;
    if (!kMathElements.contains(tag.substr(0, n))) return false;
    if (closing ? n != tag.size() : !harmless_attributes(tag.substr(n))) return false;
  }
  return true;
}

std::string base64(std::string_view bytes) {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      word = word << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out.push_back(i + j > bytes.size() ? '=' : kAlphabet[word >> (18 - 6 * j) & 63]);
    }
  }
  return out;
}

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  // 15 + 16: a gzip header, which zlib leaves without a date.
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw RuntimeFailure("gzip: zlib cannot start");
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  std::string copy(bytes);  // zlib's input pointer is not const
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) throw RuntimeFailure("gzip: zlib failed");
  return out;
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string readable_numbers(std::string_view text) {
  static constexpr const char* kRaised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const auto digit = [&](std::size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  const auto word = [](char c) { return is_name(c) || c == '.' || c == '_'; };
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with("= inf") && !(i + 5 < text.size() && is_name(text[i + 5]))) {
      out += "= ∞";
      i += 5;
      continue;
    }
    if (text[i] == '-' && digit(i + 1) && (i == 0 || std::strchr(" ([", text[i - 1]) != nullptr)) {
      out += "−";
      ++i;
      continue;
    }
    std::size_t end = i;
    const bool starts = digit(i) && (i == 0 || !word(text[i - 1]));
    while (starts && (digit(end) || (text[end] == '.' && digit(end + 1)))) ++end;
    std::size_t power = end + 1;
    const bool sign = power < text.size() && (text[power] == '+' || text[power] == '-');
    std::size_t last = power + (sign ? 1 : 0);
    while (digit(last)) ++last;
    const bool whole = last >= text.size() || !is_name(text[last]);
    if (!starts || end >= text.size() || text[end] != 'e' || !digit(last - 1) || last == power ||
        !whole) {
      out += text[i++];
      while (starts && i < end) out += text[i++];
      continue;
    }
    const std::string_view mantissa = text.substr(i, end - i);
    if (mantissa != "1") out.append(mantissa).append("×");
    out += text[power] == '-' ? "10⁻" : "10";
    std::size_t at = power + (sign ? 1 : 0);
    while (at + 1 < last && text[at] == '0') ++at;
    for (; at < last; ++at) out += kRaised[text[at] - '0'];
    i = last;
  }
  return out;
}

namespace {

// x^{2} and x_{2} as raised and lowered text.
std::string with_scripts(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto open = std::min(text.find("^{"), text.find("_{"));
    const auto close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) return out.append(escape_html(readable_numbers(text)));
    const char* tag = text[open] == '^' ? "sup" : "sub";
    out.append(escape_html(readable_numbers(text.substr(0, open))));
    out.append("<").append(tag).append(">");
    out.append(escape_html(text.substr(open + 2, close - open - 2)));
    out.append("</").append(tag).append(">");
    text.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace

std::string prose_inline(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto open = text.find('`');
    const auto close = open == std::string_view::npos ? open : text.find('`', open + 1);
    if (close == std::string_view::npos) return out.append(with_scripts(text));
    out.append(with_scripts(text.substr(0, open)));
    out.append("<code>").append(escape_html(text.substr(open + 1, close - open - 1)));
    out.append("</code>");
    text.remove_prefix(close + 1);
  }
  return out;
}

std::string prose(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = text.find("\n\n");
    const auto paragraph = text.substr(0, end);
    if (!paragraph.empty()) out.append("<p>").append(prose_inline(paragraph)).append("</p>\n");
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 2);
  }
  return out;
}

std::string script_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string math_html(std::string_view mathml) {
  if (!harmless_math(mathml)) return "<code>" + escape_html(mathml) + "</code>";
  return std::string(mathml);
}

std::string cell_text(const Value& value) {
  struct Writer {
    std::string operator()(std::monostate) const { return "–"; }
    std::string operator()(bool x) const { return x ? "yes" : "no"; }
    std::string operator()(std::int64_t x) const { return std::to_string(x); }
    std::string operator()(double x) const { return std::isfinite(x) ? brief(x, 6) : "–"; }
    std::string operator()(const std::string& x) const { return x; }
    std::string operator()(Length x) const { return x.text(); }
    std::string operator()(const NumberArray&) const { return "–"; }  // a cell is one value
    std::string operator()(const RecordTable&) const { return "–"; }
  };
  return std::visit(Writer{}, value);
}

std::string packed(std::string_view bytes) { return base64(gzip(bytes)); }

}  // namespace esscher
