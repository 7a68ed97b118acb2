"""What half and twice of each number of `kofa.tuning` do."""
