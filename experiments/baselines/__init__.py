"""Methods of others that kofa is compared with, each written once."""
