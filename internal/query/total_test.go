package query

import (
	"reflect"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// TestMetricIsReadAsATrend: what a trend takes, a metric takes and means the
// same by; what a trend refuses, a metric refuses for the same member.
func TestMetricIsReadAsATrend(t *testing.T) {
	t.Parallel()
	for _, members := range []string{
		``, `"measure":"persons"`, `"event":"a"`, `"event":["a","b"]`, `"event":null`, `"measure":null`,
		`"where":[{"property":"properties.plan","op":"eq","value":"pro"}]`, `"where":[{"property":"traits.n","op":"in","value":[1,"2",true]}]`,
		`"measure":"sum"`, `"event":""`, `"event":7`, `"event":[]`, `"where":[{"property":"plan","op":"set"}]`,
		`"where":[{"property":"properties.plan","op":"gt","value":true}]`, `"where":{}`, `"colour":1`,
	} {
		whole := `{"type":"trend","interval":"day",` + january
		if members != "" {
			whole += "," + members
		}
		asked, trendErr := run(t, whole+"}")
		m, err := ParseMetric([]byte("{" + members + "}"))
		if fault.CodeOf(err) != fault.CodeOf(trendErr) || fieldIn(err) != fieldIn(trendErr) {
			t.Errorf("%s: %v; a trend: %v", members, err, trendErr)
		}
		if err != nil {
			continue
		}
		q := asked.(Trend) //nolint:forcetypeassert // a panic says as much
		if want := (Metric{Measure: q.Measure, Events: q.Events, Where: q.Where}); !reflect.DeepEqual(m, want) {
			t.Errorf("%s: %+v; a trend: %+v", members, m, want)
		}
	}
	for _, body := range []string{`{"measure":"count"`, `{"measure":"count","measure":"count"}`, "{\"event\":\"\xff\"}"} {
		if _, err := ParseMetric([]byte(body)); fault.CodeOf(err) != api.CodeInvalidJSON {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func fieldIn(err error) any {
	if f, ok := err.(*fault.Error); ok { //nolint:errorlint // as it is returned
		return f.Details["field"]
	}
	return nil
}
