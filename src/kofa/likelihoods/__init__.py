"""The kinds of observation: encoding and checks, log-likelihood, prediction.

One file for each; nothing of a kind is elsewhere but its declaration in `kofa.views`.
"""

from kofa.likelihoods.base import Likelihood
from kofa.likelihoods.bernoulli import Bernoulli
from kofa.likelihoods.gaussian import Gaussian, of_similarities
from kofa.likelihoods.log_normal import LogNormal
from kofa.likelihoods.multinomial import Multinomial
from kofa.likelihoods.poisson import Poisson

__all__ = [
    "Bernoulli",
    "Gaussian",
    "Likelihood",
    "LogNormal",
    "Multinomial",
    "Poisson",
    "of_similarities",
]
