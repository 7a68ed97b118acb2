"""A plot for each table of a model, with matplotlib (the extra ``kofa[plot]``).

A function takes a model, or the table itself, and an Axes where one is to be drawn in. It returns
the Axes, or a Figure if it draws several. Neither settings of matplotlib nor the caller's data are
changed, and nothing is shown: that is up to the notebook, ``plt.show()`` or ``figure.savefig``.
"""

from kofa.plot.data import data_heatmap
from kofa.plot.factors import factor_correlation, factor_pairs, factor_violins, factors
from kofa.plot.meaning import agreement, associations, enrichment
from kofa.plot.overview import bound, data_overview, factor_relevance, variance_explained
from kofa.plot.predicted import calibration, compare, confusion, predictions
from kofa.plot.relevance import feature_relevance, kernel, kernel_weights, relevance_vectors
from kofa.plot.weights import top_weights, weights, weights_heatmap, weights_scatter

__all__ = [
    "agreement",
    "associations",
    "bound",
    "calibration",
    "compare",
    "confusion",
    "data_heatmap",
    "data_overview",
    "enrichment",
    "factor_correlation",
    "factor_pairs",
    "factor_relevance",
    "factor_violins",
    "factors",
    "feature_relevance",
    "kernel",
    "kernel_weights",
    "predictions",
    "relevance_vectors",
    "top_weights",
    "variance_explained",
    "weights",
    "weights_heatmap",
    "weights_scatter",
]
