#include "bindings/log/events.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "bindings/log/json.hpp"

namespace armlet {

namespace {

constexpr std::int64_t last_moment = 253'402'300'800'000'000 - 1;  // the last microsecond of the year 9999
constexpr double even = 1e-9;  // by which the sum of probabilities may differ from 1

}  // namespace

// One line, from its beginning on. Every step says whether the line goes on as Armlet would have written it.
class Scanner {
  public:
    explicit Scanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

    bool skip(std::string_view text) {
        if (static_cast<std::size_t>(end_ - at_) < text.size() || std::memcmp(at_, text.data(), text.size()) != 0)
            return false;
        at_ += text.size();
        return true;
    }
    bool is_done() const { return at_ == end_; }

    // A whole number of at most `digits` digits, without zeros before it.
    bool whole(std::int64_t& out, bool may_be_negative = false) {
        const char* begin = at_;
        if (may_be_negative && at_ != end_ && *at_ == '-') ++at_;
        const char* first = at_;
        while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
        if (at_ == first || (*first == '0' && (at_ - first > 1 || first != begin))) return false;
        const auto read = std::from_chars(begin, at_, out);
        return read.ec == std::errc() && read.ptr == at_;
    }
    // A float, by the fewest digits that read back as it.
    bool number(double& out) {
        const auto read = std::from_chars(at_, end_, out);
        if (read.ec != std::errc()) return false;
        char digits[40];
        const std::string_view again(digits, write_number(digits, out));
        if (again != std::string_view(at_, static_cast<std::size_t>(read.ptr - at_))) return false;
        at_ = read.ptr;
        return true;
    }
    bool value(double& out) { return number(out) && std::fabs(out) <= largest_value; }
    bool share(double& out) { return number(out) && out >= 0.0 && out <= 1.0; }
    bool share_or_null(double& out) {
        out = NAN;
        return skip("null") || share(out);
    }
    bool truth(std::int8_t& out) { return skip("true") ? (out = 1, true) : skip("false") ? (out = 0, true) : false; }
    bool truth_or_null(std::int8_t& out) {
        out = -1;
        return skip("null") || truth(out);
    }
    // The JSON of a text without escapes, or of a whole number.
    bool label(std::string_view& out) {
        const char* begin = at_;
        if (at_ != end_ && *at_ == '"') {
            for (++at_; at_ != end_ && *at_ != '"'; ++at_)
                if (static_cast<unsigned char>(*at_) < 0x20 || *at_ == '\\') return false;
            if (at_ == end_) return false;
            ++at_;
        } else if (std::int64_t unused; !whole(unused, true) || at_ - begin > 18) {
            return false;
        }
        out = {begin, static_cast<std::size_t>(at_ - begin)};
        return true;
    }
    bool text(std::string_view& out) { return at_ != end_ && *at_ == '"' && label(out); }
    bool hash(std::string_view& out) {
        if (!text(out) || out.size() != 66) return false;
        return std::all_of(out.begin() + 1, out.end() - 1,
                           [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
    }
    bool id(std::int64_t& t, std::uint64_t& mark) {
        if (!skip("\"") || !whole(t) || !skip("-") || end_ - at_ < 17 || at_[16] != '"') return false;
        for (int i = 0; i < 16; ++i)
            if (!((at_[i] >= '0' && at_[i] <= '9') || (at_[i] >= 'a' && at_[i] <= 'f'))) return false;
        std::from_chars(at_, at_ + 16, mark, 16);
        at_ += 17;
        return true;
    }
    // A list of which `item` reads each value.
    template <typename Item>
    bool list(Item&& item) {
        if (!skip("[")) return false;
        if (skip("]")) return true;
        do {
            if (!item()) return false;
        } while (skip(","));
        return skip("]");
    }

  private:
    const char *at_, *end_;
};

namespace {

bool is_utf8(std::string_view text) {
    if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return true;
    const nb::object read = nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
    PyErr_Clear();
    return read.is_valid();
}

template <typename Out, typename T>
nb::object array(std::vector<T>& values) {
    const std::size_t n = values.size();
    return nb::cast(to_numpy<Out>(std::move(values), {n}));
}

template <typename T>
nb::object array(std::vector<T>& values) {
    return array<T, T>(values);
}

nb::object matrix(std::vector<double>& values, std::size_t rows, std::int64_t width) {
    return nb::cast(
        to_numpy<double>(std::move(values), {rows, static_cast<std::size_t>(std::max<std::int64_t>(width, 0))}));
}

}  // namespace

std::optional<std::int32_t> Dictionary::place(std::string_view json) {
    if (const auto known = places_.find(json); known != places_.end()) return known->second;
    if (!is_utf8(json)) return std::nullopt;
    const auto place = static_cast<std::int32_t>(values_.size());
    places_.emplace(json, place);
    values_.emplace_back(json);
    return place;
}

nb::list Dictionary::values() const {
    nb::list out;
    for (const std::string& json : values_) {
        nb::object value =
            json[0] == '"'
                ? nb::steal(PyUnicode_DecodeUTF8(json.data() + 1, static_cast<Py_ssize_t>(json.size() - 2), nullptr))
                : nb::steal(PyLong_FromString(json.c_str(), nullptr, 10));
        if (!value.is_valid()) throw nb::python_error();
        out.append(value);
    }
    return out;
}

// ---- lines

bool EventReader::read_numbers(Scanner& in, std::vector<double>& out, std::int64_t width, std::int8_t& has) {
    out.clear();
    if (in.skip("null")) return out.resize(static_cast<std::size_t>(width)), true;
    has = 1;
    return in.list([&] { return in.value(out.emplace_back()); }) && static_cast<std::int64_t>(out.size()) == width;
}

bool EventReader::read_decision(Scanner& in) {
    const bool is_of_actions = action_dim >= 0;
    std::string_view json;
    const auto place = [&](Dictionary& all, std::int32_t& out) {
        const auto found = all.place(json);
        return found && (out = *found, true);
    };
    const auto label = [&](std::int32_t& out) { return in.label(json) && place(columns_.labels, out); };
    const auto text = [&](std::int32_t& out) { return in.text(json) && place(columns_.texts, out); };
    const auto labels = [&] { return in.list([&] { return label(eligible_.emplace_back()); }) && !eligible_.empty(); };
    const auto pair = [&] {
        return in.skip("[") && label(support_.emplace_back()) && in.skip(",") && in.share(chances_.emplace_back()) &&
               in.skip("]");
    };
    const auto pairs = [&] { return in.list(pair) && !support_.empty(); };
    const auto shares = [&] {
        return in.list([&] { return in.share(probabilities_.emplace_back()); }) && !probabilities_.empty();
    };
    eligible_.clear(), support_.clear(), chances_.clear(), probabilities_.clear();

    Decision d;
    std::int64_t step;
    if (!in.skip(",\"id\":") || !in.id(d.t, d.mark)) return false;
    if (!in.skip(",\"t\":") || !in.whole(step) || step != d.t) return false;
    if (!in.skip(",\"x\":") || !read_numbers(in, x_, dim, d.has_x)) return false;
    if (is_of_actions) {
        if (!in.skip(",\"z\":") || !read_numbers(in, z_, action_dim, d.has_z)) return false;
        if (!in.skip(",\"actions\":") || !in.hash(json) || !place(columns_.texts, d.actions)) return false;
        if (!in.skip(",\"n_actions\":") || !in.whole(d.n_actions)) return false;
    }
    if (!in.skip(",\"eligible\":") || !(in.skip("null") || labels())) return false;
    if (!in.skip(",\"arm\":") || !label(d.arm)) return false;
    if (!in.skip(",\"propensity\":") || !in.share(d.propensity)) return false;
    if (is_of_actions && (!in.skip(",\"support\":") || !(in.skip("null") || pairs()))) return false;
    if (!in.skip(",\"explored\":") || !in.truth_or_null(d.explored)) return false;
    if (!in.skip(",\"optimistic\":") || !in.truth_or_null(d.optimistic)) return false;
    if (!in.skip(",\"exploration_rate\":") || !in.share_or_null(d.exploration_rate)) return false;
    if (!in.skip(",\"exploration_propensity\":") || !in.share_or_null(d.exploration_propensity)) return false;
    if (!in.skip(",\"min_exploration_probability\":") || !in.share_or_null(d.min_exploration_probability)) return false;
    if (!in.skip(",\"greedy\":") || !in.truth_or_null(d.greedy)) return false;
    if (!in.skip(",\"design\":") || !(in.skip("null") || text(d.design))) return false;
    if (!is_of_actions && in.skip(",\"probabilities\":") && !shares()) return false;
    if (!in.skip(",\"tag\":") || !in.whole(d.tag, true)) return false;
    if (!is_of_actions && in.skip(",\"unit\":") && !text(d.unit)) return false;
    if (!is_of_actions && in.skip(",\"epoch\":") && !in.whole(d.epoch)) return false;
    if (in.skip(",\"event\":") && !text(d.event)) return false;
    if (!in.is_done() || (is_of_actions && !is_possible(d))) return false;
    add(d);
    return true;
}

// Whether that action can have been chosen with that probability.
bool EventReader::is_possible(const Decision& d) const {
    auto eligible = eligible_;
    std::sort(eligible.begin(), eligible.end());
    const auto may_play = [&](std::int32_t arm) {
        return eligible.empty() || std::binary_search(eligible.begin(), eligible.end(), arm);
    };
    if (!may_play(d.arm)) return false;
    if (support_.empty()) {
        const auto n = std::unique(eligible.begin(), eligible.end()) - eligible.begin();
        return std::fabs(static_cast<double>(eligible.empty() ? d.n_actions : n) * d.propensity - 1.0) <= even;
    }
    double sum = 0.0;
    bool has_arm = false;
    for (std::size_t i = 0; i < support_.size(); ++i) {
        if (!(chances_[i] > 0.0) || !may_play(support_[i])) return false;
        if (support_[i] == d.arm) has_arm = chances_[i] == d.propensity;
        sum += chances_[i];
    }
    auto sorted = support_;
    std::sort(sorted.begin(), sorted.end());
    const bool has_twins = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    return has_arm && !has_twins && std::fabs(sum - 1.0) <= even;
}

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from, std::vector<std::int64_t>& ends) {
    to.insert(to.end(), from.begin(), from.end());
    ends.push_back(static_cast<std::int64_t>(to.size()));
}

void EventReader::add(const Decision& d) {
    EventColumns& c = columns_;
    c.t.push_back(d.t), c.mark.push_back(d.mark), c.tag.push_back(d.tag), c.epoch.push_back(d.epoch);
    c.x.insert(c.x.end(), x_.begin(), x_.end()), c.has_x.push_back(d.has_x);
    if (action_dim >= 0) {
        c.z.insert(c.z.end(), z_.begin(), z_.end()), c.has_z.push_back(d.has_z);
        c.actions.push_back(d.actions), c.n_actions.push_back(d.n_actions);
        c.support_chances.insert(c.support_chances.end(), chances_.begin(), chances_.end());
        append(c.support, support_, c.support_ends);
    }
    append(c.eligible, eligible_, c.eligible_ends);
    append(c.probabilities, probabilities_, c.probabilities_ends);
    c.arm.push_back(d.arm), c.propensity.push_back(d.propensity);
    c.explored.push_back(d.explored), c.optimistic.push_back(d.optimistic), c.greedy.push_back(d.greedy);
    c.exploration_rate.push_back(d.exploration_rate), c.exploration_propensity.push_back(d.exploration_propensity);
    c.min_exploration_probability.push_back(d.min_exploration_probability);
    c.design.push_back(d.design), c.unit.push_back(d.unit), c.event.push_back(d.event);
}

bool EventReader::read_reward(Scanner& in) {
    std::int64_t t;
    std::uint64_t mark;
    double reward, weight;
    if (!in.skip(",\"id\":") || !in.id(t, mark)) return false;
    if (!in.skip(",\"reward\":") || !in.value(reward)) return false;
    if (!in.skip(",\"weight\":") || !in.value(weight) || !(weight > 0.0) || !in.is_done()) return false;
    columns_.learn_t.push_back(t), columns_.learn_mark.push_back(mark);
    columns_.reward.push_back(reward), columns_.weight.push_back(weight);
    return true;
}

// A line without its end.
bool EventReader::read_line(std::string_view line) {
    constexpr std::size_t tail = 18;  // ,"crc":"01234567"}
    if (line.size() < tail) return false;
    const std::string_view body = line.substr(0, line.size() - tail);
    const std::uint32_t own = crc32(body, crc);
    char written[tail + 1];
    std::snprintf(written, sizeof written, ",\"crc\":\"%08x\"}", static_cast<unsigned>(own));
    if (line.substr(body.size()) != std::string_view(written, tail)) return false;
    Scanner in(body);
    std::int64_t number, at;
    if (!in.skip("{\"seq\":") || !in.whole(number) || number != seq || !in.skip(",\"kind\":\"")) return false;
    const auto kind = in.skip("decide\",\"at\":")  ? EventKind::decide
                      : in.skip("learn\",\"at\":") ? EventKind::learn
                                                   : EventKind::other;
    if (kind == EventKind::other || !in.whole(at) || at > last_moment) return false;
    if (!(kind == EventKind::decide ? read_decision(in) : read_reward(in))) return false;
    note(kind, at, line.size() + 1, own);
    return true;
}

void EventReader::note(EventKind kind, std::int64_t at, std::size_t size, std::uint32_t own) {
    columns_.kind.push_back(static_cast<std::int8_t>(kind)), columns_.at.push_back(at), columns_.crc.push_back(own);
    columns_.ends.push_back(columns_.ends.back() + static_cast<std::int64_t>(size));
    crc = own, ++seq;
}

std::size_t EventReader::read(nb::bytes data, std::size_t begin, std::size_t most) {
    const std::string_view all(data.c_str(), data.size());
    while (begin < all.size() && size() < most && dim >= 0) {
        const std::size_t end = all.find('\n', begin);
        if (end == std::string_view::npos || !read_line(all.substr(begin, end - begin))) break;
        begin = end + 1;
    }
    return begin;
}

nb::dict EventReader::take() {
    EventColumns c = std::move(columns_);
    columns_ = {};
    const std::size_t m = c.t.size();
    nb::dict out;
    out["kind"] = array(c.kind), out["at"] = array(c.at), out["crc"] = array(c.crc), out["ends"] = array(c.ends);
    out["t"] = array(c.t), out["mark"] = array(c.mark), out["tag"] = array(c.tag), out["epoch"] = array(c.epoch);
    out["X"] = matrix(c.x, m, dim), out["has_x"] = array<bool>(c.has_x);
    out["arm"] = array(c.arm), out["propensity"] = array(c.propensity);
    out["explored"] = array(c.explored), out["optimistic"] = array(c.optimistic), out["greedy"] = array(c.greedy);
    out["exploration_rate"] = array(c.exploration_rate);
    out["exploration_propensity"] = array(c.exploration_propensity);
    out["min_exploration_probability"] = array(c.min_exploration_probability);
    out["design"] = array(c.design), out["unit"] = array(c.unit), out["event"] = array(c.event);
    out["eligible"] = array(c.eligible), out["eligible_ends"] = array(c.eligible_ends);
    out["probabilities"] = array(c.probabilities), out["probabilities_ends"] = array(c.probabilities_ends);
    out["Z"] = matrix(c.z, c.has_z.size(), action_dim), out["has_z"] = array<bool>(c.has_z);
    out["actions"] = array(c.actions), out["n_actions"] = array(c.n_actions);
    out["support"] = array(c.support), out["support_ends"] = array(c.support_ends);
    out["support_chances"] = array(c.support_chances);
    out["learn_t"] = array(c.learn_t), out["learn_mark"] = array(c.learn_mark);
    out["reward"] = array(c.reward), out["weight"] = array(c.weight);
    out["labels"] = c.labels.values(), out["texts"] = c.texts.values();
    return out;
}

void bind_events(nb::module_& m) {
    nb::class_<EventReader>(m, "EventReader", nb::is_final(), "Reads lines of a log into columns.")
        .def(nb::init<>())
        .def("__len__", &EventReader::size)
        .def_rw("seq", &EventReader::seq, "The number of the next event.")
        .def_rw("crc", &EventReader::crc, "The check value of the last line.")
        .def_rw("dim", &EventReader::dim, "Values of a context; -1: no line is read.")
        .def_rw("action_dim", &EventReader::action_dim, "Values of an action; -1 in a log of arms.")
        .def("read", &EventReader::read, nb::arg("data"), nb::arg("begin"), nb::arg("most"),
             "Takes lines from `begin` on until one is for another reader, not at its end, or there are `most` events; "
             "gives where that is.")
        .def(
            "note",
            [](EventReader& self, std::int64_t at, std::size_t size, std::uint32_t crc) {
                self.note(EventKind::other, at, size, crc);
            },
            nb::arg("at"), nb::arg("size"), nb::arg("crc"), "Has an event that another reader has read.")
        .def("take", &EventReader::take, nb::sig("def take(self) -> dict[str, Any]"),
             "The columns of the events since the last call.");
}

}  // namespace armlet
