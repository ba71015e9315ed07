"""Tables whose CSVs contain the cells as the page shows them.

They are results of single runs, by the command and under the conditions that the page states.
"""

from table_parts import TABLES, lines

PAGES = {
    "lab/bench/results/README.md": ["coarse_views", "bit_planes", "read_gains",
                                    "wheels",
                                    "codecs_nyx128", "deflate_parts", "deflate_levels",
                                    "plotfile_ratios", "covered_cells", "serial_tools",
                                    "order_gains", "balance_rules", "simulate_published",
                                    "simulate_measured", "simulate_real", "simulate_margins",
                                    "trz_fill_values", "trz_max", "trz_size_estimate",
                                    "step_cost", "step_cost_threads", "node_step_times",
                                    "space_times", "guard_costs", "choice_cells", "node_events"],
}


def as_they_stand(rows):
    return lines(list(rows[0]), [list(row.values()) for row in rows])


for page, names in PAGES.items():
    for name in names:
        TABLES[name] = (page, (f"{name}.csv",), as_they_stand)
