package blobstore_test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// signature is how a request is signed by AWS's Signature Version 4, which is
// written down here once more: the client's own package is what is tested.
type signature struct {
	key         []byte
	date, scope string
	// last is that of the request, then that of the last chunk of its body.
	last string
}

// authorization is the header of that name, in its parts.
var authorization = strings.NewReplacer("AWS4-HMAC-SHA256 ", "", "Credential=", "", "SignedHeaders=", "", "Signature=", "", " ", "")

// signatureOf checks the signature of a request, and returns the code of S3 of what
// is wrong with it, or what its body is signed with.
func signatureOf(r *http.Request) (s *signature, code string) {
	parts := strings.Split(authorization.Replace(r.Header.Get("Authorization")), ",")
	if len(parts) != 3 {
		return nil, "AccessDenied"
	}
	id, scope, _ := strings.Cut(parts[0], "/")
	day, place, _ := strings.Cut(scope, "/")
	date := r.Header.Get("X-Amz-Date")
	switch {
	case id != accessKey:
		return nil, "InvalidAccessKeyId"
	case place != region+"/s3/aws4_request" || !strings.HasPrefix(date, day):
		return nil, "AuthorizationHeaderMalformed"
	}
	key := []byte("AWS4" + secretKey)
	for part := range strings.SplitSeq(scope, "/") {
		key = sign(key, part)
	}
	s = &signature{key: key, date: date, scope: scope, last: parts[2]}
	if s.over("AWS4-HMAC-SHA256", digest([]byte(canonical(r, parts[1])))) != parts[2] {
		return nil, "SignatureDoesNotMatch"
	}
	return s, ""
}

// over signs something of a kind.
func (s *signature) over(kind string, parts ...string) string {
	return hex.EncodeToString(sign(s.key, kind+"\n"+s.date+"\n"+s.scope+"\n"+strings.Join(parts, "\n")))
}

// canonical is a request as it is signed; names are the headers that are.
func canonical(r *http.Request, names string) string {
	var headers strings.Builder
	for name := range strings.SplitSeq(names, ";") {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.TrimSpace(value))
	}
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	return strings.Join([]string{r.Method, (&url.URL{Path: r.URL.Path}).EscapedPath(), query, headers.String(), names, r.Header.Get("X-Amz-Content-Sha256")}, "\n")
}

func sign(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// body reads an object. It comes in chunks, each signed together with the
// signature before it, and the last one empty; or whole, with its digest.
func (s *signature) body(r *http.Request) ([]byte, error) {
	if kind := r.Header.Get("X-Amz-Content-Sha256"); kind != "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" {
		content, err := io.ReadAll(r.Body)
		if err == nil && kind != digest(content) {
			err = fmt.Errorf("the digest is %q", kind)
		}
		return content, err
	}
	var content []byte
	for in := bufio.NewReader(r.Body); ; {
		chunk, err := s.chunk(in)
		if err != nil {
			return nil, err
		}
		if content = append(content, chunk...); len(chunk) > 0 {
			continue
		}
		if got := r.Header.Get("X-Amz-Decoded-Content-Length"); got != strconv.Itoa(len(content)) {
			return nil, fmt.Errorf("%d bytes, and %s were announced", len(content), got)
		}
		return content, nil
	}
}

func (s *signature) chunk(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	size, signed, _ := strings.Cut(strings.TrimSpace(line), ";chunk-signature=")
	n, err := strconv.ParseInt(size, 16, 64)
	if err != nil {
		return nil, err
	}
	chunk := make([]byte, n+int64(len("\r\n")))
	if _, err := io.ReadFull(in, chunk); err != nil {
		return nil, err
	}
	chunk = bytes.TrimSuffix(chunk, []byte("\r\n"))
	s.last = s.over("AWS4-HMAC-SHA256-PAYLOAD", s.last, digest(nil), digest(chunk))
	if int64(len(chunk)) != n || signed != s.last {
		return nil, fmt.Errorf("a chunk of %d bytes is signed by %q, want %q", n, signed, s.last)
	}
	return chunk, nil
}
