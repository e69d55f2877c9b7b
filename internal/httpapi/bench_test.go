package httpapi

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
)

// bench sends one body again and again over 64 connections.
func bench(b *testing.B, url, body string) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	b.SetParallelism(32)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequestWithContext(b.Context(), "POST", url+"/v1/track", strings.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer server")
			answer, err := client.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkTrack is all that this package does for a request, beside
// BenchmarkBare, which is net/http answering 202 and the client alone.
func BenchmarkTrack(b *testing.B) {
	for name, size := range map[string]int{"one": 300, "batch": 100_000} {
		b.Run(name, func(b *testing.B) {
			s := setup(b)
			s.intake.track = func(context.Context, []byte) (api.TrackResponse, error) {
				return api.TrackResponse{Accepted: 1}, nil
			}
			bench(b, s.url, string(padded(size)))
		})
	}
}

func BenchmarkBare(b *testing.B) {
	for name, size := range map[string]int{"one": 300, "batch": 100_000} {
		b.Run(name, func(b *testing.B) {
			s := &bundle{}
			s.serve(b, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(w, "{}")
			})})
			bench(b, s.url, string(padded(size)))
		})
	}
}

// BenchmarkDecode reads a body of a few members by its schema.
func BenchmarkDecode(b *testing.B) {
	x := &exchange{body: &buffer{data: []byte(`{"name":"abc","kind":"red","count":3,"note":null,"steps":[{"event":"a"},{"event":"b"}],"extra":{"a":1,"b":"x"}}`)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode[thing](x); err != nil {
			b.Fatal(err)
		}
	}
}
