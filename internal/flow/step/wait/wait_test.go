package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/step/steptest"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func TestConformance(t *testing.T) {
	t.Parallel()
	broken := map[string]string{
		`{"for": "soon"}`: "steps[0].for", `{"for": "25h"}`: "steps[0].for", `{"for": "-1s"}`: "steps[0].for", `{"for": ""}`: "steps[0].for", `{"for": "${"}`: "steps[0].for",
		`{"until": "tomorrow"}`: "steps[0].until", `{"until": "2030-01-02"}`: "steps[0].until", `{"until": "${nowhere}"}`: "steps[0].until",
	}
	failing := []string{
		`{"for": "${input.nothing}"}`, `{"for": "${'25h'}"}`, `{"for": "${5}"}`, `{"until": "${'x'}"}`, `{"until": "2031-01-01T00:00:00Z"}`, `{"until": "${1 / 0}"}`,
	}
	for members, want := range map[string]string{
		`{"for": "5s"}`:                             `{"output": {"until": "2030-01-02T03:04:10Z"}}`,
		`{"for": "${input.minutes}m"}`:              `{"output": {"until": "2030-01-02T03:06:05Z"}}`,
		`{"until": "2030-01-02T05:00:00.25+01:00"}`: `{"output": {"until": "2030-01-02T04:00:00.25Z"}}`,
	} {
		steptest.Run(t, steptest.Case{
			Type: Type{}, Effect: step.Timed, Members: members, Want: want, Input: `{"minutes": 2}`,
			Started: began, Now: began.Add(time.Hour),
			Refused: []string{`{}`, `{"for": "5s", "until": "2030-01-02T05:00:00Z"}`, `{"for": 5}`, `{"for": "5s", "jitter": 1}`},
			Broken:  broken, Failing: failing,
		})
	}
}

func program1(t *testing.T, members map[string]any) step.Program {
	t.Helper()
	p, err := Type{}.Compile(&step.Compiler{Path: "steps[0]", Members: members, Step: &step.Step{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAWaitGoesOnFromItsStart: what has passed before an interruption counts.
func TestAWaitGoesOnFromItsStart(t *testing.T) {
	t.Parallel()
	for already, want := range map[time.Duration]time.Duration{0: time.Hour, 20 * time.Minute: 40 * time.Minute, time.Hour: 0, 9 * time.Hour: 0} {
		synctest.Test(t, func(t *testing.T) {
			p, before := program1(t, map[string]any{"for": "1h"}), time.Now()
			_, err := p.Run(t.Context(), &step.Run{
				Scope: template.NewScope(nil, nil), Started: before.Add(-already), Now: time.Now,
			})
			if took := time.Since(before); err != nil || took != want {
				t.Errorf("after %v: took %v, %v, want %v", already, took, err, want)
			}
		})
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		before := time.Now()
		time.AfterFunc(time.Minute, func() { cancel(stopped) })
		p := program1(t, map[string]any{"for": "1h"})
		_, err := p.Run(ctx, &step.Run{Scope: template.NewScope(nil, nil), Started: before, Now: time.Now})
		if took := time.Since(before); took != time.Minute || !errors.Is(err, stopped) {
			t.Errorf("took %v, %v, want a minute and the cause", took, err)
		}
	})
}
