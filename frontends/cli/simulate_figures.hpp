// The paper's figures that come from simulation or can (Jin et al. 2024): 3, 7, 8 and 11.
//
// A figure is a list of numbers, series by series, that can be drawn, listed and written as CSV or
// JSON alike. Only overheads and improvements are computed; nothing is taken from the paper.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "chart/chart.hpp"
#include "core/status.hpp"
#include "simulate_plan.hpp"

namespace tailrace::cli {

struct FigureSeries {
  std::string label;
  std::vector<double> x;
  std::vector<double> y;          ///< Percent.
  std::vector<double> deviation;  ///< Over iterations, percent.
  bool dashed = false;
};

struct FigurePanel {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool x_logarithmic = false;
  bool y_logarithmic = false;
  std::vector<FigureSeries> series;
};

struct PaperFigure {
  unsigned number = 0;
  std::string title;
  std::vector<FigurePanel> panels;
  std::vector<std::string> settings;  ///< Of each panel, as simulate_heading().
};

/// Compute figure 3, 7, 8 or 11, varying `plan`. What `plan` leaves at its defaults is chosen for
/// the figure. @error invalid_argument  another number, or a recording.
Result<PaperFigure> compute_figure(unsigned number, const SimulatePlan& plan);

std::string figure_table(const PaperFigure& figure);
std::string figure_csv(const PaperFigure& figure);
nlohmann::ordered_json figure_json(const PaperFigure& figure);
chart::Figure figure_chart(const PaperFigure& figure);

}  // namespace tailrace::cli
