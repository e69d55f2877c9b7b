package actionpulsetest

import (
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/actionpulse/actionpulse/api"
)

// codedSlack is how much larger than its limit a body may be in transit when it
// is coded.
const codedSlack = 64 << 10

var errTooLarge = errors.New("the body is too large")

// readBody reads the body to its end and undoes its coding. It refuses with
// unsupported_media_type, payload_too_large and invalid_json.
func (x *exchange) readBody() error {
	if err := x.checkMedia(); err != nil {
		return err
	}
	coded, err := x.coded()
	if err != nil {
		return err
	}
	limit := x.route.limit
	if coded {
		limit += codedSlack
	}
	x.body, err = readAtMost(x.r.Body, limit)
	if err == nil && coded {
		x.body, err = inflate(x.body, x.route.limit)
	}
	switch {
	case errors.Is(err, errTooLarge):
		return refuse(api.CodePayloadTooLarge, "the body is too large").with("limit_bytes", x.route.limit)
	case err != nil:
		return refuse(api.CodeInvalidJSON, "the body is malformed in transit")
	default:
		return nil
	}
}

func readAtMost(r io.Reader, limit int) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(body) > limit {
		err = errTooLarge
	}
	return body, err
}

func inflate(coded []byte, limit int) ([]byte, error) {
	r, err := gzip.NewReader(strings.NewReader(string(coded)))
	if err != nil {
		return nil, err
	}
	return readAtMost(r, limit)
}

// checkMedia refuses content types that are not JSON in UTF-8; intake reads
// text/plain as JSON.
func (x *exchange) checkMedia() error {
	values := x.r.Header["Content-Type"]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil
	}
	if len(values) > 1 {
		return unsupported("send one Content-Type")
	}
	media, params, err := mime.ParseMediaType(values[0])
	charset := strings.ToLower(params["charset"])
	switch {
	case err != nil:
		return unsupported("the Content-Type is malformed")
	case media != "application/json" && (media != "text/plain" || !x.route.intake):
		return unsupported("the Content-Type must be application/json or absent")
	case charset != "" && charset != "utf-8" && charset != "utf8":
		return unsupported("the charset must be utf-8")
	default:
		return nil
	}
}

// coded says whether the body is coded with gzip. The fake reads no other
// coding.
func (x *exchange) coded() (bool, error) {
	values := x.r.Header["Content-Encoding"]
	if len(values) == 0 {
		return false, nil
	}
	if len(values) == 1 {
		switch strings.ToLower(strings.TrimSpace(values[0])) {
		case "", "identity":
			return false, nil
		case "gzip", "x-gzip":
			return true, nil
		}
	}
	return false, unsupported("the Content-Encoding must be gzip or identity, and only one")
}

func unsupported(message string) error { return refuse(api.CodeUnsupportedMediaType, message) }

// pathText returns a part of the path.
func (x *exchange) pathText(name string) string { return x.r.PathValue(name) }

// text reads an optional parameter of the query string. It refuses with
// validation_failed when there are two.
func (x *exchange) text(name string) (string, error) {
	values := x.r.URL.Query()[name]
	if len(values) > 1 {
		return "", invalidField(name, "must be there once")
	}
	return x.r.URL.Query().Get(name), nil
}

var _ http.Handler = (*resource)(nil)
