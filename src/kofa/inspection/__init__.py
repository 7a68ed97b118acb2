"""What a fit found, as tables: functions of factors, weights and data alone."""

from kofa.inspection.agreement import agreement
from kofa.inspection.association import associate
from kofa.inspection.correlation import correlate
from kofa.inspection.enrichment import enrich
from kofa.inspection.feature_sets import read_gmt
from kofa.inspection.overview import Overview, data_overview

__all__ = [
    "Overview",
    "agreement",
    "associate",
    "correlate",
    "data_overview",
    "enrich",
    "read_gmt",
]
