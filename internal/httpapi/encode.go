package httpapi

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/jsonsyntax"
)

// marshal returns v as JSON, with < > & as they are, on a line of its own.
func marshal(v any) ([]byte, error) {
	text, err := jsonsyntax.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// appendTrackResponse appends the JSON of r. It is written out by hand since
// it answers every batch.
func appendTrackResponse(dst []byte, r *api.TrackResponse) []byte {
	dst = append(dst, `{"accepted":`...)
	dst = strconv.AppendInt(dst, int64(r.Accepted), 10)
	dst = append(dst, `,"duplicates":`...)
	dst = strconv.AppendInt(dst, int64(r.Duplicates), 10)
	dst = append(dst, `,"rejected":[`...)
	for i := range r.Rejected {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendRejection(dst, &r.Rejected[i])
	}
	return append(dst, "]}\n"...)
}

func appendRejection(dst []byte, r *api.Rejection) []byte {
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(r.Index), 10)
	dst = append(dst, `,"event_id":`...)
	if r.EventID == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendString(dst, *r.EventID)
	}
	dst = append(dst, `,"code":`...)
	dst = appendString(dst, string(r.Code))
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, r.Message)
	return append(dst, '}')
}

// appendString appends a JSON string. What is not UTF-8 in s is replaced.
func appendString(dst []byte, s string) []byte {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		return strconv.AppendQuoteToASCII(dst, "\ufffd")
	}
	return out
}
