// SPDX-License-Identifier: MIT
// master_weights: tables, CSV, JSON and the plot.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "../support/line_plot.hpp"
#include "../support/table.hpp"
#include "measure.hpp"

namespace master_weights {

inline std::string power_of_two(double x) {
    if (!(x > 0)) return "-";
    const double e = std::log2(x);
    return e == std::round(e) ? fmt::format("2^{:.0f}", e) : fmt::format("2^{:.1f}", e);
}
inline std::string percent(double x, int digits = 1) {
    return std::isfinite(x) ? fmt::format("{:.{}f} %", 100 * x, digits) : "-";
}

/// "12.3 +- 0.4", a loss or a percentage.
inline std::string with_deviation(const summary& x, double unit, int digits) {
    if (!std::isfinite(x.mean)) return "diverged";
    return fmt::format("{:.{}f}{} +- {:.{}f}", unit * x.mean, digits, unit == 100 ? " %" : "", unit * x.deviation,
                       digits);
}

/// The weights' bytes and those with the optimizer's state.
inline int bytes_of(const settings& s, optimizer_kind k, const arm& a) {
    return acc::bytes_per_weight(a.store) + acc::state_bytes(s.optimizer(k, a));
}

/// The largest ratio of update and weight (in the fp32 run) at which an arm kept less than half of the gain, as an
/// index into the rates; the number of rates where it always kept more.
inline std::size_t first_failure(const std::vector<rate_results>& rates, std::size_t a) {
    std::size_t i = 0;
    while (i < rates.size() && !(rates[i].by_arm[a].kept.mean < 0.5)) ++i;
    return i;
}

inline void print_updates(const settings& s, const results& r) {
    fmt::print("The same update made many times: what arrives of an eighth of the weight ({} weights)\n\n",
               example::with_commas(s.update_weights));
    const bool reference = s.stores.front() == weight_store::fp32;
    const auto shown = [&](weight_store store) { return store != weight_store::fp32_master || !reference; };
    const auto in_fp32 = [](weight_store store) { return acc::vanishing_ratio(store) == 0x1p-24; };
    std::vector<std::pair<std::string, std::string>> headers = {{"update /", "weight"}, {"updates", ""}};
    for (const weight_store store : s.stores) {
        if (!shown(store)) continue;
        headers.emplace_back(acc::name_of(store), "error");
        headers.emplace_back("", store == weight_store::bf16_stochastic ? "theory (sd)" : "theory");
        if (!in_fp32(store) || store == weight_store::bf16_stochastic) headers.emplace_back("", "share");
    }
    const bool plain = s.stores.back() == weight_store::bf16;
    if (plain) headers.emplace_back("", "still");
    example::text_table table(std::move(headers));
    for (const auto& at : r.updates) {
        std::vector<std::string> cells = {power_of_two(at[0].ratio), example::with_commas(at[0].steps)};
        for (std::size_t i = 0; i < at.size(); ++i) {
            if (!shown(s.stores[i])) continue;
            cells.push_back(at[i].rms_error == 0 ? "0" : fmt::format("{:.1e}", at[i].rms_error));
            cells.push_back(fmt::format("{:.1e}", acc::arrival_bound(s.stores[i], at[i].steps)));
            if (!in_fp32(s.stores[i]) || s.stores[i] == weight_store::bf16_stochastic)
                cells.push_back(fmt::format("{:.3f}", at[i].mean));
        }
        if (plain)
            cells.push_back(percent(static_cast<double>(at.back().still) / static_cast<double>(s.update_weights), 0));
        table.add(std::move(cells));
    }
    fmt::print("{}{}\n", table.str(),
               reference && s.stores.size() > 1 && s.stores[1] == weight_store::fp32_master
                   ? "fp32_master keeps what fp32 keeps.\n"
                   : "");
}

inline void print_training(const settings& s, const results& r) {
    const summary start = summary_of(r.start);
    for (std::size_t o = 0; o < s.optimizers.size(); ++o) {
        const optimizer_kind k = s.optimizers[o];
        const std::vector<arm> arms = s.arms_of(k);
        fmt::print("{}: {} steps from a loss of {:.4f} +- {:.4f}, {} seeds, {} weights; mean +- deviation\n\n",
                   acc::name_of(k), s.steps, start.mean, start.deviation, s.seeds, example::with_commas(r.weights));
        std::vector<std::pair<std::string, std::string>> headers = {
            {"rate", ""}, {"update /", "weight"}, {"updates", "lost"}};
        for (const arm& a : arms) headers.emplace_back(a.name(), &a == arms.data() ? "loss" : "gain kept");
        example::text_table table(std::move(headers));
        for (const rate_results& rate : r.by_optimizer[o]) {
            const trained& reference = rate.by_arm[0];
            std::vector<std::string> cells = {fmt::format("{:g}", rate.rate), power_of_two(reference.median_ratio),
                                              percent(reference.lost_share, 0)};
            cells.push_back(with_deviation(reference.loss, 1, 4));
            for (std::size_t a = 1; a < arms.size(); ++a) cells.push_back(with_deviation(rate.by_arm[a].kept, 100, 1));
            table.add(std::move(cells));
        }
        fmt::print("{}\n", table.str());

        example::text_table losses({{"store", ""},
                                    {"weight", "bytes"},
                                    {"with state", "bytes"},
                                    {"loss - fp32's", "worst rate"},
                                    {"keeps less than half", "of the gain from"},
                                    {"that is", "update / weight"}});
        for (std::size_t a = 0; a < arms.size(); ++a) {
            double worst = -std::numeric_limits<double>::infinity();
            for (const rate_results& rate : r.by_optimizer[o]) worst = std::fmax(worst, rate.by_arm[a].excess.mean);
            const std::size_t failed = first_failure(r.by_optimizer[o], a);
            const bool fails = a > 0 && failed < r.by_optimizer[o].size();
            losses.add({arms[a].name(), std::to_string(acc::bytes_per_weight(arms[a].store)),
                        std::to_string(bytes_of(s, k, arms[a])),
                        std::isfinite(worst) ? fmt::format("{:+.5f}", worst) : "diverged",
                        fails ? fmt::format("rate {:g}", r.by_optimizer[o][failed].rate) : "-",
                        fails ? power_of_two(r.by_optimizer[o][failed].by_arm[0].median_ratio) : "-"});
        }
        fmt::print("{}\n", losses.str());
    }
}

inline void print_tables(const settings& s, const results& r) {
    if (!r.updates.empty()) print_updates(s, r);
    if (!r.by_optimizer.empty()) print_training(s, r);
    if (s.stores.back() == weight_store::bf16) {
        fmt::print(
            "bf16, theory: updates below 2^-9 of the weight are lost, and those up to 2^-8 where the weight lies low "
            "in its "
            "binade.\n");
        for (std::size_t o = 0; o < r.by_optimizer.size(); ++o) {
            const auto& rates = r.by_optimizer[o];
            const auto arms = s.arms_of(s.optimizers[o]);
            std::size_t plain = 0;
            while (arms[plain].store != weight_store::bf16) ++plain;
            const std::size_t failed = first_failure(rates, plain);
            std::string text = "keeps half of fp32's gain or more at every rate";
            if (failed < rates.size())
                text = fmt::format(
                    "keeps less than half of fp32's gain from rate {:g} on, where half of the updates are "
                    "below {} of the weight",
                    rates[failed].rate, power_of_two(rates[failed].by_arm[0].median_ratio));
            fmt::print("bf16, {}: {}.\n", acc::name_of(s.optimizers[o]), text);
        }
    }
    fmt::print("seed {}. What the columns mean: --help.\n", s.seed);
}

inline nlohmann::ordered_json json_of(const settings& s, const results& r) {
    using json = nlohmann::ordered_json;
    const auto number = [](double x) { return std::isfinite(x) ? json(x) : json(); };
    const auto both = [&](const summary& x) {
        return json{{"mean", number(x.mean)}, {"deviation", number(x.deviation)}};
    };
    json out;
    out["version"] = example::version();
    out["seed"] = s.seed;
    out["stores"] = json::array();
    for (const weight_store store : s.stores)
        out["stores"].push_back({{"name", acc::name_of(store)},
                                 {"bytes_per_weight", acc::bytes_per_weight(store)},
                                 {"vanishing_ratio", acc::vanishing_ratio(store)}});
    if (!r.updates.empty()) {
        json updates = {{"weights", s.update_weights}, {"ratios", json::array()}};
        for (const auto& at : r.updates) {
            json ratio = {{"ratio", at[0].ratio}, {"steps", at[0].steps}, {"rows", json::array()}};
            for (std::size_t i = 0; i < at.size(); ++i)
                ratio["rows"].push_back({{"store", acc::name_of(s.stores[i])},
                                         {"mean", at[i].mean},
                                         {"deviation", at[i].deviation},
                                         {"rms_error", at[i].rms_error},
                                         {"worst", at[i].worst},
                                         {"theory", acc::arrival_bound(s.stores[i], at[i].steps)},
                                         {"still", at[i].still}});
            updates["ratios"].push_back(std::move(ratio));
        }
        out["updates"] = std::move(updates);
    }
    if (!r.by_optimizer.empty()) {
        json training = {{"samples", r.samples}, {"inputs", r.inputs},   {"hidden", s.hidden},
                         {"outputs", r.outputs}, {"weights", r.weights}, {"start_steps", s.start_steps},
                         {"steps", s.steps},     {"batch", s.batch},     {"seeds", s.seeds}};
        training["start"] = both(summary_of(r.start));
        training["optimizers"] = json::array();
        for (std::size_t o = 0; o < s.optimizers.size(); ++o) {
            const optimizer_kind k = s.optimizers[o];
            const std::vector<arm> arms = s.arms_of(k);
            json of = {{"name", acc::name_of(k)}, {"rates", json::array()}};
            for (const rate_results& rate : r.by_optimizer[o]) {
                json at = {{"rate", rate.rate},
                           {"ratio", rate.by_arm[0].median_ratio},
                           {"lost", rate.by_arm[0].lost_share},
                           {"rows", json::array()}};
                for (std::size_t a = 0; a < arms.size(); ++a) {
                    const trained& t = rate.by_arm[a];
                    json losses = json::array();
                    for (const double loss : t.losses) losses.push_back(number(loss));
                    at["rows"].push_back({{"store", arms[a].name()},
                                          {"bytes", acc::bytes_per_weight(arms[a].store)},
                                          {"bytes_with_state", bytes_of(s, k, arms[a])},
                                          {"loss", both(t.loss)},
                                          {"excess", both(t.excess)},
                                          {"kept", both(t.kept)},
                                          {"ratio", number(t.median_ratio)},
                                          {"lost", t.lost_share},
                                          {"losses", std::move(losses)}});
                }
                of["rates"].push_back(std::move(at));
            }
            training["optimizers"].push_back(std::move(of));
        }
        out["training"] = std::move(training);
    }
    return out;
}

inline void write_csv(const settings& s, const results& r) {
    using example::csv_number;
    std::string text = example::csv_line({"part",        "store",
                                          "ratio",       "updates",
                                          "share_mean",  "share_deviation",
                                          "rms_error",   "worst",
                                          "theory",      "still",
                                          "optimizer",   "rate",
                                          "bytes",       "bytes_with_state",
                                          "loss_mean",   "loss_deviation",
                                          "excess_mean", "excess_deviation",
                                          "kept_mean",   "kept_deviation",
                                          "lost"});
    for (const auto& at : r.updates)
        for (std::size_t i = 0; i < at.size(); ++i) {
            const acc::update_arrival& u = at[i];
            std::vector<std::string> cells = {"updates",
                                              acc::name_of(s.stores[i]),
                                              csv_number(u.ratio),
                                              std::to_string(u.steps),
                                              csv_number(u.mean),
                                              csv_number(u.deviation),
                                              csv_number(u.rms_error),
                                              csv_number(u.worst),
                                              csv_number(acc::arrival_bound(s.stores[i], u.steps)),
                                              std::to_string(u.still)};
            cells.resize(21);
            text += example::csv_line(cells);
        }
    for (std::size_t o = 0; o < r.by_optimizer.size(); ++o) {
        const std::vector<arm> arms = s.arms_of(s.optimizers[o]);
        for (const rate_results& rate : r.by_optimizer[o])
            for (std::size_t a = 0; a < arms.size(); ++a) {
                const trained& t = rate.by_arm[a];
                text += example::csv_line({"training",
                                           arms[a].name(),
                                           csv_number(t.median_ratio),
                                           std::to_string(s.steps),
                                           "",
                                           "",
                                           "",
                                           "",
                                           "",
                                           "",
                                           acc::name_of(s.optimizers[o]),
                                           csv_number(rate.rate),
                                           std::to_string(acc::bytes_per_weight(arms[a].store)),
                                           std::to_string(bytes_of(s, s.optimizers[o], arms[a])),
                                           csv_number(t.loss.mean),
                                           csv_number(t.loss.deviation),
                                           csv_number(t.excess.mean),
                                           csv_number(t.excess.deviation),
                                           csv_number(t.kept.mean),
                                           csv_number(t.kept.deviation),
                                           csv_number(t.lost_share)});
            }
    }
    example::write_csv_file(s.csv, text);
}

inline void write_plot(const settings& s, const results& r) {
    example::line_plot_request plot;
    plot.title = "When bf16 weights stop learning";
    plot.subtitle =
        "dashed: the theory of each store, and 2^-9 of the weight, below which bf16 loses every update; zeros are not "
        "shown";
    plot.x_label = "update / weight (in training the median)";
    plot.axis = example::x_axis::decades;
    if (!r.updates.empty()) {
        example::panel p{"The same update many times: rms error of the sum", {}};
        for (std::size_t i = 0; i < s.stores.size(); ++i) {
            const weight_store store = s.stores[i];
            example::curve error{acc::name_of(store), {}, false}, theory{"", {}, true};
            theory.label = store == weight_store::bf16_stochastic ? "stochastic: deviation"
                           : store == weight_store::bf16_kahan    ? "Kahan: 2^-8 + 2^-16 / r"
                           : store == weight_store::bf16          ? "bf16: 2^-8 / r"
                                                                  : "fp32: 2^-24 / r";
            for (const auto& at : r.updates) {
                error.points.emplace_back(at[i].ratio, at[i].rms_error);
                const double bound = acc::arrival_bound(store, at[i].steps);
                theory.points.emplace_back(at[i].ratio, bound <= 1 ? bound : 0);  // 0: not drawn
            }
            p.curves.push_back(std::move(error));
            p.curves.push_back(std::move(theory));
        }
        plot.panels.push_back(std::move(p));
    }
    // Of each optimizer the share of fp32's gain that a store lost, after one panel with the gains themselves.
    for (std::size_t n = 0; n < r.by_optimizer.size() + 1 && !r.by_optimizer.empty(); ++n) {
        const bool gains = n == 0;
        const std::size_t o = gains ? r.by_optimizer.size() - 1 : n - 1;
        const std::vector<arm> arms = s.arms_of(s.optimizers[o]);
        const double start = summary_of(r.start).mean;
        example::panel p{fmt::format("{}: {}", acc::name_of(s.optimizers[o]),
                                     gains ? "how far the loss fell" : "|1 - share of fp32's gain that is kept|"),
                         {}};
        double low = 1e300, high = 0;
        for (std::size_t a = 0; a < arms.size(); ++a) {
            example::curve c{arms[a].name(), {}, false};
            for (const rate_results& rate : r.by_optimizer[o]) {
                const double y = gains ? start - rate.by_arm[a].loss.mean : std::fabs(1 - rate.by_arm[a].kept.mean);
                c.points.emplace_back(rate.by_arm[0].median_ratio, y);
                if (!(y > 0)) continue;
                low = std::fmin(low, y);
                high = std::fmax(high, y);
            }
            p.curves.push_back(std::move(c));
        }
        if (high > 0) p.curves.push_back({"2^-9: bf16 loses all", {{0x1p-9, low}, {0x1p-9, high}}, true});
        plot.panels.push_back(std::move(p));
    }
    if (const std::string error = example::draw(plot, s.plot); !error.empty())
        throw std::runtime_error("--plot: " + error);
}

}  // namespace master_weights
