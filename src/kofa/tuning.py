"""Every number that changes an answer, with the reason for it.

Numbers that only guard against rounding, or that trade memory for speed, stay where they are used;
those that bound memory and time come last. What was chosen on which data is in docs/tuning.md, and
what half and twice of each number do.
"""

from __future__ import annotations

from math import e, exp
from typing import Final

# ---------------------------------------------------------------- when a fit stops

# Nats per sample and iteration; a smaller gain counts as none. With outputs predictions settle long
# before the faintest directions of a kernel do.
TOL: Final = 2e-4
TOL_WITH_OUTPUTS: Final = 1e-3
# Iterations in a row without a gain that end a fit: a rotation may bring the next gain.
PATIENCE: Final = 4
# The curvature ratio ρ of a view that is not Gaussian is rounded up to a multiple of this; where it
# stays the same, the fit ends.
CURVATURE_RATIO_TOL: Final = 0.02
LEAST_CURVATURE_RATIO: Final = 0.01
# The next rotation comes after so many times as many iterations: 3, 4, 6, 8, …
ROTATION_PACE: Final = 1.3
# Where a run goes on from an earlier one, which has rotated often, the first comes then.
LATER_ROTATION: Final = 20.0
# How many times as far a step may go that grows.
LONGEST_LEAP: Final = 10.0

# ---------------------------------------------------------------- priors and the start

# Shape and rate of the broad Gamma priors; the data are on unit scale.
BROAD_PRIOR: Final = 1e-6
# No column is known better than to a thousandth of its spread, a priori.
NOISE_FLOOR: Final = 1e-6
# Share of the variance of a view without a kernel that starts as noise, at least.
START_NOISE: Final = 0.1
# A kernel is computed, not measured: where it feeds outputs (`Role.exact`) its only noise is what
# the factors leave out at the start, or this share of its variance, with which the bound still has
# eight digits. A prior worth so many times the data holds it there.
EXACT_NOISE: Final = 3e-8
EXACT_WEIGHT: Final = 1e3
# Share of the mean variance of landmarks that is added to each, so that duplicates do no harm.
GRAM_JITTER: Final = 1e-8

# ---------------------------------------------------------------- the number of factors

# A factor goes where its information is below this share of the edge of the noise spectrum.
PRUNING_MARGIN: Final = 0.9
# Where they do, so many of the next weakest are left out one by one on trial (breast cancer: 15
# factors have a bound .2 % higher than 16, and without the weakest it takes 85 iterations to see).
NEXT_WEAKEST: Final = 3
# With fewer columns than so many for each factor of the start, fits with fewer factors are also
# started anew (3 factors in 18 columns, 5,000 to 100,000 samples: without it 9 to 15 are found).
COLUMNS_PER_FACTOR: Final = 5.0
# Weak factors are left out first at so many times the tolerance, where one iteration gains less,
# since to wait for each digit of theirs takes most of the iterations. (At 3,000 times factors of
# `cll` are lost: 28 in place of 33, and the bound is 115 lower.)
EARLY_TOL: Final = 1000.0
COARSE_TOL: Final = 10.0

# ---------------------------------------------------------------- learning of kernels

# The search starts from these widths, times the median distance, and this noise.
START_WIDTHS: Final = (0.3, 1.0, 3.0)
LEARNING_START_NOISE: Final = 0.3
# The best start goes on with all rows, until so many steps together gain less than so many nats: on
# slump and edm after half of the steps.
LEARNING_PATIENCE: Final = 4
LEARNING_GAIN: Final = 0.1
LOG_WIDTH_LIMITS: Final = (-5.0, 5.0)
# The variance that the kernels give the outputs, Σ_m v_m K_m at their median widths, is a priori
# within this (in its logarithm) of one. The likelihood of smooth data rises for ever wider kernels
# with ever larger v, whose signal sits in directions that are too faint for a factor model: enb
# with RBF gains .04 of R² by it, edm and oes97 lose up to .01.
SCALE_PRIOR: Final = 0.5
# An output further out than this many spreads counts as this far, so that a few outliers do not
# ask for a narrow kernel: jura gains .003 of R² by it, oes97 (whose tails are signal) loses .008.
OUTLIER: Final = 5.0
# An output is not known better than its resolution: the noise is at least that of rounding, or
# this share of the output's variance where few values are possible. Without it an output that has
# one value in 94 % of the samples runs to a noise of zero, and decides about kernels alone. R² of
# edm, folds of seeds 1 and 2, without: bank .477, .470, RBF .467, .447, Laplacian .501, .481; with
# .02: .489, .476, .472, .453, .488, .477; with .2: .473, .468, .409, .405, .465, .459. Labels are
# exact: with .2 the log-loss of wine rises from .03 to .05.
MOST_ROUNDING: Final = 0.02
LEAST_NOISE: Final = exp(-14.0)
# With fewer landmarks, kernels are not centred by row: of R directions that costs one. With more it
# helps: with the landmarks of sparse views R² of oes10 is .787 with it and .731 without.
ROW_CENTRED_FROM: Final = 10

