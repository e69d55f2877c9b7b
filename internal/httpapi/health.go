package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/common/expfmt"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

var healthOperation = operation{
	id: "getHealth", tag: tagServer, summary: "Say that the process is alive",
	replies: replyOK("It is.", api.Status{}),
}

var readyOperation = operation{
	id: "getReadiness", tag: tagServer, summary: "Say whether the process should get requests",
	replies: replyOK("It should.", api.Status{}),
	errors:  codes(api.CodeUnavailable),
}

var metricsOperation = operation{
	id: "getMetrics", tag: tagServer, summary: "Show every counter in Prometheus' text format",
	replies: []reply{{status: http.StatusOK, doc: "The counters.", body: "", kind: "text/plain"}},
}

// statusOK is the body of an answer that says yes.
var statusOK = []byte("{\"status\":\"ok\"}\n")

// health says that the process is alive.
func (*service) health(*exchange) (answer, error) {
	return answer{status: http.StatusOK, body: statusOK}, nil
}

// ready says whether the process should get requests: 503 unavailable while
// it starts, drains or refuses.
func (s *service) ready(*exchange) (answer, error) {
	err := s.Ready()
	if err == nil {
		return answer{status: http.StatusOK, body: statusOK}, nil
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == api.CodeUnavailable {
		return answer{}, err
	}
	return answer{}, fault.Wrap(api.CodeUnavailable, err, "the server is not ready")
}

// metrics shows every counter in Prometheus' text format.
func (s *service) metrics(*exchange) (answer, error) {
	families, err := s.Gatherer.Gather()
	if err != nil {
		return answer{}, fmt.Errorf("gather metrics: %w", err)
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	var out bytes.Buffer
	encoder := expfmt.NewEncoder(&out, format)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return answer{}, fmt.Errorf("encode metrics: %w", err)
		}
	}
	return answer{status: http.StatusOK, contentType: string(format), body: out.Bytes()}, nil
}
