"""The words for what is read of weights together with data, as a run keeps them for its page.

These are readings of several things at once (weights, increments, profiles, token counts), not of one record,
so they are no `Measure`; `run.weights.data` reads them. The keys are those of `Measure.explanation`.
"""

from __future__ import annotations

from collections.abc import Mapping

_BAO = "Bao, Hataya & Karakida 2024, arXiv 2402.02098"
_MACHINA = "after Machina & Mercer 2024: a reconstruction, their method is not public"
_RANDOM = "the mean over random W: Gaussian factors of the same norms, the same Σ"
_OTHERS = (
    "the mean over the predictions of the other heads of the layer and their mirror images (t reversed); "
    "none where there is one head"
)

EXPLANATIONS: Mapping[str, Mapping[str, object]] = {
    "walk_slope": {
        "family": "localisation",
        "title": "walk slope",
        "formula": "the slope of log E‖x_{t+s} − x_t‖² on log s",
        "says": "Whether the inputs of attention walk at random (1) or stay where they are (0). The theory "
        "of localisation is for a walk.",
        "misleads": "Norms before attention bound the inputs: no slope stays at 1 for long sequences.",
        "null": "0: positions that do not depend on each other",
        "interval": "jackknife over groups of whole documents, from 8 on",
        "source": _BAO,
        "range": "-inf to any size",
    },
    "trace_on_data": {
        "family": "localisation",
        "title": "trace of W on data",
        "formula": "tr(WΣ), Σ the covariance of x_{t+1} − x_t",
        "says": "Where the scores lean: to late keys if positive, to early ones if negative. The note has "
        "the regime.",
        "misleads": "Rotary position and biases are left out of W; Σ is that of a walk's steps, which the "
        "inputs need not be: see the walk slope.",
        "null": "0: the mean over random W",
        "interval": "none",
        "source": _BAO,
        "range": "-inf to any size",
    },
    "frobenius_on_data": {
        "family": "localisation",
        "title": "size of W on data",
        "formula": "‖Σ^½WΣ^½‖_F",
        "says": "How much the scores of a walk with these steps vary: far above √12 no signal passes.",
        "misleads": "As the trace on data.",
        "null": _RANDOM,
        "interval": "none",
        "source": _BAO,
        "range": "0 to any size",
    },
    "propagation_agreement": {
        "family": "localisation",
        "title": "agreement with the theory",
        "formula": "Spearman of ρ(t) with the attention of the last query, over 32 stretches of t/T",
        "says": "Whether attention falls where W, and the data's own increments, say that signal passes: "
        "above its null where a head's own W tells more than that of its neighbours. The note of a layer has "
        "p, how often heads that are given each other's predictions exceed their nulls by as much.",
        "misleads": "Chance is not 0: all heads of a layer may look late, and half of all W predict so. Over "
        "inputs that do not walk the theory promises nothing: see the walk slope. Heads see the same data; "
        "where their W are alike their profiles err together, and p is not to be trusted.",
        "null": _OTHERS,
        "interval": "none: the layer's p is from orders of its heads, all of them up to 7 heads, else 9,999",
        "source": _BAO,
        "range": "-1 to 1",
    },
    "softmax_agreement": {
        "family": "localisation",
        "title": "agreement with a walk's attention",
        "formula": "Spearman of E[softmax] over walks with the attention of the last query",
        "says": "The same with the true softmax in place of the theory's piecewise-linear one.",
        "misleads": "As the agreement with the theory.",
        "null": _OTHERS,
        "interval": "none: as the agreement with the theory",
        "source": "isoscope",
        "range": "-1 to 1",
    },
    "regime_density": {
        "family": "localisation",
        "title": "attention where the regime says",
        "formula": "mean density of the last query's attention over the stretch that the regime names",
        "says": "Above 1 where a localised head does look where its regime says: the late half, the early "
        "half, or beside the middle.",
        "misleads": "Heads that are undecided, uniform or vanishing have none. The first key often takes "
        "much whatever W says.",
        "null": "1: uniform attention",
        "interval": "none",
        "source": "isoscope",
        "range": "0 to any size",
    },
    "bias_cancels": {
        "family": "norm",
        "title": "does β cancel the drift",
        "formula": "cos(β, −E[γ⊙x̂])",
        "says": "1 where the final norm's β points against the drift that γ leaves, −1 where it adds to it.",
        "misleads": "A direction only: a short β cancels little. See the drift it removes.",
        "null": "0: a β that points anywhere",
        "interval": "jackknife over groups of whole documents, from 8 on",
        "source": _MACHINA,
        "range": "-1 to 1",
    },
    "drift_removed_by_bias": {
        "family": "norm",
        "title": "drift removed by β",
        "formula": "1 − ‖E[γ⊙x̂] + β‖ / ‖E[γ⊙x̂]‖",
        "says": "Which share of the drift β takes away; negative where it adds.",
        "misleads": "Small data make the mean longer than it is, and the share smaller.",
        "null": "1 − √(m² + ‖β‖²)/m, m = ‖E[γ⊙x̂]‖: a β of that length at right angles to the mean",
        "interval": "jackknife over groups of whole documents, from 8 on",
        "source": "isoscope",
        "range": "-inf to 1",
    },
    "frequency_norm_correlation": {
        "family": "vocabulary",
        "title": "frequency and norm",
        "formula": "Spearman of a token's frequency in the data with ‖w‖",
        "says": "Whether frequent tokens have longer rows (positive) or shorter ones (negative).",
        "misleads": "Only tokens that occur in the data count; most occur once or twice and share a rank.",
        "null": "0",
        "interval": "Fisher's z over token types",
        "source": "Gao et al. 2019; Biś et al. 2021",
        "range": "-1 to 1",
    },
    "frequency_drift_correlation": {
        "family": "vocabulary",
        "title": "frequency and drift",
        "formula": "Spearman of a token's frequency in the data with w·w̄/‖w̄‖",
        "says": "Negative where rare tokens lie further along the common direction, as the theory says.",
        "misleads": "As for the norm; rare tokens that the data lacks are the ones the theory is about.",
        "null": "0",
        "interval": "Fisher's z over token types",
        "source": "Gao et al. 2019; Biś et al. 2021",
        "range": "-1 to 1",
    },
}