# ---------------------------------------------------------------- relevance of features

# Unless features are to be switched off, √λ is a priori within this of one, so that thousands of
# features cannot follow the noise of a few hundred samples.
RELEVANCE_PRIOR: Final = 0.8
# Starts of relevances run for a while, and the best goes on: widths times the median distance.
RACE_WIDTHS: Final = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4)
# Of a Laplacian kernel: log λ is a priori within this of zero.
LOG_RELEVANCE_PRIOR: Final = 0.5
LOG_RELEVANCE_LIMITS: Final = (-8.0, 5.0)
# Where each kernel starts: all with the same share of the variance, or these shares for kernels
# with relevances, with a width, and all others. With the first alone enb stays at .988 of R² in
# place of .998.
START_SHARES: Final = {"relevance": 0.795, "width": 0.005, "fixed": 0.2}
# Relevances are kept if they predict one of so many rows as well as features that are alike, up to
# a share of the squared error; where there are more features than a share of the rows, if they
# predict better by so many standard errors.
RELEVANCE_HELD_OUT: Final = 4
RELEVANCE_FEWEST_HELD_OUT: Final = 5
RELEVANCE_NO_WORSE: Final = 0.05
RELEVANCE_MANY_FEATURES: Final = 0.5
RELEVANCE_SURE: Final = 2.0
# Of λ that are not kept this power is, which leaves their order and hardly changes the kernel.
ORDER_ONLY_POWER: Final = 0.01
LEAST_RELEVANCE: Final = 1e-12
# With a `sparsity`: the unit of √λ in median distances, the prices on the way to the one asked for,
# and the widths from which λ starts again at each.
SPARSE_UNIT: Final = 0.5
SPARSITY_PATH: Final = (0.25, 1.0, 4.0, 16.0, 64.0)
SPARSITY_WIDTHS: Final = (0.35, 1.0)
# A feature is off below this share of the largest λ; where none is off, one counts that stands out
# by this factor from the geometric mean; and the chance that a column without signal is selected.
FEATURE_OFF: Final = 1e-2
FEATURE_STANDS_OUT: Final = e
FEATURE_CHANCE: Final = 0.05

# ---------------------------------------------------------------- unlabelled samples

# The time of a diffusion where no outputs tell it, and the limits of its logarithm (oil_flow with
# few labels wants 300 to 600).
DIFFUSION_TIME: Final = 5.0
LOG_TIME_LIMITS: Final = (0.0, 7.0)
# The scale of a row among duplicates, relative to the mean over all rows, at least; and how many
# scales from the nearest row a row starts to be unlike all of them.
GRAPH_LEAST_SCALE: Final = 0.1
GRAPH_FAR: Final = 2.0
# A diffusion is taken in where the squared error of held-out labels falls to this share.
UNLABELLED_GAIN: Final = 0.9

# ---------------------------------------------------------------- landmarks and relevance vectors

