package openai

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/actionpulse/actionpulse/internal/callhttp"
	"github.com/actionpulse/actionpulse/internal/jsonsyntax"
	"github.com/actionpulse/actionpulse/internal/model"
)

// done is the last event of a stream.
const done = "[DONE]"

// chunk is one event of a stream.
type chunk struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Index        int             `json:"index"`
		Delta        json.RawMessage `json:"delta"`
		FinishReason string          `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
}

// stream is what has come of a stream so far.
type stream struct {
	id, model, finish string
	message           map[string]any
	text              strings.Builder
	usage             *usage
	emit              func(string)
}

// readStream puts an answer together. Without a reason to finish it has not
// ended, whatever came before.
func readStream(body io.Reader, emit func(string)) (*model.Completion, error) {
	s := &stream{message: map[string]any{}, emit: emit}
	for in := newEvents(body); ; {
		data, err := in.next()
		if err == nil && strings.TrimSpace(data) != done {
			err = s.add(data)
			if err == nil {
				continue
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, s.failed(err)
		}
		return s.end()
	}
}

// failed adds what is known of a stream that has not ended.
func (s *stream) failed(err error) *model.Error {
	e, ok := errors.AsType[*model.Error](err)
	switch {
	case ok:
	case errors.Is(err, errTooLarge):
		e = tooLarge()
	default:
		e = &model.Error{Outcome: model.Unknown, Retryable: true, Message: callhttp.Explain(err), Err: err}
	}
	e.Usage, e.RequestID = s.usage.model(), shorten(s.id)
	return e
}

// add takes one event.
func (s *stream) add(data string) error {
	if e := readEnvelope([]byte(data)); e.there {
		if counted := readUsage([]byte(data)); counted != nil {
			s.usage = counted
		}
		return spoken(e, s.usage.model())
	}
	var c chunk
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		return &model.Error{Outcome: model.Unknown, Message: "an event of the stream is not one of a chat completion", Err: err}
	}
	if s.id == "" {
		s.id = c.ID
	}
	if c.Model != "" {
		s.model = c.Model
	}
	if c.Usage != nil {
		s.usage = c.Usage
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if choice.FinishReason != "" {
			s.finish = choice.FinishReason
		}
		if err := s.addDelta(choice.Delta); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) addDelta(raw json.RawMessage) error {
	delta, err := decodeDelta(raw)
	if err != nil {
		return &model.Error{Outcome: model.Unknown, Message: "an event of the stream is not one of a chat completion", Err: err}
	}
	merge(s.message, delta)
	if text, ok := delta["content"].(string); ok && text != "" {
		s.text.WriteString(text)
		s.emit(text)
	}
	if s.text.Len() > maxAnswer {
		return errTooLarge
	}
	return nil
}

func (s *stream) end() (*model.Completion, error) {
	if s.finish == "" {
		return nil, s.failed(&model.Error{Outcome: model.Unknown, Retryable: true, Message: "the stream ended before the answer did"})
	}
	message, err := jsonsyntax.Marshal(finished(s.message))
	if err != nil {
		return nil, s.failed(err)
	}
	if len(message) > maxAnswer {
		return nil, s.failed(errTooLarge)
	}
	return &model.Completion{
		Text: s.text.String(), Message: message, FinishReason: s.finish, Model: s.model, Usage: s.usage.model(), RequestID: shorten(s.id),
	}, nil
}
