package e2e_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// stored_through must never say more than is true: whatever was acknowledged
// before that time is in the answer, also while events come in.
func TestStoredThroughIsTrueUnderLoad(t *testing.T) {
	r := apptest.New(t, "--materializer.max_delay", "20ms").MustServe()
	var mu sync.Mutex
	var acknowledged []time.Time // when each event's 202 was there
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				status, answer := r.Post("/v1/track", r.Setup.ServerKey, `{"events":[{"event":"e","anon_id":"a"},{"event":"e","anon_id":"a"}]}`)
				now := time.Now()
				if status != http.StatusAccepted {
					t.Errorf("%d %v", status, answer)
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, now, now)
				mu.Unlock()
			}
		})
	}
	body := fmt.Sprintf(`{"type":"breakdown","by":"event","measure":"count","from":%q,"to":%q}`,
		time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	for range 60 {
		status, answer := r.Post("/api/v1/projects/"+r.Setup.Project.ID+"/query", r.Setup.AccessToken, body)
		if status != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
		through, err := time.Parse(time.RFC3339, answer["stored_through"].(string)) //nolint:forcetypeassert // a panic says as much
		if err != nil {
			t.Fatal(err)
		}
		inAnswer := 0.0
		if items := answer["items"].([]any); len(items) > 0 { //nolint:forcetypeassert // as above
			inAnswer = items[0].(map[string]any)["value"].(float64) //nolint:forcetypeassert // as above
		}
		before := 0
		mu.Lock()
		for _, at := range acknowledged {
			if at.Before(through) {
				before++
			}
		}
		mu.Unlock()
		if inAnswer < float64(before) {
			t.Fatalf("stored_through %v: %d events were acknowledged before it, %v are in the answer", through, before, inAnswer)
		}
	}
	close(stop)
	senders.Wait()
	mu.Lock()
	total := len(acknowledged)
	mu.Unlock()
	if stored := rows(t, r); len(stored) != total {
		t.Errorf("%d stored, %d acknowledged", len(stored), total)
	}
}
