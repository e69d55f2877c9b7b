package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// maxWindow is the largest zstd window that is read: what the web's zstd
// allows, and the most a decoder keeps of what it has decoded.
const maxWindow = 8 << 20

// inflater decodes one body at a time.
type inflater struct {
	gzip *gzip.Reader
	zstd *zstd.Decoder
}

// inflaters are a fixed number of decoders, so that their memory is bounded
// however many requests there are. A body is whole in memory before it waits
// for one, so none is ever held up by a slow client.
type inflaters struct{ free chan *inflater }

func newInflaters() (*inflaters, error) {
	n := 2 * runtime.GOMAXPROCS(0)
	all := &inflaters{free: make(chan *inflater, n)}
	for range n {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecodeBuffersBelow(0))
		if err != nil {
			return nil, fmt.Errorf("make a zstd decoder: %w", err)
		}
		all.free <- &inflater{gzip: new(gzip.Reader), zstd: z}
	}
	return all, nil
}

// inflate decodes coded into buf and stops as soon as there are more than
// limit bytes. It returns errTooLarge or errNoMemory as [buffer.fill] does,
// unsupported_media_type for a window that is too large, and invalid_json for
// bytes that are not what they are said to be.
func (all *inflaters) inflate(buf *buffer, e encoding, coded []byte, limit int) error {
	in := <-all.free
	defer func() { all.free <- in }()
	source := bytes.NewReader(coded)
	var decoded io.Reader = in.gzip
	var err error
	if e == zstandard {
		decoded, err = in.zstd, in.zstd.Reset(source)
	} else {
		err = in.gzip.Reset(source)
	}
	if err == nil {
		err = buf.fill(decoded, limit, int64(len(coded)))
	}
	source.Reset(nil) // the decoder stays, the body does not
	switch {
	case err == nil, errors.Is(err, errTooLarge), errors.Is(err, errNoMemory):
		return err
	case errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return errTooLarge
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return unsupported("the zstd window must be at most 8 MiB")
	default:
		return fault.Wrap(api.CodeInvalidJSON, err, "the body is not valid %s", e)
	}
}
