// Events of columns as the lines that they were made of: those of a compacted log.
#include <charconv>

#include "bindings/binding.hpp"
#include "bindings/log/events.hpp"
#include "bindings/log/json.hpp"

namespace armlet {

namespace {

// A column by its name, which the dict of columns keeps.
template <typename T>
struct Values {
    Values(const nb::dict& columns, const char* name) : array(nb::cast<decltype(array)>(columns[name])) {}
    T operator[](std::size_t i) const { return array.data()[i]; }
    nb::ndarray<const T, nb::c_contig, nb::device::cpu> array;
};

// Texts, one after the other.
struct Texts {
    Texts(const nb::dict& columns, const char* data, const char* ends) : data(columns, data), ends(columns, ends) {}
    std::string_view operator[](std::size_t i) const {
        return {reinterpret_cast<const char*>(data.array.data()) + ends[i],
                static_cast<std::size_t>(ends[i + 1] - ends[i])};
    }
    Values<std::uint8_t> data;
    Values<std::int64_t> ends;
};

// The JSON of the values of a dictionary.
std::vector<std::string> json_of(const nb::dict& columns, const char* name) {
    std::vector<std::string> out;
    for (nb::handle each : nb::cast<nb::list>(columns[name])) {
        const auto json = nb::cast<nb::bytes>(each);
        out.emplace_back(json.c_str(), json.size());
    }
    return out;
}

class Out {
  public:
    explicit Out(std::string& text) : text_(text) {}
    Out& operator<<(std::string_view some) { return text_ += some, *this; }
    Out& operator<<(std::int64_t value) {
        char digits[24];
        text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
        return *this;
    }
    Out& operator<<(double value) {
        if (std::isnan(value)) return *this << "null";
        char digits[most_digits];
        text_.append(digits, write_number(digits, value));
        return *this;
    }
    Out& truth(std::int8_t value) { return *this << (value < 0 ? "null" : value ? "true" : "false"); }
    void end(std::uint32_t crc) {
        char tail[20];
        std::snprintf(tail, sizeof tail, ",\"crc\":\"%08x\"}\n", static_cast<unsigned>(crc));
        text_ += tail;
    }
    template <typename Item>
    Out& list(std::int64_t begin, std::int64_t end, Item&& item) {
        text_ += '[';
        for (auto i = begin; i < end; ++i) {
            if (i > begin) text_ += ',';
            item(static_cast<std::size_t>(i));
        }
        text_ += ']';
        return *this;
    }

  private:
    std::string& text_;
};

class DecisionWriter {
  public:
    explicit DecisionWriter(const nb::dict& columns, bool is_of_actions)
        : columns_(columns), is_of_actions_(is_of_actions) {}

    void write(Out& out, std::size_t i) const {
        out << "{\"seq\":" << seq_[i] << ",\"kind\":\"decide\",\"at\":" << at_[i] << ",\"id\":\"" << id_[i];
        out << "\",\"t\":" << t_[i] << ",\"x\":";
        row(out, X_, has_x_[i], i);
        if (is_of_actions_) {
            out << ",\"z\":";
            row(out, Z_, has_z_[i], i);
            out << ",\"actions\":" << text(actions_[i]) << ",\"n_actions\":" << n_actions_[i];
        }
        out << ",\"eligible\":";
        labels(out, i);
        out << ",\"arm\":" << label(arm_[i]) << ",\"propensity\":" << propensity_[i];
        if (is_of_actions_) support(out << ",\"support\":", i);
        (out << ",\"explored\":").truth(explored_[i]);
        (out << ",\"optimistic\":").truth(optimistic_[i]);
        out << ",\"exploration_rate\":" << rate_[i] << ",\"exploration_propensity\":" << given_[i];
        out << ",\"min_exploration_probability\":" << least_[i] << ",\"greedy\":";
        out.truth(greedy_[i]);
        out << ",\"design\":" << text(design_[i]);
        if (shares_ends_[i] < shares_ends_[i + 1])
            (out << ",\"probabilities\":").list(shares_ends_[i], shares_ends_[i + 1], [&](std::size_t j) {
                out << shares_[j];
            });
        out << ",\"tag\":" << tag_[i];
        if (unit_[i] >= 0) out << ",\"unit\":" << text(unit_[i]);
        if (epoch_[i] >= 0) out << ",\"epoch\":" << epoch_[i];
        if (event_[i] >= 0) out << ",\"event\":" << text(event_[i]);
        out.end(crc_[i]);
    }

