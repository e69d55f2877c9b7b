package sendfile

import (
	"context"
	"errors"
	"io"
)

// Source is one input to read.
type Source struct {
	// Name is shown in messages.
	Name string
	// Open is called when it is the source's turn.
	Open func() (io.ReadCloser, error)
}

// Read is what a feed delivers: an item, or the error that ended it.
type Read struct {
	Item Item
	Err  error
}

// readAhead is how many items are read before they are asked for.
const readAhead = 1000

// Feed reads sources one after another in a goroutine of its own, so that a
// reader that blocks does not keep the sender from stopping. The channel is
// closed after the last item, after the first error, which it carries, or
// when ctx is done.
func Feed(ctx context.Context, sources []Source, o Options) <-chan Read {
	out := make(chan Read, readAhead)
	go func() {
		defer close(out)
		for _, s := range sources {
			if err := feed(ctx, s, o, out); err != nil {
				select {
				case out <- Read{Err: err}:
				case <-ctx.Done():
				}
				return
			}
		}
	}()
	return out
}

func feed(ctx context.Context, s Source, o Options, out chan<- Read) (err error) {
	in, err := s.Open()
	if err != nil {
		return &InputError{Source: s.Name, Err: err}
	}
	defer func() {
		if e := in.Close(); e != nil && err == nil {
			err = &InputError{Source: s.Name, Err: e}
		}
	}()
	r, err := NewReader(s.Name, in, o)
	if err != nil {
		return err
	}
	for {
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case out <- Read{Item: item}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