# Nats that a relevance vector has to add, and how many in a row may fail to: a few together often
# do.
VECTOR_PRICE: Final = 0.1
VECTOR_PATIENCE: Final = 20
# A share of an output's variance that need not be explained. The noise of outputs that the full
# kernel explains without any would have a few landmarks follow these alone.
VECTOR_LEAST_NOISE: Final = 0.01
# Share of a kernel's variance that may be left where there are no outputs.
VECTOR_RESIDUAL: Final = 0.01
# Of the candidates such a share become relevance vectors at most, or so many; of a small number of
# candidates, where a cap saves nothing, all that pay: R² of edm (138 samples), plain − sparse on
# folds of seeds 1 to 3, is .036 with at most 40 and .009 without a cap, where 52 are kept.
# Where every sample counts a little, as in atp7d (266 samples), the outputs ask for .8 of them; R²,
# sparse − plain on three folds each of seeds 1 to 3, is .002 with .18, .037 with .3 and .041 with
# .5; of atp1d −.016, −.012 and .003.
VECTOR_SHARE: Final = 0.4
VECTOR_FEW: Final = 40
VECTOR_SMALL_POOL: Final = 200
# The widths that are best for all rows are too narrow for few landmarks, or their faint directions
# are lost to the factors. So these times the learnt ones are tried, by parts of the samples, each
# predicted from the others, of so many samples at least. The logarithm of these factors is a priori
# within so much of zero.
VECTOR_WIDTHS: Final = (1.0, 0.7, 1.4, 2.0, 2.8)
VECTOR_WIDTH_PRIOR: Final = 0.3
VECTOR_FEWEST: Final = 5

# ---------------------------------------------------------------- limits of memory and time

# The most factors where their number is not set.
MOST_FACTORS: Final = 300
# Where each iteration would visit more samples than this, the factors of so many are found first.
MANY_SAMPLES: Final = 20_000
FIRST_SAMPLES: Final = 10_000
# Columns with holes of their own have a covariance of their weights each. Where the number of
# factors is not set, it is limited so that all of these have at most so many numbers (.5 GB; a fit
# holds a few times that): 115 factors of 5,000 such columns, 26 of 95,000.
MOST_COVARIANCES: Final = 2**26
# The last iterations, from which the next is foreseen (15 save a tenth more iterations on `cll`, 5
# cost as much; each has to be remembered).
ACCELERATION_STEPS: Final = 8
# More numbers of one kind than this are remembered in single precision, or they would take more
# memory than the data; where an iteration begins is then foreseen to 1e-7 of its steps.
LONG_STEP: Final = 2**17
# Iterations after which the bound has to be higher with fewer factors, or they stay; and with one
# factor more than are allowed, before a warning says that the bound would like it.
TRIAL_ITERATIONS: Final = 12
CEILING_ITERATIONS: Final = 60
# The most factors of the other views from which a view is predicted, and the sweeps that find them.
MOST_READ_OUT: Final = 100
READ_OUT_SWEEPS: Final = 5
# Landmarks whose values are tried in the holes of a row.
HOLE_DONORS: Final = 50
# The objective by which kernels are learnt is cubic in the rows; they need no more than this. Rows
# from which a median distance is taken.
LEARNING_ROWS: Final = 1000
MEDIAN_ROWS: Final = 1000
# The most steps of its ascent, for widths and for relevances.
LEARNING_STEPS: Final = 30
RELEVANCE_STEPS: Final = 300
# Steps and rows after which starts are compared (with 200 rows, R² of atp7d is .005 lower on folds
# of seeds 1 to 3), and steps after which those of relevances are.
START_STEPS: Final = 10
RACE_ROWS: Final = 300
RACE_STEPS: Final = 20
# Rows of the graph along which a diffusion spreads, and its slowest directions, which are kept.
DIFFUSION_ROWS: Final = 2000
DIFFUSION_DIRECTIONS: Final = 300
# Up to so many samples all are landmarks. Of more, so many candidates for each are drawn at random
# before the choice: it costs a product with each.
AUTO_LANDMARKS: Final = 2000
LANDMARK_CANDIDATES: Final = 4
# Samples that tell what candidates for relevance vectors are worth, besides these themselves; parts
# of the samples by which widths are tried, until so many samples are predicted.
VECTOR_OTHER_ROWS: Final = 2000
VECTOR_PARTS: Final = 4
VECTOR_ENOUGH: Final = 300
