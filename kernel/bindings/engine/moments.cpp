// When decisions are made, for a policy that forgets by time: no row may be far ahead of the latest.
//
// A row counts 2^(its half-lives) more than one of before, so one that is stamped far ahead outweighs all others, and
// takes their digits. After ten half-lives less than a thousandth is left of a row: whatever is further away is wrong,
// or follows a pause after which little is left to lose, which `set_time` tells apart. Time that passes while the
// process runs is known by a steady clock. Loops and replays tell times that were checked before.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bindings/binding.hpp"
#include "bindings/engine/engine.hpp"

namespace armlet {

namespace {

constexpr double farthest = 10.0;  // half-lives

std::string in_words(double half_lives) {
    char room[32];
    std::snprintf(room, sizeof room, "%.1f", std::abs(half_lives));
    return room;
}

}  // namespace

void Engine::tell_time(std::int64_t minutes) {
    set_time(minutes);
    told_ = static_cast<std::int32_t>(minutes);
}

void Engine::check_time(std::int64_t minutes) const {
    if (!forgets_by_time())
        fail(PyExc_ValueError, "at is given, but " + quoted(policy) +
                                   " does not forget by time; leave it out, or give it a half_life such as '7 days'");
    if (minutes <= 0 || minutes > INT32_MAX)
        fail(PyExc_ValueError, "at is " + std::to_string(minutes) + " minutes since 1970; give a time after that");
}

void Engine::set_time(std::int64_t minutes) {
    check_time(minutes);
    latest_ = {static_cast<std::int32_t>(minutes), std::chrono::steady_clock::now()};
}

void Engine::reach_time(std::int64_t minutes) {
    if (minutes > latest_time()) set_time(minutes);
}

std::int32_t Engine::check_at(std::int64_t minutes, nb::handle at) const {
    check_time(minutes);
    if (const double ahead = half_lives_ahead(minutes); std::abs(ahead) > farthest)
        fail(PyExc_ValueError, "at is " + quoted(at) + ", " + in_words(ahead) + " half-lives " +
                                   (ahead > 0.0 ? "after" : "before") +
                                   " the latest time of this bandit, and may be 10 away; give the right time, or call "
                                   "bandit.set_time(at) first if it is");
    return static_cast<std::int32_t>(minutes);
}

// In minutes since 1970; 0 if there is none.
std::int64_t Engine::latest_time() const {
    if (!latest_) return model_.sums().discount().minute(model_.sums().clock());
    const auto passed = std::chrono::steady_clock::now() - latest_->since;
    return latest_->minutes + std::chrono::duration_cast<std::chrono::minutes>(passed).count();
}

double Engine::half_lives_ahead(std::int64_t minutes) const {
    const std::int64_t latest = latest_time();
    return latest == 0 ? 0.0 : static_cast<double>(minutes - latest) / model_.sums().discount().half_life();
}

std::int32_t Engine::take_time(std::optional<std::int32_t> named) {
    if (!forgets_by_time()) return 0;
    const auto told = named ? named : std::exchange(told_, std::nullopt);
    if (!told)
        fail(PyExc_ValueError, quoted(policy) +
                                   " forgets by time, so a decision must say when it is made; give decide(x, "
                                   "at=datetime.now(UTC)), or let a loop decide, which knows");
    model_.sums().look({0, *told});
    return *told;
}

void Engine::check_moment(const Decision& d) const {
    if (const double ahead = half_lives_ahead(d.tag); ahead > farthest)
        fail(PyExc_ValueError, "decision " + d.id() + " was made " + in_words(ahead) +
                                   " half-lives after the latest time of this bandit, by its tag, " +
                                   std::to_string(d.tag) + " minutes since 1970, and may be 10 after it; leave it " +
                                   "out, or call bandit.set_time(at) first if it is right");
}

// Of rows in any order, each next to those before it in time.
void Engine::check_moments(std::vector<std::int64_t> tags) const {
    std::sort(tags.begin(), tags.end());
    const std::int64_t latest = latest_time();
    std::int64_t before = latest == 0 && !tags.empty() ? tags.front() : latest;
    for (const std::int64_t tag : tags) {
        const double ahead = static_cast<double>(tag - before) / model_.sums().discount().half_life();
        if (ahead > farthest)
            fail(PyExc_ValueError, "tag is " + std::to_string(tag) + " minutes since 1970 in a row, " +
                                       in_words(ahead) +
                                       " half-lives after the latest before it, and may be 10 after it; leave out the "
                                       "rows from there on if their time is wrong, and else those before, which would "
                                       "count less than a thousandth");
        before = std::max(before, tag);
    }
}

void Engine::check_clock(const Statistics& other) const {
    if (!forgets_by_time() || !(other.discount() == model_.sums().discount())) return;
    if (const double ahead = half_lives_ahead(other.discount().minute(other.clock())); ahead > farthest)
        fail(PyExc_ValueError, "other has learned a row that is " + in_words(ahead) +
                                   " half-lives after the latest time of this bandit, and may be 10 after it; forget "
                                   "that row there, or call bandit.set_time(at) first if its time is right");
}

}  // namespace armlet