  private:
    static void row(Out& out, const Values<double>& values, bool has, std::size_t i) {
        const auto width = static_cast<std::int64_t>(values.array.shape(1)),
                   begin = static_cast<std::int64_t>(i) * width;
        has ? void(out.list(begin, begin + width, [&](std::size_t j) { out << values[j]; })) : void(out << "null");
    }
    void labels(Out& out, std::size_t i) const {
        if (eligible_ends_[i] == eligible_ends_[i + 1]) return void(out << "null");
        out.list(eligible_ends_[i], eligible_ends_[i + 1], [&](std::size_t j) { out << label(eligible_[j]); });
    }
    void support(Out& out, std::size_t i) const {
        if (support_ends_[i] == support_ends_[i + 1]) return void(out << "null");
        out.list(support_ends_[i], support_ends_[i + 1],
                 [&](std::size_t j) { out << "[" << label(support_[j]) << "," << chances_[j] << "]"; });
    }
    std::string_view label(std::int32_t place) const { return labels_.at(static_cast<std::size_t>(place)); }
    std::string_view text(std::int32_t place) const {
        return place < 0 ? std::string_view("null") : texts_.at(static_cast<std::size_t>(place));
    }

    const nb::dict& columns_;
    bool is_of_actions_;
    Values<std::int64_t> seq_{columns_, "seq"}, at_{columns_, "at"}, t_{columns_, "t"}, tag_{columns_, "tag"},
        epoch_{columns_, "epoch"}, eligible_ends_{columns_, "eligible_ends"},
        shares_ends_{columns_, "probabilities_ends"}, n_actions_{columns_, "n_actions"},
        support_ends_{columns_, "support_ends"};
    Values<std::uint32_t> crc_{columns_, "crc"};
    Values<double> X_{columns_, "X"}, Z_{columns_, "Z"}, propensity_{columns_, "propensity"},
        rate_{columns_, "exploration_rate"}, given_{columns_, "exploration_propensity"},
        least_{columns_, "min_exploration_probability"}, shares_{columns_, "probabilities"},
        chances_{columns_, "support_chances"};
    Values<bool> has_x_{columns_, "has_x"}, has_z_{columns_, "has_z"};
    Values<std::int8_t> explored_{columns_, "explored"}, optimistic_{columns_, "optimistic"},
        greedy_{columns_, "greedy"};
    Values<std::int32_t> arm_{columns_, "arm"}, design_{columns_, "design"}, unit_{columns_, "unit"},
        event_{columns_, "event"}, eligible_{columns_, "eligible"}, actions_{columns_, "actions"},
        support_{columns_, "support"};
    Texts id_{columns_, "id", "id_ends"};
    std::vector<std::string> labels_{json_of(columns_, "labels")}, texts_{json_of(columns_, "texts")};
};

nb::bytes write_events(nb::handle kinds, const nb::dict& decisions, const nb::dict& rewards, nb::list others,
                       bool is_of_actions) {
    const auto kind = nb::cast<nb::ndarray<const std::int8_t, nb::c_contig, nb::device::cpu>>(kinds);
    const DecisionWriter decision(decisions, is_of_actions);
    const Values<std::int64_t> seq(rewards, "seq"), at(rewards, "at");
    const Values<std::uint32_t> crc(rewards, "crc");
    const Values<double> reward(rewards, "reward"), weight(rewards, "weight");
    const Texts id(rewards, "id", "id_ends");
    std::string text;
    text.reserve(kind.size() * 400);
    Out out(text);
    std::size_t n_decisions = 0, n_rewards = 0, n_others = 0;
    for (std::size_t place = 0; place < kind.size(); ++place) {
        if (kind.data()[place] == static_cast<std::int8_t>(EventKind::decide)) {
            decision.write(out, n_decisions++);
        } else if (kind.data()[place] == static_cast<std::int8_t>(EventKind::learn)) {
            const std::size_t i = n_rewards++;
            out << "{\"seq\":" << seq[i] << ",\"kind\":\"learn\",\"at\":" << at[i] << ",\"id\":\"" << id[i];
            out << "\",\"reward\":" << reward[i] << ",\"weight\":" << weight[i];
            out.end(crc[i]);
        } else {
            const auto line = nb::cast<nb::bytes>(others[n_others++]);
            out << std::string_view(line.c_str(), line.size());
        }
    }
    return nb::bytes(text.data(), text.size());
}

}  // namespace

void bind_writing(nb::module_& m) {
    m.def("write_events", &write_events, nb::arg("kinds"), nb::arg("decisions"), nb::arg("rewards"), nb::arg("others"),
          nb::arg("is_of_actions"),
          nb::sig("def write_events(kinds: NDArray[numpy.int8], decisions: dict[str, Any], rewards: dict[str, Any], "
                  "others: list[bytes], is_of_actions: bool) -> bytes"),
          "The lines of events that columns hold, in the order of their kinds; those of others are as they are.");
}

}  // namespace armlet
