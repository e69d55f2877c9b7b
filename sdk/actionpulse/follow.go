package actionpulse

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/actionpulse/actionpulse/api"
)

// ExecutionEvent is something that happens in an execution. One of its members
// is set.
type ExecutionEvent struct {
	// Execution is the execution after its state has changed.
	Execution *api.Execution
	// Step has begun or ended, as in a trace.
	Step *api.TraceStep
	// Delta is a part of what a streaming model says.
	Delta *ExecutionDelta
}

// ExecutionDelta is a part of what a model says in a step.
type ExecutionDelta struct {
	Step      string `json:"step"`
	Iteration string `json:"iteration"`
	Text      string `json:"text"`
}

// maxEvent is the most that one event may hold, in bytes.
const maxEvent = maxAnswer

// maxReconnects bounds connections in a row that have brought nothing.
const maxReconnects = 5

// errEventTooLarge is why a stream is not read on.
var errEventTooLarge = errors.New("an event is too large")

// errNoEnd is why a stream is opened again: it has ended before the execution.
var errNoEnd = errors.New("the stream ended before the execution")

// Follow yields what happens in an execution from now on, first its present
// state, and ends after the event that tells of its end. That of one that has
// failed is no error here. The server may leave events out for a slow reader,
// but never the last.
//
// When the connection is lost it is opened again, at growing intervals and up
// to five times in a row without news; the present state comes first again,
// and what was missed is in the trace. An error is yielded once and is the
// last.
func (x *Executions) Follow(ctx context.Context, id string) iter.Seq2[ExecutionEvent, error] {
	return func(yield func(ExecutionEvent, error) bool) {
		f := following{yield: yield}
		for failures := 1; ; failures++ {
			err := x.followOnce(ctx, id, &f)
			if f.over {
				return
			}
			if f.news {
				f.news, failures = false, 1
			}
			if ctx.Err() != nil || failures > maxReconnects || !errors.Is(err, errNoEnd) {
				yield(ExecutionEvent{}, err)
				return
			}
			if errSleep := x.link.sleep(ctx, x.link.policy.Delays.After(failures)); errSleep != nil {
				yield(ExecutionEvent{}, err)
				return
			}
		}
	}
}

// following is how far an iteration has come.
type following struct {
	yield func(ExecutionEvent, error) bool
	// news says that the present connection has brought more than the state
	// that each begins with.
	news bool
	// over says that the execution has ended or the reader has left.
	over bool
}

// followOnce yields the events of one connection. Its error holds errNoEnd if
// the stream broke off.
func (x *Executions) followOnce(ctx context.Context, id string, f *following) error {
	c := reads("followExecution", executionPath+"/events", id)
	c.stream = true
	r, err := x.link.send(ctx, c)
	if err != nil {
		return err
	}
	// The events that were read are whole, whether the connection closes well
	// or not.
	defer func() { _ = r.stream.Close() }()
	first := true
	err = eachEvent(r.stream, func(name, data string) error {
		e, known, err := readEvent(name, data)
		if err != nil || !known {
			return err
		}
		f.news = f.news || !first
		first = false
		f.over = e.Execution != nil && hasEnded(e.Execution.Status)
		f.over = !f.yield(e, nil) || f.over
		if f.over {
			return io.EOF
		}
		return nil
	})
	if f.over {
		return nil
	}
	e := c.failure("the stream was cut short")
	e.Err, e.Retryable, e.Attempts = err, true, 1
	return e
}

// readEvent decodes an event; those of kinds that a newer server may add are
// not known.
func readEvent(name, data string) (e ExecutionEvent, known bool, err error) {
	switch name {
	case "execution":
		var answer api.ExecutionAnswer
		err = json.Unmarshal([]byte(data), &answer)
		e.Execution = &answer.Execution
	case "step":
		e.Step = new(api.TraceStep)
		err = json.Unmarshal([]byte(data), e.Step)
	case "delta":
		e.Delta = new(ExecutionDelta)
		err = json.Unmarshal([]byte(data), e.Delta)
	default:
		return e, false, nil
	}
	if err != nil {
		return e, false, fmt.Errorf("an event %s cannot be read: %w", name, err)
	}
	return e, true, nil
}

// eachEvent reads server-sent events until tell returns an error, which it
// returns, or the stream ends, which is errNoEnd.
func eachEvent(stream io.Reader, tell func(name, data string) error) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxEvent)
	var name string
	var data []string
	size := 0
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if len(data) > 0 {
				if err := tell(name, strings.Join(data, "\n")); err != nil {
					return err
				}
			}
			name, data, size = "", nil, 0
		case field == "event":
			name = value
		case field == "data":
			if size += len(value) + 1; size > maxEvent {
				return errors.Join(errNoEnd, errEventTooLarge)
			}
			data = append(data, value)
		}
	}
	return errors.Join(errNoEnd, lines.Err())
}
