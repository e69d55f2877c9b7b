package blobstore_test

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/blobstore"
)

const (
	accessKey = "AKIDEXAMPLE"
	region    = "eu-central-3"
)

// bucket is an object store with one bucket, as far as blobs need one.
type bucket struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string][]byte
	// down makes it refuse everything, busy that many requests with 503.
	down bool
	busy int
	// requests is how many there were.
	requests int
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	b := &bucket{objects: map[string][]byte{}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.serve(t, w, r) }))
	t.Cleanup(b.Close)
	return b
}

func (b *bucket) open(t *testing.T, prefix string) *blobstore.S3 {
	t.Helper()
	s, err := blobstore.OpenS3(blobstore.S3Options{
		Endpoint: b.URL, Region: region, Bucket: "replays", Prefix: prefix, AccessKey: accessKey, SecretKey: "secret",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (b *bucket) serve(t *testing.T, w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests++
	if b.down {
		refuse(w, http.StatusForbidden, "AccessDenied")
		return
	}
	if b.busy > 0 {
		b.busy--
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return
	}
	scope := "AWS4-HMAC-SHA256 Credential=" + accessKey + "/"
	if a := r.Header.Get("Authorization"); !strings.HasPrefix(a, scope) || !strings.Contains(a, "/"+region+"/s3/aws4_request") {
		t.Errorf("%s %s is signed by %q", r.Method, r.URL, a)
		refuse(w, http.StatusForbidden, "AccessDenied")
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/replays/")
	if !ok {
		refuse(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	b.object(t, w, r, name)
}

// object does what is asked of one object, or of the bucket if name is empty.
func (b *bucket) object(t *testing.T, w http.ResponseWriter, r *http.Request, name string) {
	content, there := b.objects[name]
	switch {
	case name == "": // whether the bucket is there
	case r.Method == http.MethodPut:
		content, err := payload(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			refuse(w, http.StatusBadRequest, "BadDigest")
			return
		}
		b.objects[name] = content
		w.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprintf("%x", md5.Sum(content))))
	case r.Method == http.MethodDelete:
		delete(b.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case !there:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Last-Modified", "Fri, 01 May 2026 10:00:00 GMT")
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
}

// payload reads an object, whose chunks are signed, and checks its digest.
func payload(r *http.Request) ([]byte, error) {
	content, err := chunks(r)
	if err != nil {
		return nil, err
	}
	sum := md5.Sum(content)
	if got, want := r.Header.Get("Content-Md5"), base64.StdEncoding.EncodeToString(sum[:]); got != want {
		return nil, fmt.Errorf("Content-MD5 is %q, want %q", got, want)
	}
	return content, nil
}

func chunks(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	var content bytes.Buffer
	for in := bufio.NewReader(r.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if err != nil || n == 0 {
			return content.Bytes(), err
		}
		if _, err := io.CopyN(&content, in, n); err != nil {
			return nil, err
		}
		if _, err := in.Discard(len("\r\n")); err != nil {
			return nil, err
		}
	}
}

// TestS3KeepsToItsPrefix: keys begin with it, so that others may use the bucket.
func TestS3KeepsToItsPrefix(t *testing.T) {
	b := newBucket(t)
	if err := b.open(t, "/some/where/").Put(t.Context(), "p/00/a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if len(b.objects) != 1 || string(b.objects["some/where/p/00/a"]) != "x" {
		t.Errorf("%v", b.objects)
	}
}

// TestS3ThatRefuses is not taken for one that has no such blob.
func TestS3ThatRefuses(t *testing.T) {
	b := newBucket(t)
	s := b.open(t, "")
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("a bucket that is there: %v", err)
	}
	b.mu.Lock()
	b.down = true
	b.mu.Unlock()
	_, get := s.Get(t.Context(), "a")
	for what, err := range map[string]error{
		"put": s.Put(t.Context(), "a", nil), "get": get, "delete": s.Delete(t.Context(), "a"), "check": s.Check(t.Context()),
	} {
		if err == nil || strings.Contains(err.Error(), "not exist") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestS3ThatIsBusy is asked again, and not for long: those who wait for the
// answer repeat what they have sent, too.
func TestS3ThatIsBusy(t *testing.T) {
	b := newBucket(t)
	s := b.open(t, "")
	set := func(busy int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.busy, b.requests = busy, 0
	}
	set(1)
	if err := s.Put(t.Context(), "a", []byte("x")); err != nil || string(b.objects["a"]) != "x" {
		t.Errorf("%q, %v", b.objects["a"], err)
	}
	set(100)
	if err := s.Put(t.Context(), "b", []byte("x")); err == nil || b.requests != 3 || len(b.objects) != 1 {
		t.Errorf("%v after %d requests, %v", err, b.requests, b.objects)
	}
}

// TestS3TakesTheEnvironmentsCredentials where the settings have none.
func TestS3TakesTheEnvironmentsCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	b := newBucket(t)
	s, err := blobstore.OpenS3(blobstore.S3Options{Endpoint: b.URL, Region: region, Bucket: "replays"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "a", []byte("x")); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestS3WithoutABucket(t *testing.T) {
	b := newBucket(t)
	address, err := url.Parse(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	s, err := blobstore.OpenS3(blobstore.S3Options{Endpoint: "http://" + address.Host, Region: region, Bucket: "other", AccessKey: accessKey, SecretKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err == nil {
		t.Error("a bucket that is not there is")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
