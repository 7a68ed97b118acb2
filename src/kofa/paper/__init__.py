"""The experiments of the KSSHIBA paper, as `kofa paper` runs them."""
