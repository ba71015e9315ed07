"""Tables whose CSVs contain the cells as the page shows them.

They are results of single runs, by the command and under the conditions that the page states.
"""

from table_parts import TABLES, lines

PAGES = {
    "docs/choice.md": ["choice_cells"],
    "docs/codecs.md": ["codecs_nyx128", "deflate_parts"],
    "docs/concat.md": ["deflate_levels"],
    "docs/guards.md": ["guard_costs"],
    "docs/hdf5.md": ["plotfile_ratios", "covered_cells"],
    "docs/in-situ.md": ["step_cost", "step_cost_threads"],
    "docs/layouts.md": ["space_times"],
    "docs/python.md": ["wheels"],
    "docs/read.md": ["coarse_views", "bit_planes", "read_gains"],
    "docs/nodes.md": ["node_step_times"],
    "docs/reliability.md": ["node_events"],
    "docs/schedule.md": ["order_gains", "balance_rules"],
    "docs/serial-tools.md": ["serial_tools"],
    "docs/simulate.md": ["simulate_published", "simulate_measured", "simulate_real",
                         "simulate_margins"],
    "docs/trz.md": ["trz_fill_values", "trz_max", "trz_size_estimate"],
}


def as_they_stand(rows):
    return lines(list(rows[0]), [list(row.values()) for row in rows])


for page, names in PAGES.items():
    for name in names:
        TABLES[name] = (page, (f"{name}.csv",), as_they_stand)
