"""The fields of a rule that jobs are held to; names, titles, kinds and texts are Ganeti's."""

from common.model.filter_rule import FilterRule
from coordinator.queries.field import Field, Kind, table


class FilterRuleRow:
    nodes = ()  # none of which has to be asked for anything

    def __init__(self, rule: FilterRule) -> None:
        self.rule = rule


# fmt: off
_FIELDS: tuple[Field[FilterRuleRow], ...] = (
    Field("watermark", "Watermark", Kind.NUMBER, "Watermark", lambda row: row.rule.watermark),
    Field("priority", "Priority", Kind.NUMBER, "Priority", lambda row: row.rule.priority),
    Field("predicates", "Predicates", Kind.OTHER, "Predicates",
          lambda row: [list(predicate) for predicate in row.rule.predicates]),
    Field("action", "Action", Kind.OTHER, "Action", lambda row: row.rule.wire_action),
    Field("reason_trail", "ReasonTrail", Kind.OTHER, "Reason trail",
          lambda row: [list(entry) for entry in row.rule.reason_trail]),
    Field("uuid", "UUID", Kind.TEXT, "Network UUID", lambda row: row.rule.uuid),
)
# fmt: on
FILTER_RULE_FIELDS = table(_FIELDS)
