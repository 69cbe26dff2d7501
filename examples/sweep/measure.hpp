// SPDX-License-Identifier: MIT
// error_sweep: every band of every weight through every row, on several threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <vector>

#include "../support/parallel.hpp"
#include "../support/progress.hpp"
#include "rows.hpp"
#include "workload.hpp"

namespace sweep {

/// What one row did to some weights. Parts merge.
struct measurement {
    error_metrics error;
    double stored_bits = 0;
    double product_noise = 0;   // ||(W' - W) X^T||^2
    double product_signal = 0;  // ||W X^T||^2

    void merge(const measurement& o) {
        error.merge(o.error);
        stored_bits += o.stored_bits;
        product_noise += o.product_noise;
        product_signal += o.product_signal;
    }
    bool has_product() const { return product_signal > 0; }
    /// NaN without activations, and where lost weights would make the layer's output NaN or Inf.
    double product_error() const {
        return has_product() && error.lost == 0 ? std::sqrt(product_noise / product_signal)
                                                : std::numeric_limits<double>::quiet_NaN();
    }
    double stored_bits_per_weight() const { return stored_bits / static_cast<double>(error.count); }
};

using measurements = std::vector<measurement>;  // one per row

/// One band of one view of one tensor.
struct band {
    const weight* w = nullptr;
    std::size_t tensor = 0;
    std::int64_t view = 0, first_row = 0;
    matrix_shape shape;
};

/// The band that task number `task` measures.
inline band band_of(const workload& work, std::size_t task) {
    const auto after = std::upper_bound(work.weights.begin(), work.weights.end(), task,
                                        [](std::size_t t, const weight& w) { return t < w.first_task; });
    band b;
    b.w = &*std::prev(after);
    b.tensor = static_cast<std::size_t>(b.w - work.weights.data());
    const auto local = static_cast<std::int64_t>(task - b.w->first_task);
    b.view = local / b.w->bands;
    b.first_row = local % b.w->bands * b.w->band_rows;
    b.shape = {std::min(b.w->band_rows, b.w->view.rows - b.first_row), b.w->view.cols};
    return b;
}

/// The band's weights.
inline std::vector<float> load(const settings& s, const band& b) {
    std::vector<float> values(static_cast<std::size_t>(b.shape.rows * b.shape.cols));
    const std::int64_t first = (b.view * b.w->view.rows + b.first_row) * b.shape.cols;
    if (b.w->data != nullptr) {
        read_elements(*b.w->data, first, values);
    } else {
        numfmt::accuracy::fill(*s.synthetic, s.seed, static_cast<std::uint64_t>(first), values.data(),
                               static_cast<std::int64_t>(values.size()), s.sigma);
    }
    return values;
}

inline std::vector<double> load_input(const numfmt::io::safetensor& input) {
    std::vector<float> values(static_cast<std::size_t>(input.element_count()));
    read_elements(input, 0, values);
    return {values.begin(), values.end()};
}

/// Ranges of the views that are cut into several bands, by tensor and view; empty where no row needs them.
inline std::vector<std::vector<tensor_range>> find_ranges(const settings& s, const workload& work,
                                                          const std::vector<row>& rows) {
    std::vector<std::vector<tensor_range>> ranges(work.weights.size());
    if (std::none_of(rows.begin(), rows.end(), [](const row& r) { return r.needs_range; })) return ranges;
    std::uint64_t elements = 0;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        if (work.weights[i].bands == 1) continue;
        ranges[i].resize(static_cast<std::size_t>(work.weights[i].views));
        elements += static_cast<std::uint64_t>(work.weights[i].elements());
    }
    if (elements == 0) return ranges;
    example::progress_bar progress("ranges   ", elements);
    example::parallel_in_order(
        work.tasks, s.threads,
        [&](std::size_t task) {
            tensor_range range;
            const band b = band_of(work, task);
            if (ranges[b.tensor].empty()) return range;
            const std::vector<float> values = load(s, b);
            range.add(values.data(), static_cast<std::int64_t>(values.size()));
            progress.advance(values.size());
            return range;
        },
        [&](std::size_t task, const tensor_range& range) {
            const band b = band_of(work, task);
            if (!ranges[b.tensor].empty()) ranges[b.tensor][static_cast<std::size_t>(b.view)].merge(range);
        });
    return ranges;
}

