package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

const (
	// dialect is the JSON Schema that definitions are described in, and in
	// which they describe their input.
	dialect = "https://json-schema.org/draft/2020-12/schema"

	idPattern       = "^[a-z][a-z0-9_]{0,63}$"
	durationPattern = `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// redactPattern is a path into what expressions see everywhere: input.email,
	// input.people[*].name, steps.say.text.
	redactPattern = `^(input|context|steps)(\.[A-Za-z0-9_-]+|\[([0-9]+|\*)\])*$`

	maxSteps   = 200
	maxRetries = 5
)

// common are the members that every step has.
var common = map[string]any{
	"id":      map[string]any{"type": "string", "pattern": idPattern, "description": "The step's name, unique in the whole definition: steps.<id>."},
	"type":    map[string]any{"type": "string"},
	"if":      map[string]any{"type": []any{"string", "boolean"}, "description": "Whether the step runs; one that does not has the value null."},
	"timeout": durationSchema("Limits each attempt."),
	"retries": map[string]any{
		"type": "integer", "minimum": int64(0), "maximum": int64(maxRetries),
		"description": "Of steps that call: how often a call that has certainly not succeeded is repeated.",
	},
	"on_interrupt": map[string]any{
		"enum":        []any{string(step.Fail), string(step.Retry)},
		"description": "Of steps that call: what becomes of a call of which nobody knows whether it has happened.",
	},
}

// callsOnly are the common members that steps of quiet types do not have.
var callsOnly = []string{"on_interrupt", "retries"}

func durationSchema(description string) map[string]any {
	return map[string]any{"type": "string", "pattern": durationPattern, "description": description + ` A time like "30s" or "1m30s".`}
}

func amountSchema(description string) map[string]any {
	return map[string]any{"type": []any{"string", "number"}, "description": description + ` A decimal like "0.05".`}
}

func object(properties map[string]any, required ...any) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// Schema returns a JSON Schema (2020-12) of definitions whose steps have the
// given types: the one that definitions are checked with.
func Schema(types []step.Type) json.RawMessage {
	encoded, err := template.Encode(languageSchema(types))
	if err != nil {
		panic(fmt.Sprintf("flow: the schemas of the types are no JSON: %v", err)) // a fault of a type, which its test finds
	}
	return encoded
}

func languageSchema(types []step.Type) map[string]any {
	defs := map[string]any{"amount": amountSchema("An amount of credits."), "steps": map[string]any{
		"type": "array", "maxItems": int64(maxSteps), "items": map[string]any{"$ref": "#/$defs/step"},
	}}
	names, rules := []any{}, []any{}
	for _, t := range types {
		names = append(names, t.Name())
		defs["step_"+t.Name()] = stepSchema(t)
		rules = append(rules, map[string]any{
			"if":   map[string]any{"properties": map[string]any{"type": map[string]any{"const": t.Name()}}, "required": []any{"type"}},
			"then": map[string]any{"$ref": "#/$defs/step_" + t.Name()},
		})
	}
	defs["step"] = map[string]any{
		"type": "object", "properties": map[string]any{"type": map[string]any{"enum": names}}, "required": []any{"id", "type"}, "allOf": rules,
	}
	whole := object(map[string]any{
		"input":  map[string]any{"type": "object", "description": "A JSON Schema (2020-12) that every input must fulfil; formats count."},
		"trace":  traceSchema(),
		"steps":  map[string]any{"$ref": "#/$defs/steps"},
		"output": map[string]any{"description": "What the flow gives; texts may hold expressions."},
		"price":  priceSchema(),
		"limits": object(map[string]any{
			"timeout": durationSchema("Limits the execution; at most 24h, by default 5m."),
			"budget":  amountSchema("The most that tokens may cost."),
		}),
	}, "steps")
	whole["$schema"], whole["title"], whole["$defs"] = dialect, "A flow", defs
	return whole
}

func traceSchema() map[string]any {
	return object(map[string]any{
		"record": map[string]any{"type": "boolean", "description": "Whether requests and responses of calls are kept; true by default."},
		"redact": map[string]any{
			"type": "array", "maxItems": int64(100), "items": map[string]any{"type": "string", "pattern": redactPattern, "maxLength": int64(200)},
			"description": "Paths of values that are blanked where they are kept: input.email.",
		},
	})
}

func priceSchema() map[string]any {
	amount := map[string]any{"$ref": "#/$defs/amount"}
	return object(map[string]any{
		"credit_type": map[string]any{"type": "string", "pattern": unitPattern},
		"per_run":     amount,
		"per_step": map[string]any{
			"type": []any{"string", "number", "object"}, "additionalProperties": amount,
			"description": "For each finished run of a step: one amount for every step, or amounts by the ids of steps.",
		},
		"tokens": map[string]any{
			"type": "object", "maxProperties": int64(200),
			"additionalProperties": object(map[string]any{"input": amount, "output": amount, "cached": amount}),
			"description":          "For 1,000 tokens, by the name of the model; * is for all others.",
		},
	})
}

// stepSchema joins the members of a type with those that every step has.
func stepSchema(t step.Type) map[string]any {
	decoded, err := template.Decode(t.Schema())
	own, ok := decoded.(map[string]any)
	if err != nil || !ok {
		panic(fmt.Sprintf("flow: the schema of steps of type %s is no object: %v", t.Name(), err))
	}
	whole := maps.Clone(own)
	properties := maps.Clone(common)
	if _, quiet := t.(step.Quiet); quiet {
		for _, name := range callsOnly {
			delete(properties, name)
		}
	}
	members, _ := own["properties"].(map[string]any)
	maps.Copy(properties, members)
	required, _ := own["required"].([]any)
	whole["properties"], whole["required"] = properties, slices.Concat([]any{"id", "type"}, required)
	return whole
}
