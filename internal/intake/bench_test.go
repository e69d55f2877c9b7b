package intake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// sampleBatch returns a batch of n events like those a web shop sends.
func sampleBatch(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"events":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"event_id":%q,"event":"product_view","user_id":"user_%04d","session_id":"sess_%06d","ts":"2026-05-01T10:00:00Z","properties":{"platform":"desktop","acquisition_channel":"email","price":12.5,"position":%d}}`,
			uuid.NewString(), i%600, i, i)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func BenchmarkBatch(b *testing.B) {
	body := sampleBatch(500)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		p := newParser()
		got, err := p.batch(body)
		if err != nil || len(got.items) != 500 {
			b.Fatal(err)
		}
		p.release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/event")
}
