package actionpulse

import (
	"context"
	"encoding/json"

	"github.com/actionpulse/actionpulse/api"
)

// Server asks about the server itself. No credential is sent.
type Server struct{ link *link }

// Health reports whether the server's process answers. It is asked once: the
// answer of this moment is what is wanted.
func (s *Server) Health(ctx context.Context) (*api.Status, error) {
	return s.now(ctx, "getHealth", "/healthz")
}

// Ready reports whether the server can work; unavailable if not. It is asked
// once, as Health is.
func (s *Server) Ready(ctx context.Context) (*api.Status, error) {
	return s.now(ctx, "getReadiness", "/readyz")
}

func (s *Server) now(ctx context.Context, operation, path string) (*api.Status, error) {
	c := reads(operation, path)
	c.open, c.once = true, true
	return fetch[api.Status](ctx, s.link, c)
}

// OpenAPI returns the API document, OpenAPI 3.1.
func (s *Server) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	return s.document(ctx, "getOpenAPI", "/api/openapi.json")
}

// FlowSchema returns the JSON Schema of the definitions of flows.
func (s *Server) FlowSchema(ctx context.Context) (json.RawMessage, error) {
	return s.document(ctx, "getFlowSchema", "/api/flow.schema.json")
}

func (s *Server) document(ctx context.Context, operation, path string) (json.RawMessage, error) {
	c := reads(operation, path)
	c.open = true
	document, err := fetch[json.RawMessage](ctx, s.link, c)
	if err != nil {
		return nil, err
	}
	return *document, nil
}
