#include "esscher/io/csv.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr std::string_view kSpace = " \t\r";

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string_view unquote(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// '\0' means that fields are separated by one or more spaces.
char separator_of(std::string_view line) {
  for (const char c : {';', ',', '\t'}) {
    if (line.find(c) != std::string_view::npos) return c;
  }
  return '\0';
}

void split(std::string_view line, char separator, std::vector<std::string_view>& fields) {
  fields.clear();
  while (true) {
    if (separator == '\0') line = trim(line);
    const std::size_t end = separator == '\0' ? line.find_first_of(kSpace) : line.find(separator);
    fields.push_back(unquote(trim(line.substr(0, end))));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

// NaN and infinities are numbers here, so that a row of them is not taken for a header.
std::optional<double> to_number(std::string_view field) {
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  double x = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), x);
  const bool whole = end == field.data() + field.size();
  if (!whole || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::nan("");
  return x;
}

class Reader {
 public:
  explicit Reader(std::string_view where) : where_(where) {}

  void line(std::size_t number, std::string_view text) {
    const std::string_view content = trim(text);
    if (content.empty() || content.front() == '#') return;
    if (!separator_) separator_ = separator_of(content);
    // A separator at the end belongs to the row, so only spaces are trimmed.
    split(*separator_ == '\t' ? strip_end(text) : content, *separator_, fields_);
    const bool first = !seen_;
    seen_ = true;
    if (first) {
      cols_ = fields_.size();
      if (is_header()) return;
    }
    if (fields_.size() != cols_) {
      fail(number, "has " + std::to_string(fields_.size()) + " fields, expected " +
                       std::to_string(cols_) + " as in the first row");
    }
    for (std::size_t j = 0; j < cols_; ++j) values_.push_back(value(number, j));
  }

  Matrix matrix() const {
    if (values_.empty()) throw FileError(where_ + ": has no numbers");
    const auto cols = static_cast<Index>(cols_);
    return Eigen::Map<const Matrix>(values_.data(), static_cast<Index>(values_.size()) / cols,
                                    cols);
  }

 private:
  [[noreturn]] void fail(std::size_t number, const std::string& what) const {
    throw FileError(where_ + ":" + std::to_string(number) + ": " + what);
  }

  static std::string_view strip_end(std::string_view text) {
    return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
  }

  bool is_header() const {
    for (const std::string_view field : fields_) {
      if (to_number(field)) return false;
    }
    return true;
  }

  double value(std::size_t number, std::size_t column) const {
    const std::string_view field = fields_[column];
    const std::optional<double> x = to_number(field);
    if (x && std::isfinite(*x)) return *x;
    const std::string shown(field.substr(0, 40));
    fail(number, "column " + std::to_string(column + 1) + " is \"" + shown +
                     "\", expected a finite number");
  }

  std::string where_;
  std::optional<char> separator_;
  bool seen_ = false;
  std::size_t cols_ = 0;
  std::vector<std::string_view> fields_;
  std::vector<double> values_;
};

}  // namespace

Matrix parse_csv(std::string_view where, Bytes bytes) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view text = as_text(bytes);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Reader reader(where);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    reader.line(number, text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return reader.matrix();
}

std::string encode_csv(const MatrixView& values) {
  std::string out;
  for (Index i = 0; i < values.rows(); ++i) {
    for (Index j = 0; j < values.cols(); ++j) {
      if (j > 0) out += ',';
      out += to_text(values(i, j));
    }
    out += '\n';
  }
  return out;
}

}  // namespace esscher
