// SPDX-License-Identifier: MIT
// Reads the files of tests/golden/formats and tests/golden/schemes: lines "key value..." typed in by hand, then
// generated sections, each under its name in brackets. Lines that begin with # are remarks. What is missing or
// malformed throws, with the file's name in the message.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace numfmt_test {

class golden_file {
  public:
    explicit golden_file(const std::string& path) : path_(path) {
        std::ifstream in(path);
        if (!in) fail("is missing; docs/adding_a_format.md says what it holds");
        std::string section;
        for (std::string line; std::getline(in, line);) {
            if (line.empty() || line[0] == '#') continue;
            if (line[0] == '[') {
                section = line.substr(1, line.find(']') - 1);
                sections_[section];
            } else if (!section.empty()) {
                sections_[section].push_back(line);
            } else {
                const std::size_t end = line.find(' '), value = line.find_first_not_of(' ', end);
                if (value == std::string::npos) fail("has a line without a value: " + line);
                lines_[line.substr(0, end)].push_back(line.substr(value));
            }
        }
    }

    const std::string& path() const { return path_; }

    /// Throws for a key that is none of these: a misspelt line must not go unread.
    void expect_keys(std::initializer_list<const char*> keys) const {
        for (const auto& [key, values] : lines_) {
            bool known = false;
            for (const char* const k : keys) known = known || key == k;
            if (!known) fail("has an unknown line '" + key + "'");
        }
    }

    bool has(const std::string& key) const { return lines_.count(key) != 0; }
    /// All lines with this key, without it.
    std::vector<std::string> all(const std::string& key) const {
        const auto found = lines_.find(key);
        return found == lines_.end() ? std::vector<std::string>{} : found->second;
    }
    /// The only line with this key, whole or by its type.
    const std::string& text(const std::string& key) const {
        const auto found = lines_.find(key);
        if (found == lines_.end()) fail("has no line '" + key + "'");
        if (found->second.size() != 1) fail("has more than one line '" + key + "'");
        return found->second.front();
    }
    std::vector<std::string> words(const std::string& key) const { return has(key) ? split(text(key)) : split(""); }
    int integer(const std::string& key) const { return static_cast<int>(parse(key, &as_integer)); }
    std::uint32_t code(const std::string& key) const { return static_cast<std::uint32_t>(parse(key, &as_code)); }
    double number(const std::string& key) const { return parse(key, &std::strtod); }
    bool flag(const std::string& key) const { return choice(key, {"no", "yes"}) == 1; }
    /// The index of the value in a list of names.
    int choice(const std::string& key, std::initializer_list<const char*> names) const {
        int i = 0;
        for (const char* const name : names) {
            if (text(key) == name) return i;
            ++i;
        }
        fail("does not know '" + text(key) + "' as " + key);
    }

    /// The lines of a generated section; empty where there is none.
    std::vector<std::string> section(const std::string& name) const {
        const auto found = sections_.find(name);
        return found == sections_.end() ? std::vector<std::string>{} : found->second;
    }

    static std::vector<std::string> split(const std::string& line) {
        std::istringstream in(line);
        std::vector<std::string> words;
        for (std::string word; in >> word;) words.push_back(word);
        return words;
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error("golden file " + path_ + ' ' + what);
    }

  private:
    static double as_integer(const char* s, char** end) { return static_cast<double>(std::strtol(s, end, 10)); }
    static double as_code(const char* s, char** end) { return static_cast<double>(std::strtoul(s, end, 16)); }
    template <class Parse> double parse(const std::string& key, Parse* read) const {
        const std::string& value = text(key);
        char* end = nullptr;
        const double v = read(value.c_str(), &end);
        if (end == value.c_str() || *end != '\0') fail("has no number in '" + key + ' ' + value + "'");
        return v;
    }

    std::string path_;
    std::map<std::string, std::vector<std::string>> lines_, sections_;
};

#if defined(NUMFMT_TEST_DATA_DIR)
/// The file of a format or scheme; `folder` is "formats" or "schemes". Those that only tests use are in test_only.
inline golden_file read_golden_file(const std::string& folder, const std::string& name) {
    const std::string root = std::string(NUMFMT_TEST_DATA_DIR) + '/' + folder + '/';
    const std::string only = root + "test_only/" + name + ".txt";
    return golden_file(std::ifstream(only) ? only : root + name + ".txt");
}
#endif

}  // namespace numfmt_test
