"""The verb `explain`, and the `Predict` that experiments with tables share."""

from parnassus.errors import convert_computation_errors

COMMANDS = {"explain": "Attribute a model's predictions to their features by SHAP values with standard errors."}

RUN_EXAMPLES = {"explain": ("explain --model {run} --data {data}", "predict")}


def explain(arguments: list[str]) -> int:
    """Explain rows of a table: compute their SHAP values, print them and write a figure."""
    from parnassus.shapley.commands.compute_explanation import compute_explanation
    from parnassus.shapley.commands.printing import print_explanation
    from parnassus.shapley.commands.settings import parse_settings

    settings = parse_settings(arguments)
    with convert_computation_errors():
        explanation = compute_explanation(settings)
    print_explanation(explanation, max_display=settings.max_display, out=settings.out, as_json=settings.json)
    return 0
