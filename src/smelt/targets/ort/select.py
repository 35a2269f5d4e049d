"""Selection: the cheapest form of each choice under a table of costs.

A rule matches the form in the model, looks its sizes up in the table, and builds another form only
if that is cheaper beyond noise. A rejected form is a near miss with the ratio.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.rule import Build, Match, Miss, Replacement, Rule
from smelt.targets.ort import attention_forms, product_forms, row_forms
from smelt.targets.ort.costs import GAIN, Costs, default_costs, read_costs
from smelt.targets.ort.form import Form
from smelt.targets.ort.options import Options
from smelt.targets.ort.weights import rules_for_weights


def rules_for(options: Options) -> Sequence[Rule]:
    """Return the rules for the table and the choices that ``options`` name."""
    weights = rules_for_weights(options)
    if "all" in options.kept:
        return weights
    costs = read_costs(options.costs) if options.costs else default_costs()
    forms = [
        Rule(f"{form.choice.name}:{form.name}", form.pattern, _priced_builder(costs, form))
        for form in (*row_forms.FORMS, *product_forms.FORMS, *attention_forms.FORMS)
        if form.choice.name not in options.kept
    ]
    return [*weights, *forms]


def _is_measured(node: ir.Node) -> bool:
    """True for float32, the element type of the measured table; others stay unchanged."""
    read = (value.dtype for value in node.inputs if value is not None)
    all_float = all(value.dtype in (ir.DataType.FLOAT, None) for value in node.outputs)
    return all_float and not any(
        d and d.is_floating_point() and d != ir.DataType.FLOAT for d in read
    )


def _priced_builder(costs: Costs, form: Form) -> Build:
    """Return a builder that builds ``form`` only if it is cheaper at the sizes of the match."""

    def priced(m: Match, b: Builder) -> Replacement:
        """Build ``form``, or return a Miss if it is not cheaper."""
        if not _is_measured(m.root):
            return Miss("an operand is not float32, and costs are measured for float32 only")
        sizes = form.sizes(m)
        if sizes is None or isinstance(sizes, Miss):
            return sizes
        ratio = costs.ratio(form.choice, form.name, sizes)
        if ratio is None:
            return Miss(f"the table has no costs of {form.choice.name}")
        if ratio > GAIN:
            return Miss(
                f"{form.name} takes {ratio:.2f} of the time of the nodes that it would replace"
            )
        return form.build(m, b)

    return priced
