package blobstore_test

import (
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/blobstore"
)

const (
	accessKey = "AKIDEXAMPLE"
	secretKey = "se/cr+et="
	region    = "eu-central-3"
)

// bucket is an object store with one bucket, as far as blobs need one.
type bucket struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string][]byte
	// down makes it refuse everything, busy that many requests with 503, unlisted
	// whether it is there.
	down     bool
	busy     int
	unlisted bool
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
		Endpoint: b.URL, Region: region, Bucket: "replays", Prefix: prefix, AccessKey: accessKey, SecretKey: secretKey,
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
	signed, code := signatureOf(r)
	if code != "" {
		refuse(w, http.StatusForbidden, code)
		return
	}
	if !strings.HasPrefix(r.URL.Path, "/replays/") {
		refuse(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	b.object(t, signed, w, r)
}

// object does what is asked of one object, or of the bucket if it has no name.
func (b *bucket) object(t *testing.T, signed *signature, w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/replays/")
	content, there := b.objects[name]
	switch {
	case name == "" && b.unlisted:
		refuse(w, http.StatusForbidden, "AccessDenied")
	case name == "": // whether the bucket is there
	case r.Method == http.MethodPut:
		content, err := payload(signed, r)
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

// payload reads an object and checks its digest.
func payload(signed *signature, r *http.Request) ([]byte, error) {
	content, err := signed.body(r)
	if err != nil {
		return nil, err
	}
	sum := md5.Sum(content)
	if got, want := r.Header.Get("Content-Md5"), base64.StdEncoding.EncodeToString(sum[:]); got != want {
		return nil, fmt.Errorf("Content-MD5 is %q, want %q", got, want)
	}
	return content, nil
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
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
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

// TestS3ThatCannotBeUsed says why, which the answer to HEAD does not: it has no
// body.
func TestS3ThatCannotBeUsed(t *testing.T) {
	b := newBucket(t)
	right := blobstore.S3Options{Endpoint: b.URL, Region: region, Bucket: "replays", Prefix: "p", AccessKey: accessKey, SecretKey: secretKey}
	with := func(change func(*blobstore.S3Options)) blobstore.S3Options {
		o := right
		change(&o)
		return o
	}
	for want, o := range map[string]blobstore.S3Options{
		"":                         right,
		"there is no bucket other": with(func(o *blobstore.S3Options) { o.Bucket = "other" }),
		"look for the bucket replays: no (InvalidAccessKeyId)":           with(func(o *blobstore.S3Options) { o.AccessKey = "x" }),
		"look for the bucket replays: no (SignatureDoesNotMatch)":        with(func(o *blobstore.S3Options) { o.SecretKey = "x" }),
		"look for the bucket replays: no (AuthorizationHeaderMalformed)": with(func(o *blobstore.S3Options) { o.Region = "us-east-1" }),
	} {
		s, err := blobstore.OpenS3(o)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := s.Check(t.Context()); err != nil {
			got = err.Error()
		}
		put := s.Put(t.Context(), "a", []byte("x"))
		if got != want || (put == nil) != (want == "") || s.Close() != nil {
			t.Errorf("%q, want %q; a blob: %v", got, want, put)
		}
	}
	if len(b.objects) != 1 {
		t.Errorf("%v", b.objects)
	}
}

// TestS3WithoutKeys: an object store would say "Access Denied" to whoever names
// nobody.
func TestS3WithoutKeys(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	b := newBucket(t)
	machine := httptest.NewServer(http.NotFoundHandler()) // it has no keys either
	t.Cleanup(machine.Close)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", machine.URL)
	s, err := blobstore.OpenS3(blobstore.S3Options{Endpoint: b.URL, Region: region, Bucket: "replays"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "there are no keys for the bucket replays") || b.requests != 0 {
		t.Errorf("%v after %d requests", err, b.requests)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestS3WithoutAccess: keys may be good for objects only, and then nobody can tell
// one that is not there from one that must not be read.
func TestS3WithoutAccess(t *testing.T) {
	b := newBucket(t)
	b.unlisted = true
	if err := b.open(t, "").Check(t.Context()); err == nil || !strings.Contains(err.Error(), "look for the bucket replays: Access Denied") {
		t.Errorf("%v", err)
	}
}
