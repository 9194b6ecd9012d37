"""What else aggregates are called, and those that cannot be put together from parts, with what to write instead."""

from __future__ import annotations

#: What else Spark calls our functions.
ALIASES = {
    "mean": "avg",
    "first_value": "first",
    "last_value": "last",
    "arg_min": "min_by",
    "arg_max": "max_by",
    "every": "bool_and",
    "some": "bool_or",
    "any": "bool_or",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "collect_list": "array_agg",
    "listagg": "string_agg",
    "approx_percentile": "percentile_approx",
    "percentile_cont": "percentile",
    "percentile_disc": "percentile",
}
_ALL_VALUES = "keep the events and use count(distinct {x}), min({x}) or max({x})"
REFUSED = {
    "median": "use avg({x}), or min and max",
    "percentile": "use avg({x}), min({x}) or max({x})",
    "mode": "group_by({x}) and count(*)",
    "array_agg": _ALL_VALUES,
    "collect_set": "use count(distinct {x})",
    "string_agg": _ALL_VALUES,
    "skewness": "use stddev_samp({x})",
    "kurtosis": "use stddev_samp({x})",
    "product": "use exp(sum(ln({x})))",
    "approx_count_distinct": "use count(distinct {x})",
    "percentile_approx": "use avg({x}), min({x}) or max({x})",
    "approx_top_k": "group_by({x}) and count(*)",
}