/// One band through every row. `known_range` is the view's range, or null if the band is the whole view.
inline measurements measure(const settings& s, const std::vector<row>& rows, const band& b,
                            const tensor_range* known_range, example::progress_bar& progress) {
    const std::vector<float> values = load(s, b);
    const matrix_view<const float> weights{values.data(), b.shape, 0};
    tensor_range range;
    if (known_range != nullptr)
        range = *known_range;
    else
        range.add(values.data(), static_cast<std::int64_t>(values.size()));

    std::vector<float> decoded(values.size());
    std::vector<double> input, product;
    matrix_view<const double> x, m;
    double signal = 0;
    if (b.w->input != nullptr) {
        input = load_input(*b.w->input);
        x = {input.data(), {b.w->input->shape[0], b.shape.cols}, 0};
        product.resize(values.size());
        m = {product.data(), b.shape, 0};
    }

    measurements result(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        measurement& out = result[i];
        quantize_options options = s.options;
        if (rows[i].rule) options.scale_rule = *rows[i].rule;
        const numfmt::status status =
            rows[i].measure(weights, b.first_row, range, options, {decoded.data(), b.shape, 0}, out.error);
        if (!status.ok()) {
            char text[200];
            numfmt::message(status, text, sizeof text);
            throw std::runtime_error(fmt::format("{}: {}", rows[i].scheme, text));
        }
        // A whole view's bits, counted with its first band.
        if (b.first_row == 0)
            out.stored_bits = rows[i].stored_bits(b.w->view) * static_cast<double>(b.w->view.rows) *
                              static_cast<double>(b.w->view.cols);
        if (b.w->input != nullptr) {
            // NaN and Inf in the file count as 0 here; the table says how many there are.
            const auto finite = [&](std::size_t k) { return std::isfinite(values[k]) && std::isfinite(decoded[k]); };
            if (signal == 0) {
                for (std::size_t k = 0; k < values.size(); ++k)
                    product[k] = std::isfinite(values[k]) ? static_cast<double>(values[k]) : 0.0;
                signal = numfmt::accuracy::squared_product_norm(m, x);
            }
            for (std::size_t k = 0; k < values.size(); ++k)
                product[k] = finite(k) ? static_cast<double>(decoded[k]) - static_cast<double>(values[k]) : 0.0;
            out.product_noise = numfmt::accuracy::squared_product_norm(m, x);
            out.product_signal = signal;
        }
        progress.advance(values.size());
    }
    return result;
}

/// By tensor, then by row.
inline std::vector<measurements> measure_all(const settings& s, const workload& work, const std::vector<row>& rows) {
    const auto ranges = find_ranges(s, work, rows);
    std::vector<measurements> results(work.weights.size(), measurements(rows.size()));
    example::progress_bar progress("measuring", static_cast<std::uint64_t>(work.elements) * rows.size());
    example::parallel_in_order(
        work.tasks, s.threads,
        [&](std::size_t task) {
            const band b = band_of(work, task);
            const auto& known = ranges[b.tensor];
            return measure(s, rows, b, known.empty() ? nullptr : &known[static_cast<std::size_t>(b.view)], progress);
        },
        [&](std::size_t task, const measurements& part) {
            measurements& sum = results[band_of(work, task).tensor];
            for (std::size_t i = 0; i < part.size(); ++i) sum[i].merge(part[i]);
        });
    return results;
}

inline measurements total_of(const std::vector<measurements>& results, std::size_t rows) {
    measurements total(rows);
    for (const auto& tensor : results)
        for (std::size_t i = 0; i < rows; ++i) total[i].merge(tensor[i]);
    return total;
}

}  // namespace sweep
