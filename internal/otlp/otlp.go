// Package otlp exports what executions have done as traces of OpenTelemetry:
// an execution is a trace, its steps and their calls are spans, and calls of
// models have the names of the semantic conventions for generative AI. It
// exports no inputs, no outputs and nothing that was said to a model.
//
// Invariant: exporting never holds an execution up, and never fails one. What a
// collector does not take is dropped.
package otlp

import (
	"context"
	"fmt"
	"net/url"
	"runtime/debug"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/actionpulse/actionpulse/internal/execution"
)

// Params configures an [Exporter].
type Params struct {
	// Endpoint is the base URL of a collector that takes OTLP over HTTP, such
	// as http://127.0.0.1:4318. Traces go to /v1/traces below it.
	Endpoint string
}

// Exporter sends traces.
type Exporter struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New returns an Exporter, which must be closed. Nothing is sent until there is
// something to send. The headers and limits of the environment variables
// OTEL_EXPORTER_OTLP_… apply.
func New(ctx context.Context, p Params) (*Exporter, error) {
	at, err := url.Parse(p.Endpoint)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("%q is no URL of a collector", p.Endpoint)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(at.JoinPath("v1", "traces").String()))
	if err != nil {
		return nil, fmt.Errorf("set up the export of traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "actionpulse"), attribute.String("service.version", version()),
		)),
	)
	return &Exporter{provider, provider.Tracer("actionpulse/flows")}, nil
}

// version is this program's.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

// Close sends what is left, until the context ends.
func (e *Exporter) Close(ctx context.Context) error {
	if err := e.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("end the export of traces: %w", err)
	}
	return nil
}

// Export exports an execution that has ended. It does not wait.
func (e *Exporter) Export(t *execution.Trace) {
	x := &t.Execution
	begin := x.StartedAt
	if begin.IsZero() {
		begin = x.CreatedAt
	}
	ctx, span := e.tracer.Start(context.Background(), "execute "+x.Flow, trace.WithTimestamp(begin), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(
			attribute.String("actionpulse.execution.id", x.ID), attribute.String("actionpulse.project.id", x.ProjectID),
			attribute.String("actionpulse.flow", x.Flow), attribute.Int64("actionpulse.flow.version", x.Version),
			attribute.String("actionpulse.execution.status", string(x.Status)), attribute.String("actionpulse.charged", x.Charged.String()),
		))
	fail(span, x.Failure)
	e.nodes(ctx, t.Roots())
	span.End(trace.WithTimestamp(x.FinishedAt))
}

// nodes exports steps, their calls and the steps within them.
func (e *Exporter) nodes(ctx context.Context, nodes []execution.Node) {
	for _, n := range nodes {
		s := n.Step
		if s.FinishedAt.IsZero() {
			s.FinishedAt = s.StartedAt
		}
		name := "step " + s.Step
		inner, span := e.tracer.Start(ctx, name, trace.WithTimestamp(s.StartedAt), trace.WithAttributes(
			attribute.String("actionpulse.step", s.Step), attribute.String("actionpulse.step.type", s.Type),
			attribute.String("actionpulse.step.iteration", s.Iteration), attribute.Int("actionpulse.step.attempt", s.Attempt),
		))
		fail(span, s.Failure)
		for _, c := range n.Calls {
			e.call(inner, c)
		}
		e.nodes(inner, n.Inner)
		span.End(trace.WithTimestamp(s.FinishedAt))
	}
}

// call exports one attempt to call something.
func (e *Exporter) call(ctx context.Context, c *execution.Call) {
	name := "http"
	attributes := []attribute.KeyValue{
		attribute.Int("actionpulse.call.attempt", c.Attempt), attribute.String("actionpulse.call.derived_key", c.DerivedKey),
		attribute.String("actionpulse.call.status", string(c.Status)),
	}
	if c.HTTPStatus != 0 {
		attributes = append(attributes, attribute.Int("http.response.status_code", c.HTTPStatus))
	}
	if c.Kind == "model" {
		name = "chat " + c.Model
		attributes = append(attributes,
			attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", c.Provider),
			attribute.String("gen_ai.request.model", c.Model), attribute.String("gen_ai.response.id", c.ProviderRequestID),
			attribute.Int64("gen_ai.usage.input_tokens", c.Usage.Input), attribute.Int64("gen_ai.usage.output_tokens", c.Usage.Output),
			attribute.Int64("gen_ai.usage.cache_read.input_tokens", c.Usage.Cached),
			attribute.Int64("gen_ai.usage.reasoning.output_tokens", c.Usage.Reasoning),
			attribute.String("actionpulse.call.price", c.Price.String()),
		)
	}
	_, span := e.tracer.Start(ctx, name, trace.WithTimestamp(c.StartedAt), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	if c.Status != execution.CallSucceeded {
		reason := string(c.Status)
		if c.HTTPStatus != 0 {
			reason = strconv.Itoa(c.HTTPStatus)
		}
		span.SetAttributes(attribute.String("error.type", reason))
		span.SetStatus(codes.Error, c.Message)
	}
	span.End(trace.WithTimestamp(c.FinishedAt))
}

// fail marks a span as failed.
func fail(span trace.Span, f *execution.Failure) {
	if f == nil {
		return
	}
	span.SetAttributes(attribute.String("error.type", string(f.Code)))
	span.SetStatus(codes.Error, f.Message)
}
