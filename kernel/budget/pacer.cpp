#include "budget/pacer.hpp"

#include <algorithm>
#include <cmath>

namespace armlet {

namespace {

// Chosen on seeds 0 to 9 of the environments of benchmarks/budgets.py; reference/pacer.py says what each is for.
constexpr double first_step = 0.5, step = 0.01, late_step = 0.6, largest_step = 0.5;
constexpr double memory = 0.002, lead = 50.0, most_ahead = 10.0, start = 0.1, least = 1e-4, settled = 100.0;
constexpr double rounding = 1e-9;

}  // namespace

double Pacer::deviation() const { return squares_ > 0.0 ? std::sqrt(squares_ / rows_) : 1.0; }

double Pacer::price() const {
    if (counted_ == 0.0) return 0.0;
    return std::max(price_ - 2.0 * least * unit(), 0.0);
}

void Pacer::begin() {
    if (plan_.repeats && decisions_ >= plan_.length) decisions_ = 0.0, spent_ = 0.0;
    decisions_ += 1.0;
    await();
}

void Pacer::count(double cost) {
    waiting_ = std::max(waiting_ - 1.0, 0.0), spent_ += cost, counted_ += 1.0;
    const double gain = std::max(memory, 1.0 / counted_);
    mean_ += gain * (cost - mean_);
    if (counted_ == 1.0) price_ = start * unit();
    const double ahead = plan_.length - decisions_;
    if (!plan_.repeats && ahead < 1.0) return;  // the horizon is over: the price stays
    const double left = plan_.total - spent_ - waiting_ * mean_;
    const double may = (left + lead * rate()) / (std::max(ahead, 0.0) + lead);
    move((cost - std::min(std::max(may, 0.0), most_ahead * rate())) / rate(), gain);
}

void Pacer::move(double excess, double gain) {
    noise_ += gain * (excess * excess - noise_);
    const double size = std::min(std::max(step, first_step / std::sqrt(counted_)), late_step / (1.0 + waiting_));
    const double by = std::min(std::max(size * excess / std::max(std::sqrt(noise_), 1.0), -largest_step), largest_step);
    const double moved = by >= 0.0 ? price_ * (1.0 + by) : price_ / (1.0 - by);
    price_ = std::min(std::max(moved, least * unit()), unit() / least);
}

void Pacer::correct(double before, double after) { spent_ += after - before; }

void Pacer::expire() { waiting_ = std::max(waiting_ - 1.0, 0.0); }

void Pacer::see(double reward) {
    const double before = deviation();
    const bool follows = rows_ < settled || !(squares_ > 0.0);
    rows_ += 1.0;
    const double off = reward - reward_;
    reward_ += off / rows_;
    squares_ += off * (reward - reward_);
    if (follows) price_ *= deviation() / before;
}

bool Pacer::affords(double cost, double bound) const {
    const double spent = plan_.repeats && decisions_ >= plan_.length ? 0.0 : spent_;
    return spent + waiting_ * bound + cost <= plan_.total * (1.0 + rounding);
}

void Pacer::merge(const Pacer& other) {
    const double counted = counted_ + other.counted_, rows = rows_ + other.rows_;
    if (counted > 0.0) {
        const double share = other.counted_ / counted;
        price_ += share * (other.price_ - price_), mean_ += share * (other.mean_ - mean_);
        noise_ += share * (other.noise_ - noise_);
    }
    if (rows > 0.0) {
        const double off = other.reward_ - reward_, share = other.rows_ / rows;
        squares_ += other.squares_ + off * off * (rows_ * share);
        reward_ += share * off;
    }
    spent_ += other.spent_, decisions_ += other.decisions_, waiting_ += other.waiting_;
    counted_ = counted, rows_ = rows;
}

void Pacer::subtract(const Pacer& earlier) {
    const double rows = std::max(rows_ - earlier.rows_, 0.0);
    squares_ *= rows_ > 0.0 ? rows / rows_ : 0.0;
    spent_ -= earlier.spent_, decisions_ = std::max(decisions_ - earlier.decisions_, 0.0);
    waiting_ -= earlier.waiting_, counted_ = std::max(counted_ - earlier.counted_, 0.0), rows_ = rows;
}

std::vector<double> Pacer::values() const {
    return {price_, spent_, decisions_, waiting_, counted_, mean_, noise_, rows_, reward_, squares_};
}

void Pacer::restore(std::span<const double> v) {
    price_ = v[0], spent_ = v[1], decisions_ = v[2], waiting_ = v[3], counted_ = v[4], mean_ = v[5], noise_ = v[6];
    rows_ = v[7], reward_ = v[8], squares_ = v[9];
}

}  // namespace armlet
