// SPDX-License-Identifier: MIT
// Hand-checked values and conversions of the scalar formats; see README.md.
#pragma once

#include <cstdint>
#include <limits>

namespace numfmt_test::golden {

inline constexpr float inf = std::numeric_limits<float>::infinity();
inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Runs of consecutive codes and their values.
struct code_run {
    std::uint32_t first;
    double value[8];
};
inline constexpr code_run e4m3_runs[] = {
    {0x00, {0, 0.001953125, 0.00390625, 0.005859375, 0.0078125, 0.009765625, 0.01171875, 0.013671875}},
    {0x08, {0.015625, 0.017578125, 0.01953125, 0.021484375, 0.0234375, 0.025390625, 0.02734375, 0.029296875}},
    {0x38, {1, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875}},
    {0x70, {128, 144, 160, 176, 192, 208, 224, 240}},
    {0x78, {256, 288, 320, 352, 384, 416, 448, nan}}};
inline constexpr code_run e5m2_runs[] = {{0x38, {0.5, 0.625, 0.75, 0.875, 1, 1.25, 1.5, 1.75}},
                                         {0x78, {32768, 40960, 49152, 57344, inf, nan, nan, nan}}};
inline constexpr code_run e3m2_runs[] = {{0x00, {0, .0625, .125, .1875, .25, .3125, .375, .4375}},
                                         {0x08, {.5, .625, .75, .875, 1, 1.25, 1.5, 1.75}},
                                         {0x10, {2, 2.5, 3, 3.5, 4, 5, 6, 7}},
                                         {0x18, {8, 10, 12, 14, 16, 20, 24, 28}}};
inline constexpr code_run e2m3_runs[] = {{0x00, {0, .125, .25, .375, .5, .625, .75, .875}},
                                         {0x08, {1, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875}},
                                         {0x10, {2, 2.25, 2.5, 2.75, 3, 3.25, 3.5, 3.75}},
                                         {0x18, {4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5}}};
inline constexpr code_run e2m1_runs[] = {{0x0, {0, .5, 1, 1.5, 2, 3, 4, 6}},
                                         {0x8, {-0.0, -.5, -1, -1.5, -2, -3, -4, -6}}};

// float bits -> bf16 and fp16, nearest even and toward zero, overflow to Inf.
struct half_row {
    std::uint32_t input;
    std::uint32_t bf16_nearest, bf16_truncated, fp16_nearest, fp16_truncated;
};
inline constexpr half_row halves[] = {
    {0x3F808000, 0x3F80, 0x3F80, 0x3C04, 0x3C04},  // 1 + 2^-8: tie in bf16
    {0x3F808001, 0x3F81, 0x3F80, 0x3C04, 0x3C04},  // just above
    {0x3F818000, 0x3F82, 0x3F81, 0x3C0C, 0x3C0C},  // 1 + 3 * 2^-8: tie
    {0x3F801000, 0x3F80, 0x3F80, 0x3C00, 0x3C00},  // 1 + 2^-11: tie in fp16
    {0x3F803000, 0x3F80, 0x3F80, 0x3C02, 0x3C01},  // 1 + 3 * 2^-11: tie
    {0x7F7F7FFF, 0x7F7F, 0x7F7F, 0x7C00, 0x7BFF},  // below bf16's overflow tie
    {0x7F7F8000, 0x7F80, 0x7F7F, 0x7C00, 0x7BFF},  // bf16's overflow tie
    {0x7F7FFFFF, 0x7F80, 0x7F7F, 0x7C00, 0x7BFF},  // FLT_MAX
    {0x477FEFFF, 0x4780, 0x477F, 0x7BFF, 0x7BFF},  // 65519.996
    {0x477FF000, 0x4780, 0x477F, 0x7C00, 0x7BFF},  // 65520: fp16's overflow tie
    {0x33000000, 0x3300, 0x3300, 0x0000, 0x0000},  // 2^-25: tie in fp16
    {0x33000001, 0x3300, 0x3300, 0x0001, 0x0000},  // just above
    {0x33C00000, 0x33C0, 0x33C0, 0x0002, 0x0001},  // 1.5 * 2^-24: tie
    {0x387FF000, 0x3880, 0x387F, 0x0400, 0x03FF},  // fp16: tie between the largest subnormal and the smallest normal
    {0x00008000, 0x0000, 0x0000, 0x0000, 0x0000},  // 2^-134: tie in bf16
    {0x00018000, 0x0002, 0x0001, 0x0000, 0x0000},  // 1.5 * 2^-133: tie
};

// float -> fp8: nearest even saturating, nearest even to_nonfinite, toward zero saturating, nearest away saturating.
struct fp8_row {
    float input;
    std::uint32_t nearest, nonsaturating, truncated, away;
};
inline constexpr fp8_row e4m3_rows[] = {
    {0.0f, 0x00, 0x00, 0x00, 0x00},           {-0.0f, 0x80, 0x80, 0x80, 0x80},
    {0x1p-11f, 0x00, 0x00, 0x00, 0x00},       {0x1p-10f, 0x00, 0x00, 0x00, 0x01},   // tie
    {0x1.004p-10f, 0x01, 0x01, 0x00, 0x01},   {0x1.8p-9f, 0x02, 0x02, 0x01, 0x02},  // tie
    {0x2.8p-9f, 0x02, 0x02, 0x02, 0x03},                                            // tie
    {0x7.8p-9f, 0x08, 0x08, 0x07, 0x08},       // tie between the largest subnormal and the smallest normal
    {1.0625f, 0x38, 0x38, 0x38, 0x39},         // tie
    {1.1875f, 0x3A, 0x3A, 0x39, 0x3A},         // tie
    {0x1.D55556p+1f, 0x47, 0x47, 0x46, 0x47},  // 11/3
    {432.0f, 0x7E, 0x7E, 0x7D, 0x7E},          // tie
    {448.0f, 0x7E, 0x7E, 0x7E, 0x7E},         {456.0f, 0x7E, 0x7E, 0x7E, 0x7E},
    {464.0f, 0x7E, 0x7E, 0x7E, 0x7E},  // overflow tie, 7E is even
    {464.0625f, 0x7E, 0x7F, 0x7E, 0x7E},      {480.0f, 0x7E, 0x7F, 0x7E, 0x7E},
    {65504.0f, 0x7E, 0x7F, 0x7E, 0x7E},       {1e6f, 0x7E, 0x7F, 0x7E, 0x7E},
    {-480.0f, 0xFE, 0xFF, 0xFE, 0xFE},        {inf, 0x7E, 0x7F, 0x7E, 0x7E},
    {-inf, 0xFE, 0xFF, 0xFE, 0xFE},           {nan, 0x7F, 0x7F, 0x7F, 0x7F},
    {-nan, 0x7F, 0x7F, 0x7F, 0x7F},
};
inline constexpr fp8_row e5m2_rows[] = {
    {0x1p-17f, 0x00, 0x00, 0x00, 0x01},                                              // tie
    {0x1.004p-17f, 0x01, 0x01, 0x00, 0x01},   {0x1.8p-16f, 0x02, 0x02, 0x01, 0x02},  // tie
    {0x2.8p-16f, 0x02, 0x02, 0x02, 0x03},                                            // tie
    {0x3.8p-16f, 0x04, 0x04, 0x03, 0x04},  // tie between the largest subnormal and the smallest normal
    {1.125f, 0x3C, 0x3C, 0x3C, 0x3D},      // tie
    {1.1875f, 0x3D, 0x3D, 0x3C, 0x3D},        {1.375f, 0x3E, 0x3E, 0x3D, 0x3E},    // tie
    {0x1.D55556p+1f, 0x43, 0x43, 0x43, 0x43}, {53248.0f, 0x7A, 0x7A, 0x7A, 0x7B},  // tie
    {57344.0f, 0x7B, 0x7B, 0x7B, 0x7B},       {59392.0f, 0x7B, 0x7B, 0x7B, 0x7B},
    {61439.9375f, 0x7B, 0x7B, 0x7B, 0x7B},    {61440.0f, 0x7B, 0x7C, 0x7B, 0x7B},  // overflow tie, 7B is odd
    {65504.0f, 0x7B, 0x7C, 0x7B, 0x7B},       {1e6f, 0x7B, 0x7C, 0x7B, 0x7B},
    {-65536.0f, 0xFB, 0xFC, 0xFB, 0xFB},      {inf, 0x7B, 0x7C, 0x7B, 0x7B},
    {-inf, 0xFB, 0xFC, 0xFB, 0xFB},           {nan, 0x7F, 0x7F, 0x7F, 0x7F},
};

// The seven midpoints of E2M1 under the three ways to break a tie (values).
struct e2m1_tie {
    float input, even, to_zero, away;
};
inline constexpr e2m1_tie e2m1_ties[] = {{.25f, 0, 0, .5f}, {.75f, 1, .5f, 1}, {1.25f, 1, 1, 1.5f}, {1.75f, 2, 1.5f, 2},
                                         {2.5f, 2, 2, 3},   {3.5f, 4, 3, 4},   {5, 4, 4, 6}};

// All ties of FP6 under nearest even.
struct tie {
    double input;
    std::uint32_t code;
};
inline constexpr tie e3m2_ties[] = {
    {.03125, 0x00}, {.09375, 0x02}, {.15625, 0x02}, {.21875, 0x04}, {.28125, 0x04}, {.34375, 0x06}, {.40625, 0x06},
    {.46875, 0x08}, {.5625, 0x08},  {.6875, 0x0A},  {.8125, 0x0A},  {.9375, 0x0C},  {1.125, 0x0C},  {1.375, 0x0E},
    {1.625, 0x0E},  {1.875, 0x10},  {2.25, 0x10},   {2.75, 0x12},   {3.25, 0x12},   {3.75, 0x14},   {4.5, 0x14},
    {5.5, 0x16},    {6.5, 0x16},    {7.5, 0x18},    {9, 0x18},      {11, 0x1A},     {13, 0x1A},     {15, 0x1C},
    {18, 0x1C},     {22, 0x1E},     {26, 0x1E}};
inline constexpr tie e2m3_ties[] = {
    {.0625, 0x00},  {.1875, 0x02},  {.3125, 0x02},  {.4375, 0x04},  {.5625, 0x04},  {.6875, 0x06},  {.8125, 0x06},
    {.9375, 0x08},  {1.0625, 0x08}, {1.1875, 0x0A}, {1.3125, 0x0A}, {1.4375, 0x0C}, {1.5625, 0x0C}, {1.6875, 0x0E},
    {1.8125, 0x0E}, {1.9375, 0x10}, {2.125, 0x10},  {2.375, 0x12},  {2.625, 0x12},  {2.875, 0x14},  {3.125, 0x14},
    {3.375, 0x16},  {3.625, 0x16},  {3.875, 0x18},  {4.25, 0x18},   {4.75, 0x1A},   {5.25, 0x1A},   {5.75, 0x1C},
    {6.25, 0x1C},   {6.75, 0x1E},   {7.25, 0x1E}};

// FNUZ: nearest even saturating, and to_nonfinite.
struct fnuz_row {
    float input;
    std::uint32_t saturated, nonsaturating;
};
inline constexpr fnuz_row e4m3fnuz_rows[] = {
    {1, 0x40, 0x40},         {-1, 0xC0, 0xC0},       {240, 0x7F, 0x7F},     {247, 0x7F, 0x7F}, {248, 0x7F, 0x80},
    {-248, 0xFF, 0x80},      {inf, 0x7F, 0x80},      {-inf, 0xFF, 0x80},    {nan, 0x80, 0x80}, {-0.0f, 0x00, 0x00},
    {-0x1p-20f, 0x00, 0x00}, {0x1p-11f, 0x00, 0x00}, {0x1p-10f, 0x01, 0x01}};
inline constexpr fnuz_row e5m2fnuz_rows[] = {{1, 0x40, 0x40},     {57344, 0x7F, 0x7F}, {61439, 0x7F, 0x7F},
                                             {61440, 0x7F, 0x80}, {inf, 0x7F, 0x80},   {-inf, 0xFF, 0x80},
                                             {nan, 0x80, 0x80},   {-0.0f, 0x00, 0x00}, {0x1p-18f, 0x00, 0x00}};

// float -> E8M0: down and up, saturating and to_nonfinite (CUDA's cudaRoundZero and cudaRoundPosInf), and nearest up.
struct e8m0_row {
    float input;
    std::uint32_t down, up, down_nonfinite, up_nonfinite, nearest_up;
};
inline constexpr e8m0_row e8m0_rows[] = {
    {0.0f, 0x00, 0x00, 0x00, 0x00, 0x00},
    {-0.0f, 0x00, 0x00, 0x00, 0x00, 0x00},
    {0x1p-149f, 0x00, 0x00, 0x00, 0x00, 0x00},
    {0x1p-127f, 0x00, 0x00, 0x00, 0x00, 0x00},
    {0x1.000004p-127f, 0x00, 0x01, 0x00, 0x01, 0x00},  // the next float above 2^-127
    {0x1.7FFFFCp-127f, 0x00, 0x01, 0x00, 0x01, 0x00},  // just below the tie
    {0x1.8p-127f, 0x00, 0x01, 0x00, 0x01, 0x01},       // the tie goes up
    {0x1.FFFFFCp-127f, 0x00, 0x01, 0x00, 0x01, 0x01},  // the largest float subnormal
    {0x1p-126f, 0x01, 0x01, 0x01, 0x01, 0x01},
    {0x1.FFFFFEp-1f, 0x7E, 0x7F, 0x7E, 0x7F, 0x7F},
    {1.0f, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F},
    {-1.0f, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F},
    {0x1.000002p+0f, 0x7F, 0x80, 0x7F, 0x80, 0x7F},
    {0x1.7FFFFEp+0f, 0x7F, 0x80, 0x7F, 0x80, 0x7F},
    {1.5f, 0x7F, 0x80, 0x7F, 0x80, 0x80},
    {0x1.FFFFFEp+0f, 0x7F, 0x80, 0x7F, 0x80, 0x80},
    {0x1p+127f, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE},
    {0x1.000002p+127f, 0xFE, 0xFE, 0xFE, 0xFF, 0xFE},
    {0x1.FFFFFEp+127f, 0xFE, 0xFE, 0xFE, 0xFF, 0xFE},  // nearest up gives FF where overflow is to_nonfinite
    {inf, 0xFE, 0xFE, 0xFF, 0xFF, 0xFE},
    {-inf, 0xFE, 0xFE, 0xFF, 0xFF, 0xFE},
    {nan, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
};

// The landmarks of each format.
struct landmark {
    const char* name;
    double largest, smallest_normal, largest_subnormal, smallest_subnormal, unit_roundoff;
    int largest_exponent;
    bool is_signed, has_infinity, has_nan;
    // numeric_limits: digits, digits10, max_digits10, min_exponent, max_exponent, min_exponent10, max_exponent10
    int digits, digits10, max_digits10, min_exponent, max_exponent, min_exponent10, max_exponent10;
    double epsilon, round_error;
};
// clang-format off
inline constexpr landmark landmarks[] = {
    {"bf16", 3.3895313892515355e38, 0x1p-126, 127.0 / 128 * 0x1p-126, 0x1p-133, 0x1p-8, 127, true, true, true, 8, 2, 4, -125, 128, -37, 38, 0x1p-7, .5},
    {"fp16", 65504, 0x1p-14, 1023.0 / 1024 * 0x1p-14, 0x1p-24, 0x1p-11, 15, true, true, true, 11, 3, 5, -13, 16, -4, 4, 0x1p-10, .5},
    {"fp8_e4m3", 448, 0.015625, 0.013671875, 0.001953125, 0x1p-4, 8, true, false, true, 4, 0, 3, -5, 9, -1, 2, 0.125, .5},
    {"fp8_e5m2", 57344, 0x1p-14, 4.57763671875e-5, 0x1p-16, 0x1p-3, 15, true, true, true, 3, 0, 2, -13, 16, -4, 4, 0.25, .5},
    {"fp4_e2m1", 6, 1, 0.5, 0.5, 0x1p-2, 2, true, false, false, 2, 0, 2, 1, 3, 0, 0, 0.5, .5},
    {"e8m0", 0x1p127, 0x1p-127, 0x1p-127, 0x1p-127, 0x1p-1, 127, false, false, true, 1, 0, 2, -126, 128, -38, 38, 1, 1},
    {"fp8_e4m3fnuz", 240, 0x1p-7, 7 * 0x1p-10, 0x1p-10, 0x1p-4, 7, true, false, true, 4, 0, 3, -6, 8, -2, 2, 0.125, .5},
    {"fp8_e5m2fnuz", 57344, 0x1p-15, 3 * 0x1p-17, 0x1p-17, 0x1p-3, 15, true, false, true, 3, 0, 2, -14, 16, -4, 4, 0.25, .5},
    {"fp6_e2m3", 7.5, 1, 0.875, 0.125, 0x1p-4, 2, true, false, false, 4, 0, 3, 1, 3, 0, 0, 0.125, .5},
    {"fp6_e3m2", 28, 0.25, 0.1875, 0.0625, 0x1p-3, 4, true, false, false, 3, 0, 2, -1, 5, 0, 1, 0.25, .5},
    {"fp8_ue4m3", 448, 0.015625, 0.013671875, 0.001953125, 0x1p-4, 8, false, false, true, 4, 0, 3, -5, 9, -1, 2, 0.125, .5},
    {"ue5m3", 114688, 0x1p-14, 7 * 0x1p-17, 0x1p-17, 0x1p-4, 16, false, false, true, 4, 0, 3, -13, 17, -4, 5, 0.125, .5},
};
// clang-format on

}  // namespace numfmt_test::golden
